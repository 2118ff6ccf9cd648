// Whole jobs in the simulation: the same weights whatever the network does and whoever dies.
//
// EverySeed.EndsWithTheSameWeights runs many random jobs. A failing seed prints the command that
// repeats it; KUMO_SIM_SEEDS and KUMO_SIM_FIRST_SEED choose how many and which.
#include "tests/sim/cluster.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo::sim {
namespace {

SimSettings SmallJob(uint64_t seed = 1) {
  SimSettings settings;
  settings.seed = seed;
  settings.tensors = test::SmallTensors();
  settings.tensors.push_back({"b.weight", {30, 25}, Segment::kDecayed});
  settings.train_samples = 103;
  settings.validation_samples = 11;
  Experiment& e = settings.experiment;
  e.job.name = "sim";
  e.job.epochs = 3;
  e.sync.mode = SyncMode::kBlock;
  e.sync.partitions = 4;
  e.sync.minibatch = 4;
  e.sync.block = 2;
  e.cluster.workers = 2;
  e.cluster.suspect_after_s = 2;
  e.cluster.heartbeat_s = 0.3;
  e.cluster.chunk_kib = 2;
  e.checkpoint.every_rounds = 0;
  e.checkpoint.every_minutes = 0;
  e.output.points_per_epoch = 3;  // some of several rounds
  return settings;
}

SimResult RunJob(SimSettings settings, Disk* disk = nullptr) {
  return Cluster(std::move(settings), disk).Run();
}

// A job's curve, to the bit.
using Point = std::tuple<int64_t, int64_t, int64_t, double, int64_t, std::optional<double>>;
std::vector<Point> Curve(const SimResult& result) {
  std::vector<Point> curve;
  for (const CurvePointAction& point : result.points) {
    curve.emplace_back(point.version, point.samples, point.train.samples(), point.train.loss_sum(),
                       point.train.correct(), point.learning_rate);
  }
  return curve;
}

void ExpectFinished(const SimResult& result) {
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
}

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
    EXPECT_EQ(said.samples(), 11);
    EXPECT_EQ(said.loss_sum(), epoch.validation.loss_sum());
  }
}

TEST(Cluster, FinishesWithEveryEpochEvaluated) {
  const SimResult result = RunJob(SmallJob());
  ExpectFinished(result);
  ASSERT_EQ(result.epochs.size(), 3u);
  for (const auto& epoch : result.epochs) EXPECT_EQ(epoch.train.samples(), 103);
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
      EXPECT_EQ(result.weights, reference.weights)
          << workers << " workers, " << servers << " servers";
      EXPECT_EQ(Curve(result), Curve(reference));
      for (size_t e = 0; e < 3; ++e) {
        EXPECT_EQ(result.epochs[e].validation.loss_sum(),
                  reference.epochs[e].validation.loss_sum());
      }
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
  EXPECT_EQ(result.weights, reference.weights);
}

TEST(Cluster, AWorkerThatComesBackGetsPartitionsAgain) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 40;
  settings.experiment.sync.push_codec = "1bit";
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
  settings.experiment.sync.push_codec = "1bit";
  settings.experiment.block.reset_local_state = false;
  const SimResult reference = RunJob(settings);
  for (TimeUs at : {300, 500, 700, 900}) {
    for (TimeUs jitter : {0, 20}) {
      settings.late_worker_at = at * kMillisecond;
      settings.faults.jitter = jitter * kMillisecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(result.weights, reference.weights) << "joined at " << at << " ms";
    }
  }
}

TEST(Cluster, StoppedAndResumedIsUninterrupted) {
  for (const char* codec : {"fp32", "1bit", "int8"}) {
    for (bool keep : {false, true}) {
      SimSettings settings = SmallJob();
      settings.experiment.job.epochs = 6;
      settings.experiment.sync.push_codec = codec;
      settings.experiment.sync.warmup_samples = 50;
      settings.experiment.block.reset_local_state = !keep;
      settings.experiment.block.nesterov = true;
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
      EXPECT_EQ(second.weights, reference.weights) << codec << (keep ? " keep" : " reset");
      EXPECT_EQ(second.start, reference.start);
      EXPECT_EQ(second.epochs.back().validation.loss_sum(),
                reference.epochs.back().validation.loss_sum());
      EXPECT_EQ(second.epochs.back().train.samples(), reference.epochs.back().train.samples());
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
    EXPECT_EQ(second.weights, first.weights);
    EXPECT_LT(second.ended, kSecond);
    EXPECT_TRUE(second.left_behind.empty());
  }
}

// Killed between the last checkpoint and its evaluation, it is not.
TEST(Cluster, AJobWhoseEndWasNotEvaluatedIsEvaluatedWhenItIsStartedAgain) {
  Disk disk;
  const SimResult first = RunJob(SmallJob(), &disk);
  disk.manifests.rbegin()->second.mutable_evaluation()->set_samples(0);
  const SimResult second = RunJob(SmallJob(), &disk);
  ExpectFinished(second);
  EXPECT_TRUE(second.rounds.empty());
  ASSERT_EQ(second.epochs.size(), 1u);
  EXPECT_EQ(second.epochs[0].validation.loss_sum(), first.epochs.back().validation.loss_sum());
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
  settings.experiment.sync.push_codec = "1bit";
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
    EXPECT_EQ(result.weights, reference.weights) << "seed " << seed;
    EXPECT_EQ(result.epochs.size(), reference.epochs.size());
  }
  EXPECT_GE(went_back, 8);  // some die when all is done
}

// The next server has kept what it held: no round is closed twice, and no block is computed again.
TEST(Cluster, AServerThatDiesLosesNoRoundWhereVersionsAreKeptTwice) {
  for (const char* codec : {"fp32", "1bit"}) {
    SimSettings settings = SmallJob();
    settings.experiment.job.epochs = 10;
    settings.experiment.sync.push_codec = codec;
    settings.experiment.block.reset_local_state = false;
    settings.experiment.block.nesterov = true;
    settings.experiment.cluster.recovery = "exact";
    settings.servers = 3;
    const SimResult reference = RunJob(settings);
    settings.experiment.cluster.replicas = 2;
    int died = 0;
    for (uint64_t seed = 1; seed < 30; ++seed) {
      settings.seed = seed;
      settings.faults.server_kills = 1;
      settings.faults.kill_within = 2 * kSecond;
      settings.faults.jitter = seed % 2 * 30 * kMillisecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(result.weights, reference.weights) << "seed " << seed;
      EXPECT_EQ(result.rounds, reference.rounds) << "seed " << seed;
      EXPECT_EQ(result.blocks_trained, reference.blocks_trained) << "seed " << seed;
      died += result.generation > 1;
    }
    EXPECT_GE(died, 10);
  }
}

// Nothing is lost, and nobody goes back.
TEST(Cluster, AWorkerThatIsToldToLeaveHandsItsPartitionsOver) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = "1bit";
  settings.experiment.block.reset_local_state = false;
  settings.experiment.cluster.recovery = "exact";
  const SimResult reference = RunJob(settings);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    settings.seed = seed;
    settings.faults.leaves = static_cast<int>(1 + seed % 3);  // all of them at once, too
    settings.faults.kill_within = kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(result.generation, 1u) << "seed " << seed;
    EXPECT_EQ(result.weights, reference.weights) << "seed " << seed;
  }
}

TEST(Cluster, AServerThatWasFrozenCostsNothingButTheWait) {
  SimSettings settings = SmallJob();
  settings.servers = 2;
  const SimResult reference = RunJob(settings);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    settings.seed = seed;
    settings.faults.freezes = 1;
    settings.faults.longest = 10 * kSecond;
    settings.faults.kill_within = kSecond;
    const SimResult result = RunJob(settings);
    ExpectFinished(result);
    EXPECT_EQ(result.generation, 1u) << "seed " << seed;
    EXPECT_EQ(result.weights, reference.weights) << "seed " << seed;
  }
}

// Server 0 and the other server hear the worker's heartbeats and each other, but what it computes
// does not arrive at one of them.
TEST(Cluster, AWorkerThatDoesNotReachOneServerIsReplaced) {
  for (const char* codec : {"fp32", "1bit"}) {
    SimSettings settings = SmallJob();
    settings.servers = 2;
    settings.experiment.job.epochs = 10;
    settings.experiment.sync.push_codec = codec;
    settings.experiment.cluster.recovery = "exact";
    const SimResult reference = RunJob(settings);
    for (uint64_t seed = 1; seed < 20; ++seed) {
      settings.seed = seed;
      settings.faults.links = 1;
      settings.faults.longest = 500 * kSecond;
      settings.faults.kill_within = kSecond;
      const SimResult result = RunJob(settings);
      ExpectFinished(result);
      EXPECT_EQ(result.weights, reference.weights) << "seed " << seed;
      EXPECT_LT(result.ended, 60 * kSecond) << "seed " << seed;
    }
  }
}

// Nothing that was learnt is lost with the last worker: what there is is saved before the job ends.
TEST(Cluster, AJobThatAllWorkersHaveLeftForGoodEndsWithACheckpoint) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.cluster.stall_timeout_s = 30;
  const SimResult reference = RunJob(settings);
  settings.all_workers_die_at = 700 * kMillisecond;
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
  EXPECT_EQ(second.weights, reference.weights);
}

// Every process is told to leave at once, at any moment of a round: some chunks of the blocks under
// way are on the servers by then, and have closed their round.
TEST(Cluster, AJobWhoseProcessesAreAllToldToLeaveIsSaved) {
  SimSettings settings = SmallJob();
  settings.experiment.job.epochs = 10;
  settings.experiment.sync.push_codec = "fp32";
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
    EXPECT_EQ(second.weights, reference.weights);
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
    EXPECT_EQ(result.weights, reference.weights);
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
  EXPECT_EQ(helped.weights, reference.weights);
  EXPECT_GT(helped.blocks_trained, reference.blocks_trained);
  // What partitions carry cannot be in two places: there the round waits.
  settings.experiment.sync.push_codec = "1bit";
  const SimResult waits = RunJob(settings);
  ExpectFinished(waits);
  EXPECT_LT(helped.ended * 5 / 2, waits.ended);
}

// A random job; its reference is the same experiment on one worker and one server, undisturbed.
SimSettings RandomJob(uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  SimSettings settings = SmallJob(seed);
  const auto choose = [&](std::initializer_list<int> values) {
    return *(values.begin() + rng.NextBelow(values.size()));
  };
  Experiment& e = settings.experiment;
  e.job.epochs = choose({1, 2, 3});
  e.sync.mode = choose({0, 1}) ? SyncMode::kBlock : SyncMode::kGradient;
  e.sync.partitions = choose({1, 2, 3, 5});
  e.sync.block = choose({1, 2, 4});
  settings.train_samples = choose({1, 37, 103});
  settings.validation_samples = choose({0, 1, 11});
  if (choose({0, 1})) e.sync.warmup_samples = choose({10, 60});
  e.block.nesterov = choose({0, 1});
  e.block.reset_local_state = choose({0, 1});
  e.sync.pull_codec = choose({0, 0, 1}) ? "fp16" : "fp32";
  const char* const kCodecs[] = {"fp32", "1bit", "int8", "bf16"};
  e.sync.push_codec = kCodecs[rng.NextBelow(4)];
  e.cluster.workers = choose({1, 2, 3});
  settings.servers = choose({1, 2, 3});
  e.checkpoint.every_rounds = choose({0, 0, 1, 3});
  e.checkpoint.best = settings.seed % 2 == 0 ? "accuracy" : "none";
  // A tenth of the messages lost: more than six heartbeats in a row, some day.
  e.cluster.suspect_after_s = 5;
  // What a lost worker's partitions carried is gone, unless the job goes back.
  e.cluster.recovery = "exact";
  Faults& faults = settings.faults;
  faults.drop = choose({0, 1, 10}) / 100.0;
  faults.duplicate = choose({0, 1, 10}) / 100.0;
  faults.jitter = choose({0, 1000, 100000});
  if (choose({0, 0, 1})) settings.late_worker_at = choose({200, 700}) * kMillisecond;
  if (choose({0, 0, 0, 1})) settings.stop_at = choose({300, 600, 1000}) * kMillisecond;
  faults.kill_within = choose({500, 1000, 5000}) * kMillisecond;
  faults.longest = choose({1, 12}) * kSecond;
  faults.restart = choose({0, 50, 100}) / 100.0;
  if (choose({0, 0, 1})) faults.kills = choose({1, 2, 3});
  if (choose({0, 0, 1})) faults.server_kills = choose({1, 2});
  if (choose({0, 0, 1})) faults.leaves = choose({1, 2, 3});
  if (choose({0, 0, 0, 1})) faults.server_leaves = choose({1, 2});
  if (choose({0, 0, 1})) faults.freezes = choose({1, 2});
  if (choose({0, 0, 1})) faults.cuts = choose({1, 2});
  if (choose({0, 0, 0, 0, 1})) settings.slow_block = choose({2, 15}) * kSecond;
  if (choose({0, 0, 0, 1})) faults.disk = choose({10, 50}) / 100.0;
  e.cluster.replicas = choose({1, 2});
  if (choose({0, 0, 1})) faults.links = choose({1, 2});
  return settings;
}

SimSettings Undisturbed(SimSettings settings) {
  settings.faults = Faults{};
  settings.mutation = Mutation::kNone;
  settings.late_worker_at = settings.stop_at = -1;
  settings.slow_block = 0;
  settings.servers = 1;
  settings.experiment.cluster.workers = 1;
  return settings;
}

// What is said of the epochs stands in the manifests of those that were saved: whoever looks for
// the best one there finds what the table of the epochs says.
void CheckEvaluations(const SimResult& result, const Disk& disk,
                      std::vector<std::string>* violations) {
  for (const EpochEvaluatedAction& epoch : result.epochs) {
    const auto manifest = disk.manifests.find(epoch.version);
    if (manifest == disk.manifests.end()) continue;
    const checkpoint::Evaluation& said = manifest->second.evaluation();
    if (said.epoch() != epoch.epoch + 1 || said.samples() != epoch.validation.samples() ||
        said.loss_sum() != epoch.validation.loss_sum()) {
      violations->push_back("other figures of epoch " + std::to_string(epoch.epoch + 1));
    }
  }
}

// Runs a job to its end, stops and all; whether everything held.
bool Holds(const SimSettings& settings, std::string* why) {
  const SimResult reference = RunJob(Undisturbed(settings));
  Disk disk;
  SimSettings next = settings;
  SimResult result = RunJob(next, &disk);
  std::vector<Point> curve = Curve(result);
  std::vector<std::string> violations = result.violations;
  // Stopped, or its last checkpoint could not be saved: goes on from what was saved. Any other end
  // would be a job that hung.
  const std::string& words = result.status.message();
  const bool stopped = settings.stop_at >= 0 && words.starts_with("stopped");
  const bool unsaved = (settings.faults.disk > 0 || settings.stop_at >= 0) &&
                       words.find("saved") != std::string::npos;
  const bool again = result.status.code() == StatusCode::kUnavailable && violations.empty() &&
                     (stopped || unsaved);
  if (again) {
    next.stop_at = -1;
    next.faults.disk = 0;
    next.faults.server_kills = 0;
    const int64_t from = disk.manifests.empty() ? 0 : disk.manifests.rbegin()->first;
    std::erase_if(curve, [&](const Point& point) { return std::get<0>(point) > from; });
    result = RunJob(next, &disk);
    const std::vector<Point> rest = Curve(result);
    curve.insert(curve.end(), rest.begin(), rest.end());
    violations = result.violations;
  } else if (result.epochs.size() != reference.epochs.size()) {
    violations.push_back(std::to_string(result.epochs.size()) + " epochs were evaluated");
  }
  if (!result.status.ok()) violations.push_back("ends with: " + result.status.message());
  if (result.weights != reference.weights) violations.push_back("other weights");
  CheckEvaluations(result, disk, &violations);
  if (curve != Curve(reference)) violations.push_back("another curve");
  for (const std::string& violation : violations) *why += violation + "\n";
  return violations.empty() && reference.violations.empty() && reference.status.ok();
}

// More epochs: the job goes on as if it had had them from the start, where the rate does not depend
// on the end. Going on with them as well is a job like any other, on whatever machines.
bool GoesOn(const SimSettings& settings, std::string* why) {
  SimSettings longer = settings;
  longer.experiment.job.epochs = settings.experiment.job.epochs + 2;
  longer.experiment.checkpoint.continues = true;
  const SimResult reference = RunJob(Undisturbed(longer));
  Disk disk;
  SimSettings first = Undisturbed(settings);
  first.servers = settings.servers;
  first.experiment.cluster.workers = settings.experiment.cluster.workers;
  const SimResult before = RunJob(first, &disk);
  longer.faults.disk = 0;
  longer.stop_at = -1;
  const SimResult result = RunJob(longer, &disk);
  std::vector<Point> curve = Curve(before);
  const std::vector<Point> rest = Curve(result);
  curve.insert(curve.end(), rest.begin(), rest.end());
  std::vector<std::string> violations = result.violations;
  if (!result.status.ok()) violations.push_back(result.status.message());
  if (result.weights != reference.weights) violations.push_back("other weights");
  if (curve != Curve(reference)) violations.push_back("another curve");
  const checkpoint::Manifest& last = disk.manifests.rbegin()->second;
  if (last.continuations_size() != 1 || last.continuations(0).version() != before.version) {
    violations.push_back("the manifest does not say what has changed");
  }
  for (const std::string& violation : violations) *why += violation + "\n";
  return violations.empty();
}

int FromEnvironment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : fallback;
}

// Parts of the seeds, so that CTest runs them on all cores: part p takes each kParts-th one.
constexpr int kParts = 20;
class EverySeed : public testing::TestWithParam<int> {};

TEST_P(EverySeed, EndsWithTheSameWeights) {
  const int first = FromEnvironment("KUMO_SIM_FIRST_SEED", 1);
  const int count = FromEnvironment("KUMO_SIM_SEEDS", 2000);
  for (int seed = first + GetParam(); seed < first + count; seed += kParts) {
    std::string why;
    if (Holds(RandomJob(seed), &why)) continue;
    FAIL() << why << "repeat with: KUMO_SIM_FIRST_SEED=" << seed
           << " KUMO_SIM_SEEDS=1 build/release/bin/cluster_test "
              "--gtest_filter=Cluster/EverySeed.EndsWithTheSameWeights/0";
  }
}
INSTANTIATE_TEST_SUITE_P(Cluster, EverySeed, testing::Range(0, kParts));

TEST(Cluster, GoingOnWithMoreEpochsIsHavingHadThemFromTheStart) {
  for (int seed = 1; seed <= 120; ++seed) {
    std::string why;
    EXPECT_TRUE(GoesOn(RandomJob(seed), &why)) << "seed " << seed << ": " << why;
  }
}

// Planted bugs: the checks above are worth something.
struct Planted {
  const char* name;
  Mutation mutation;
};
class PlantedBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFound) {
  bool found = false;
  std::string why;
  for (int seed = 1; seed <= 400 && !found; ++seed) {
    SimSettings settings = RandomJob(seed);
    settings.mutation = GetParam().mutation;
    if (GetParam().mutation ==
        Mutation::kOldGenerationCounts) {  // needs a past, and messages of it
      settings.experiment.sync.push_codec = "1bit";
      settings.experiment.cluster.workers = 3;
      settings.faults.kills = 3;
      settings.faults.restart = 1;
      settings.faults.kill_within = 500 * kMillisecond;
      settings.faults.jitter = 100 * kMillisecond;
    }
    found = !Holds(settings, &why);
  }
  EXPECT_TRUE(found);
}
INSTANTIATE_TEST_SUITE_P(
    Cluster, PlantedBug,
    testing::Values(Planted{"ContributionTwice", Mutation::kContributionTwice},
                    Planted{"ContributionLeftOut", Mutation::kContributionLeftOut},
                    Planted{"RoundSkipped", Mutation::kRoundSkipped},
                    Planted{"OldGenerationCounts", Mutation::kOldGenerationCounts},
                    Planted{"ManifestTooEarly", Mutation::kManifestTooEarly},
                    Planted{"StateLostOnTheWay", Mutation::kStateLostOnTheWay},
                    Planted{"AcknowledgementsLost", Mutation::kAcknowledgementsLost},
                    Planted{"SamplesTwice", Mutation::kSamplesTwice}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace kumo::sim
