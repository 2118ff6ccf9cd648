#include "server/coordinator/coordinator_settings.h"

#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

TEST(CoordinatorSettings, PartitionsCarryWhatTheCodecAndTheOptimiserLeaveThem) {
  for (const char* codec : {"fp32", "int8", "1bit"}) {
    for (const bool feedback : {false, true}) {
      for (const int slots : {0, 2}) {
        test::Job job = test::SmallJob();
        job.experiment.sync.push_codec = codec;
        job.experiment.sync.error_feedback = feedback;
        job.spec.optimiser_slots = slots;
        const CoordinatorSettings settings =
            CoordinatorSettingsOf(job.experiment, IdentityOf(job.experiment), "here", 1);
        EXPECT_EQ(settings.CarriesState(job.spec), CarriedArrays(job.experiment, job.spec) > 0)
            << codec << feedback << slots;
      }
    }
  }
}

TEST(CoordinatorSettings, AreTheExperimentsAndWhatIsHandedIn) {
  Experiment experiment = test::SmallJob().experiment;
  experiment.output.directory = "out";
  experiment.output.points_per_epoch = 17;
  experiment.cluster.stall_timeout_s = 77;
  experiment.checkpoint.every_rounds = 5;
  experiment.schedule.learning_rate = 0.25;
  const CoordinatorSettings settings =
      CoordinatorSettingsOf(experiment, IdentityOf(experiment), "here", 3, 99, true);
  EXPECT_EQ(settings.host, "here");
  EXPECT_EQ(settings.generation, 3u);
  EXPECT_EQ(settings.folder, 99u);
  EXPECT_TRUE(settings.finished);
  EXPECT_EQ(settings.identity.JobId(), IdentityOf(experiment).JobId());
  EXPECT_EQ(settings.output_directory, "out");
  EXPECT_EQ(settings.points_per_epoch, 17);
  EXPECT_EQ(settings.partitions, 3);
  EXPECT_EQ(settings.epochs, 2);
  EXPECT_EQ(settings.cluster.stall_timeout_s, 77);
  EXPECT_EQ(settings.checkpoint.every_rounds, 5);
  EXPECT_EQ(settings.schedule.learning_rate, 0.25);
}

}  // namespace
}  // namespace kumo
