#include "server/coordinator/job_state.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/job/phase.h"
#include "server/coordinator/announcements.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

constexpr int kServers = 3;

JobState Make(std::optional<int64_t> restored = std::nullopt, bool finished = false,
              Experiment experiment = test::SmallJob().experiment) {
  for (int s = 0; s < kServers; ++s) {
    experiment.cluster.servers.push_back("ipc://server-" + std::to_string(s));
  }
  std::optional<checkpoint::Manifest> manifest;
  if (restored) manifest.emplace().set_version(*restored);
  JobState job(CoordinatorStart{.experiment = experiment,
                                .identity = IdentityOf(experiment),
                                .host = "here",
                                .finished = finished},
               manifest, 0);
  for (int s = 1; s < kServers; ++s) {
    wire::Hello hello;
    hello.set_role(wire::Hello::SERVER);
    hello.set_server_index(s);
    job.membership.Join(ServerPeer(s), hello, 0);
  }
  return job;
}

// Reports are late: nobody's is counted on but for what it has said.
TEST(JobState, NoOpenRoundIsOlderThanWhatIsKnownOfEachServerNorThanTheStart) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 300; ++i) {
    const auto start = static_cast<int64_t>(rng.NextBelow(20));
    JobState job = Make(start > 0 ? std::optional(start) : std::nullopt);
    EXPECT_EQ(job.OldestOpenRound(), start);
    const int64_t version = job.version = start + static_cast<int64_t>(rng.NextBelow(10));
    int64_t oldest = version;
    for (int s = 0; s < kServers; ++s) {
      const bool ready = rng.NextBelow(4) > 0;
      const int64_t at = version + 1 - static_cast<int64_t>(rng.NextBelow(4));
      wire::Header header;
      header.mutable_server_report()->set_ready(ready);
      header.mutable_server_report()->set_version(at);
      StepContext context{0, {}};
      job.membership.OnHeartbeat(ServerPeer(s), header, &context);
      oldest = std::min(oldest, ready ? at : version - 1);
    }
    EXPECT_EQ(job.OldestOpenRound(), std::max(oldest, start));
  }
}

TEST(JobState, AJobBeginsWhereItsCheckpointSaysAndAFinishedOneIsOver) {
  const JobState fresh = Make(), resumed = Make(8), finished = Make(8, true);
  EXPECT_EQ(fresh.phase, JobPhase::kWaiting);
  EXPECT_EQ(resumed.phase, JobPhase::kWaiting);
  EXPECT_EQ(fresh.recovery.generation().start_version, 0);
  EXPECT_EQ(resumed.recovery.generation().start_version, 8);
  EXPECT_EQ(fresh.saving.checkpoints().last(), -1);
  EXPECT_EQ(resumed.saving.checkpoints().last(), 8);
  EXPECT_EQ(resumed.version, -1) << "chunk 0 is not there";
  EXPECT_EQ(finished.phase, JobPhase::kFinished);
  EXPECT_EQ(finished.version, 8);
}

TEST(JobState, SettingsReachTheParts) {
  Experiment experiment = test::SmallJob().experiment;
  experiment.job.epochs = 17;
  experiment.checkpoint.grace_s = 40;
  experiment.cluster.stall_timeout_s = 500;
  experiment.checkpoint.disks = CheckpointDisks::kPrivate;
  JobState job = Make(std::nullopt, false, experiment);
  EXPECT_EQ(StatusOf(job, 0).epochs(), 17);
  // grace_s bounds the save before a failure, and with private disks the wait at the end.
  const Checkpoints& checkpoints = job.saving.checkpoints();
  ASSERT_EQ(job.ending.Begin(Unavailable("why"), /*version=*/1, false, checkpoints, 0).save,
            Effects::Save::kPartial);
  EXPECT_TRUE(job.ending.Tick(1, job.saving, 40 * kSecond)->failure.ok());
  EXPECT_FALSE(job.ending.Tick(1, job.saving, 41 * kSecond)->failure.ok());
  job.shutdown.OnFinished(0);
  EXPECT_FALSE(job.shutdown.IsOver(job.members(), 40 * kSecond - 1));
  EXPECT_TRUE(job.shutdown.IsOver(job.members(), 40 * kSecond));
}

}  // namespace
}  // namespace kumo
