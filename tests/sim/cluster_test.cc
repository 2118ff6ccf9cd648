// Whole jobs in the simulation: the weights are the same whatever the network does and whichever
// processes die. Each job here has one kind of fault; every_seed_test.cc runs many with all kinds.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/sim/cluster_harness.h"

namespace kumo::sim {
namespace {

TEST(Cluster, WhereTheBestIsKeptEveryEpochIsSavedWithItsFigures) {
  SimSettings settings = SmallJob();
  settings.experiment.checkpoint.best = "accuracy";
  Disk disk;
  const SimResult result = RunJob(settings, &disk);
  ExpectFinished(result);
  ASSERT_EQ(result.epochs.size(), 3u);
  for (const EpochEvaluatedAction& epoch : result.epochs) {
    ASSERT_TRUE(disk.manifests.contains(epoch.version)) << epoch.epoch;
    const checkpoint::Evaluation& said = disk.manifests.at(epoch.version).evaluation();
    EXPECT_EQ(said.epoch(), epoch.epoch + 1);
    EXPECT_EQ(said.sums().samples(), 11);
    EXPECT_TRUE(SameBits(ReadSums(said.sums()), epoch.validation));
  }
}

TEST(Cluster, FinishesWithEveryEpochEvaluated) {
  const SimResult result = RunJob(SmallJob());
  ExpectFinished(result);
  ASSERT_EQ(result.epochs.size(), 3u);
  for (const auto& epoch : result.epochs) EXPECT_EQ(epoch.train.samples, 103);
  EXPECT_EQ(result.version, 12);  // 103 samples, 32 a round: 4 rounds an epoch
  EXPECT_EQ(result.points.size(), 9u);
}

TEST(Cluster, WeightsDoNotDependOnTheNumberOfWorkersAndServers) {
  const SimResult reference = RunJob(SmallJob());
  for (int workers : {1, 3, 4, 6}) {
    for (int servers : {1, 3}) {
      SimSettings settings = SmallJob(7);
      settings.experiment.cluster.workers = workers;
      settings.servers = servers;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(Bits(result.weights), Bits(reference.weights))
          << workers << " workers, " << servers << " servers";
      EXPECT_EQ(Curve(result), Curve(reference));
      for (size_t e = 0; e < 3; ++e) {
        EXPECT_TRUE(SameBits(result.epochs[e].validation, reference.epochs[e].validation));
      }
    }
  }
}

// Other workers begin without the frozen weights, and chunk 0, which brings each round's directive,
// may be frozen.
TEST(Cluster, FrozenTensorsKeepTheirBitsWhoeverDies) {
  for (const bool first : {false, true}) {
    const auto job = [&](int epochs) {
      SimSettings settings = SmallJob();
      settings.experiment.job.epochs = epochs;
      settings.experiment.block.nesterov = true;
      for (TensorSpec& tensor : settings.tensors) {
        if (first ? tensor.segment == Segment::kDecayed : tensor.name == "b.weight") {
          tensor.factors.rate = 0;
        }
      }
      return settings;
    };
    const SimResult early = RunJob(job(1));
    const SimResult reference = RunJob(job(6));
    SimSettings settings = job(6);
    settings.servers = 3;
    settings.faults.kills = 2;
    settings.faults.restart = 1;
    settings.faults.kill_within = 500 * kMillisecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(early);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
    const ParameterLayout layout = ParameterLayout::Make(settings.tensors).value();
    for (size_t t = 0; t < layout.tensors().size(); ++t) {
      const Range range = layout.tensor(static_cast<int>(t));
      const bool same =
          std::equal(result.weights.begin() + range.begin, result.weights.begin() + range.end,
                     early.weights.begin() + range.begin);
      EXPECT_EQ(same, layout.tensors()[t].factors.frozen()) << layout.tensors()[t].name;
    }
  }
}

TEST(Cluster, AWorkerThatDiesIsReplacedByTheOthers) {
  const SimResult reference = RunJob(SmallJob());
  SimSettings settings = SmallJob();
  settings.faults.kills = 1;
  settings.faults.kill_within = 300 * kMillisecond;
  const SimResult result = RunJob(settings);
  ExpectFinished(result);
  EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
}

// Silence would cost ten minutes.
TEST(Cluster, AWorkerThatIsKilledIsReplacedSinceItsConnectionsAreClosed) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 20;
  settings.experiment.cluster.suspect_after_s = 600;
  const SimResult reference = RunJob(settings);
  settings.faults.kills = 1;
  settings.faults.closes = true;
  settings.faults.kill_within = 300 * kMillisecond;
  const SimResult result = RunJob(settings);
  ExpectFinished(result);
  EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
  EXPECT_LT(result.done, 2 * reference.done + 2 * kSecond);
}

TEST(Cluster, AConnectionThatIsMadeAnewCostsNoBit) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 20;
  const SimResult reference = RunJob(settings);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    settings.seed = seed;
    settings.faults.resets = 5;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
  }
}

TEST(Cluster, AWorkerThatComesBackGetsPartitionsAgain) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 40;
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  const SimResult reference = RunJob(settings);
  settings.faults.kills = 2;
  settings.faults.restart = 1;
  settings.faults.kill_within = 3 * kSecond;
  const SimResult result = RunJob(settings);
  ExpectFinished(result);
  // A crash loses residuals, so the bits differ; both have come to the same minimum.
  for (size_t i = 0; i < result.weights.size(); ++i) {
    ASSERT_NEAR(result.weights[i], reference.weights[i], 0.3);
  }
}

// Its partitions' residuals move with them, so nothing is lost and the bits stay.
TEST(Cluster, PartitionsMoveToALateWorkerWithWhatTheyCarry) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  settings.experiment.block.reset_local_state = false;
  const SimResult reference = RunJob(settings);
  for (TimeUs at : {300, 500, 700, 900}) {
    for (TimeUs jitter : {0, 20}) {
      settings.late_worker_at = at * kMillisecond;
      settings.faults.jitter = jitter * kMillisecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "joined at " << at << " ms";
    }
  }
}

TEST(Cluster, StoppedAndResumedIsUninterrupted) {
  size_t rule = 0;  // the block rules in turn
  for (const CodecId codec :
       {CodecId::kFp32, CodecId::kOneBit, CodecId::kInt8, CodecId::kTopk2bit}) {
    for (bool keep : {false, true}) {
      SimSettings settings = SmallJob();
      // In chunks that are cut in another way on three servers.
      if (codec == CodecId::kTopk2bit) settings.tensors[0].shape = {3, 5000};
      settings.experiment.job.epochs = 6;
      settings.experiment.sync.push_codec = codec;
      settings.experiment.sync.warmup_samples = 50;
      settings.experiment.block.reset_local_state = !keep;
      settings.experiment.block.nesterov = true;
      const auto rules = ChoicesOf(BlockRule());
      settings.experiment.block.rule = rules[rule++ % rules.size()].value;
      settings.experiment.block_schedule.type = ScheduleType::kPoly;
      const SimResult reference = RunJob(settings);
      ExpectFinished(reference);

      Disk disk;
      settings.stop_at = 700 * kMillisecond;
      const SimResult first = RunJob(settings, &disk);
      EXPECT_EQ(first.status.code(), StatusCode::kUnavailable) << first.status.message();
      EXPECT_LT(first.version, reference.version);
      ASSERT_FALSE(disk.manifests.empty());

      settings.stop_at = -1;
      settings.servers = 3;  // another number of servers and workers goes on
      settings.experiment.cluster.workers = 3;
      const SimResult second = RunJob(settings, &disk);
      ExpectFinished(second);
      EXPECT_EQ(second.rounds.front(), first.rounds.back() + 1);
      EXPECT_EQ(Bits(second.weights), Bits(reference.weights))
          << WordOf(codec) << (keep ? " keep " : " reset ")
          << WordOf(settings.experiment.block.rule);
      EXPECT_EQ(second.start, reference.start);
      EXPECT_TRUE(SameBits(second.epochs.back().validation, reference.epochs.back().validation));
      EXPECT_EQ(second.epochs.back().train.samples, reference.epochs.back().train.samples);
    }
  }
}

TEST(Cluster, AFinishedJobThatIsStartedAgainIsDoneAtOnce) {
  for (const int replicas : {1, 2}) {
    SimSettings settings = SmallJob();
    settings.servers = 3;
    settings.experiment.cluster.replicas = replicas;
    Disk disk;
    const SimResult first = RunJob(settings, &disk);
    const SimResult second = RunJob(settings, &disk);
    ExpectFinished(second);
    EXPECT_TRUE(second.rounds.empty() && second.epochs.empty());
    EXPECT_EQ(Bits(second.weights), Bits(first.weights));
    EXPECT_LT(second.ended, kSecond);
    EXPECT_TRUE(second.left_behind.empty());
  }
}

// Killed between the last checkpoint and its evaluation, it is not.
TEST(Cluster, AJobWhoseEndWasNotEvaluatedIsEvaluatedWhenItIsStartedAgain) {
  Disk disk;
  const SimResult first = RunJob(SmallJob(), &disk);
  disk.manifests.rbegin()->second.mutable_evaluation()->clear_sums();
  const SimResult second = RunJob(SmallJob(), &disk);
  ExpectFinished(second);
  EXPECT_TRUE(second.rounds.empty());
  ASSERT_EQ(second.epochs.size(), 1u);
  EXPECT_TRUE(SameBits(second.epochs[0].validation, first.epochs.back().validation));
}

TEST(Cluster, NoWorkerIsAnErrorWithALimit) {
  SimSettings settings = SmallJob();
  settings.faults.drop = 1.0;
  const SimResult result = RunJob(settings);
  EXPECT_EQ(result.status.code(), StatusCode::kUnavailable);
  EXPECT_NE(result.status.message().find("workers"), std::string::npos) << result.status.message();
}

TEST(Cluster, AServerThatDiesComesBackAndTheJobGoesOnFromTheLastCheckpoint) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  settings.experiment.block.reset_local_state = false;
  settings.experiment.checkpoint.every_rounds = 3;
  settings.servers = 3;
  const SimResult reference = RunJob(settings);
  int went_back = 0;
  for (uint64_t seed = 1; seed < 12; ++seed) {
    settings.seed = seed;
    settings.faults.server_kills = 2;
    settings.faults.kill_within = kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    went_back += result.generation > 1;
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
    EXPECT_EQ(result.epochs.size(), reference.epochs.size());
  }
  EXPECT_GE(went_back, 8);  // some die when all is done
}

// The next server has kept the versions: no round is closed twice, and no block is computed again.
TEST(Cluster, AServerThatDiesLosesNoRoundWhereVersionsAreKeptTwice) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kOneBit}) {
    SimSettings settings = SmallJob();
    settings.experiment.job.epochs = 10;
    settings.experiment.sync.push_codec = codec;
    settings.experiment.block.reset_local_state = false;
    settings.experiment.block.nesterov = true;
    settings.experiment.cluster.recovery = StateLoss::kExact;
    settings.servers = 3;
    const SimResult reference = RunJob(settings);
    settings.experiment.cluster.replicas = 2;
    const uint64_t seeds = ShareOf(29);
    uint64_t died = 0;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      settings.seed = seed;
      settings.faults.server_kills = 1;
      settings.faults.kill_within = 2 * kSecond;
      settings.faults.jitter = seed % 2 * 30 * kMillisecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
      EXPECT_EQ(result.rounds, reference.rounds) << "seed " << seed;
      EXPECT_EQ(result.blocks_trained, reference.blocks_trained) << "seed " << seed;
      died += result.generation > 1;
    }
    EXPECT_GE(died, seeds * 10 / 29);
  }
}

// It does not know yet that the others have the rounds since the last checkpoint: there is none.
TEST(Cluster, AServer0ThatIsStoppedWhileItComesBackLosesNoRound) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 20;
  settings.servers = 3;
  const SimResult reference = RunJob(settings);
  settings.experiment.cluster.replicas = 2;
  settings.server_0_dies_at = 400 * kMillisecond;
  int stopped = 0;
  for (TimeUs at = settings.server_0_dies_at; at < 4 * kSecond; at += 60 * kMillisecond) {
    settings.stop_at = at;
    Disk disk;
    const SimResult first = RunJob(settings, &disk);
    EXPECT_THAT(first.violations, testing::IsEmpty());
    if (first.status.ok()) continue;  // it was not there, or the job was done
    ++stopped;
    EXPECT_THAT(first.status.message(), testing::StartsWith("stopped after round")) << at;
    SimSettings next = settings;
    next.stop_at = next.server_0_dies_at = -1;
    const SimResult second = RunJob(next, &disk);
    ExpectFinished(second);
    std::vector<int64_t> rounds = first.rounds;
    rounds.insert(rounds.end(), second.rounds.begin(), second.rounds.end());
    EXPECT_EQ(rounds, reference.rounds) << at;
    EXPECT_EQ(Bits(second.weights), Bits(reference.weights)) << at;
  }
  EXPECT_GT(stopped, 5);
}

// Nothing is lost, and the job does not go back.
TEST(Cluster, AWorkerThatIsToldToLeaveHandsItsPartitionsOver) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  settings.experiment.block.reset_local_state = false;
  settings.experiment.cluster.recovery = StateLoss::kExact;
  const SimResult reference = RunJob(settings);
  for (uint64_t seed = 1; seed <= ShareOf(19); ++seed) {
    settings.seed = seed;
    settings.faults.leaves = static_cast<int>(1 + seed % 3);  // all of them at once, too
    settings.faults.kill_within = kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(result.generation, 1u) << "seed " << seed;
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
  }
}

TEST(Cluster, AServerThatWasFrozenCostsNothingButTheWait) {
  SimSettings settings = SmallJob();
  settings.servers = 2;
  const SimResult reference = RunJob(settings);
  for (uint64_t seed = 1; seed <= ShareOf(19); ++seed) {
    settings.seed = seed;
    settings.faults.freezes = 1;
    settings.faults.longest = 10 * kSecond;
    settings.faults.kill_within = kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(result.generation, 1u) << "seed " << seed;
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
  }
}

// Server 0 and the other server hear the worker's heartbeats and each other, but the worker's
// contributions do not arrive at one of them.
TEST(Cluster, AWorkerThatDoesNotReachOneServerIsReplaced) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kOneBit}) {
    SimSettings settings = SmallJob();
    settings.servers = 2;
    settings.experiment.job.epochs = 10;
    settings.experiment.sync.push_codec = codec;
    settings.experiment.cluster.recovery = StateLoss::kExact;
    const SimResult reference = RunJob(settings);
    for (uint64_t seed = 1; seed <= ShareOf(19); ++seed) {
      settings.seed = seed;
      settings.faults.links = 1;
      settings.faults.longest = 500 * kSecond;
      settings.faults.kill_within = kSecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(Bits(result.weights), Bits(reference.weights)) << "seed " << seed;
      EXPECT_LT(result.ended, 60 * kSecond) << "seed " << seed;
    }
  }
}

// A laptop that sleeps, a virtual machine that is paused: no silence of that time counts.
TEST(Cluster, AJobWhoseProcessesAllStopForLongerThanAllTimeoutsGoesOn) {
  for (const int servers : {1, 3}) {
    SimSettings settings = SmallJob();
    settings.servers = servers;
    settings.experiment.cluster.stall_timeout_s = 30;
    const SimResult reference = RunJob(settings);
    settings.all_stop_at = 700 * kMillisecond;
    settings.all_stop_for = 500 * kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
    EXPECT_EQ(result.generation, reference.generation);
    EXPECT_GT(result.ended, settings.all_stop_for);
  }
}

// Without workers the job saves its last rounds before it ends. (It does not if they die with a
// contribution half pushed; when these die, none is.)
TEST(Cluster, AJobThatAllWorkersHaveLeftForGoodEndsWithACheckpoint) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.cluster.stall_timeout_s = 30;
  const SimResult reference = RunJob(settings);
  settings.all_workers_die_at = 730 * kMillisecond;
  Disk disk;
  const SimResult first = RunJob(settings, &disk);
  EXPECT_EQ(first.status.code(), StatusCode::kUnavailable);
  EXPECT_NE(first.status.message().find("worker-"), std::string::npos) << first.status.message();
  EXPECT_NE(first.status.message().find("is saved"), std::string::npos) << first.status.message();
  ASSERT_FALSE(first.rounds.empty());
  EXPECT_EQ(first.version, first.rounds.back() + 1);
  settings.all_workers_die_at = -1;
  const SimResult second = RunJob(settings, &disk);
  ExpectFinished(second);
  EXPECT_EQ(Bits(second.weights), Bits(reference.weights));
}

// Every process is told to leave at once, at any moment of a round: some chunks of the blocks under
// way are on the servers by then, and have closed their round.
TEST(Cluster, AJobWhoseProcessesAreAllToldToLeaveIsSaved) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = CodecId::kFp32;
  const SimResult reference = RunJob(settings);
  for (int i = 0; i < 40; ++i) {
    const TimeUs moment = (600 + 11 * i) * kMillisecond;
    SimSettings told = settings;
    told.stop_at = told.all_workers_leave_at = moment;
    Disk disk;
    const SimResult first = RunJob(told, &disk);
    EXPECT_EQ(first.status.code(), StatusCode::kUnavailable);
    ASSERT_FALSE(first.rounds.empty()) << moment;
    const SimResult second = RunJob(settings, &disk);
    ExpectFinished(second);
    EXPECT_EQ(second.rounds.front(), first.rounds.back() + 1)
        << "told at " << moment << ": " << first.status.message();
    EXPECT_EQ(Bits(second.weights), Bits(reference.weights));
  }
}

// A disk that is full for a while does not cost the result.
TEST(Cluster, TheLastCheckpointIsTriedUntilTheDiskTakesIt) {
  int tried_again = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimSettings settings = SmallJob(seed);
    const SimResult reference = RunJob(settings);
    settings.faults.disk = 0.7;
    settings.servers = 2;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(Bits(result.weights), Bits(reference.weights));
    tried_again += result.ended > reference.ended + 4 * kSecond;
  }
  EXPECT_GE(tried_again, 10);
}

// One of three workers takes 20 s for a block now and then: others compute it, first come first
// served, and the round does not wait for it.
TEST(Cluster, AStragglersPartitionIsComputedByWhoIsIdle) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 5;
  settings.experiment.cluster.workers = 3;
  const SimResult reference = RunJob(settings);
  settings.slow_block = 20 * kSecond;
  const SimResult helped = RunJob(settings);
  ExpectFinished(helped);
  EXPECT_EQ(Bits(helped.weights), Bits(reference.weights));
  EXPECT_GT(helped.blocks_trained, reference.blocks_trained);
  // The state of a partition cannot be in two places: then the round waits.
  settings.experiment.sync.push_codec = CodecId::kOneBit;
  const SimResult waits = RunJob(settings);
  ExpectFinished(waits);
  EXPECT_LT(helped.ended * 5 / 2, waits.ended);
}

}  // namespace
}  // namespace kumo::sim
