#include "worker/training/job_speed.h"

#include <gtest/gtest.h>

#include "tests/worker/training/trainer_harness.h"

namespace kumo {
namespace {

class JobSpeedTest : public TrainerTest {};

TEST_F(JobSpeedTest, MeasuresStepsAndCodecsOfAnyExperiment) {
  for (Experiment experiment : {Block(), Gradient()}) {
    experiment.sync.overlap = 1;
    const SteadyClock clock;
    const Result<JobSpeed> speed = MeasureJobSpeed(experiment, 1e-3, &clock);
    ASSERT_TRUE(speed.ok()) << speed.status().message();
    EXPECT_EQ(speed->minibatch, 7);
    EXPECT_GT(speed->parameters, 0);
    EXPECT_GT(speed->step_s, 0);
    ASSERT_GE(speed->codecs.size(), 2U);
    EXPECT_EQ(speed->codecs.front().codec, "fp32");
    EXPECT_GE(speed->codecs.front().push_bytes, 4 * speed->parameters);
    for (size_t i = 1; i < speed->codecs.size(); ++i) {
      // Statistics are float32 in any codec, so the tiny network's codes are not shorter each time.
      EXPECT_LT(speed->codecs[i].push_bytes, speed->codecs.front().push_bytes);
      EXPECT_LE(speed->codecs[i].pull_bytes, speed->codecs.front().pull_bytes);
    }
  }
}

TEST_F(JobSpeedTest, NamesTheErrorOfAnExperimentThatCannotBeTrained) {
  Experiment experiment = Block();
  experiment.network.file = "nowhere.pbtxt";
  const SteadyClock clock;
  EXPECT_FALSE(MeasureJobSpeed(experiment, 1e-3, &clock).ok());
}

}  // namespace
}  // namespace kumo
