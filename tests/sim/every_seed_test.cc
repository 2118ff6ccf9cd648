// Many random jobs in the simulation, with everything that may happen to them: each ends with the
// weights, the curve and the figures that it has undisturbed. And planted bugs, to show that this
// would notice.
//
// EverySeed.EndsWithTheSameWeights runs the jobs. A failing seed prints the command that repeats
// it; KUMO_SIM_SEEDS and KUMO_SIM_FIRST_SEED choose how many and which, and
// other tests of the simulation take the same share of their seeds. With
// KUMO_SIM_PRINT_HASHES=1 each job prints a fingerprint of its messages: two builds that print the
// same fingerprints send the same messages at the same times, apart from the words of texts for
// people.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/cluster_harness.h"

namespace kumo::sim {
namespace {

// One of the codecs that may be chosen; every third time float32, which carries nothing.
CodecId AnyCodec(Rng* rng, bool (*may_be)(const Codec&)) {
  if (rng->NextBelow(3) == 0) return CodecId::kFp32;
  for (;;) {
    const Codec& codec = *AllCodecs()[rng->NextBelow(AllCodecs().size())];
    if (may_be(codec)) return codec.id();
  }
}

// So that several chunks cut a tensor, also for codecs that take 4,096 numbers at a time.
void AddATensorOfSeveralGroups(SimSettings* settings) {
  settings->tensors.push_back({"c.weight", {3, 3000}, Segment::kDecayed});
  // Its files are fetched in pieces of a chunk's size, and a tenth of these may be lost.
  settings->experiment.cluster.join_timeout_s = 600;
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
  e.sync.pull_codec = AnyCodec(&rng, [](const Codec& c) { return c.traits().codes_pulls; });
  e.sync.push_codec = AnyCodec(&rng, [](const Codec&) { return true; });
  e.sync.push_threshold = choose({1, 2}) * 0.01;
  e.sync.topk_percent = choose({1, 20});
  e.sync.topk_values = choose({0, 1}) ? CodecId::kInt8 : CodecId::kOneBit;
  e.sync.residual_factor = choose({5, 10}) * 0.1;
  if (e.sync.ChunkUnit() > 512) AddATensorOfSeveralGroups(&settings);
  const size_t rules = ChoicesOf(BlockRule()).size();
  e.cluster.workers = choose({1, 2, 3});
  settings.servers = choose({1, 2, 3});
  e.checkpoint.every_rounds = choose({0, 0, 1, 3});
  e.checkpoint.best = settings.seed % 2 == 0 ? "accuracy" : "";
  // A tenth of the messages lost: more than six heartbeats in a row, some day.
  e.cluster.suspect_after_s = 5;
  // What a lost worker's partitions carried is gone, unless the job goes back.
  e.cluster.recovery = StateLoss::kExact;
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
  settings.rare_ways = choose({0, 1, 1});
  if (choose({0, 0, 1})) e.checkpoint.disks = CheckpointDisks::kPrivate;
  if (choose({0, 1}) && e.checkpoint.HasPrivateDisks()) faults.disk_losses = 1;
  if (choose({0, 0, 1})) e.evaluation.average_samples = choose({30, 1000});
  if (choose({0, 1})) e.block.rule = ChoicesOf(BlockRule())[rng.NextBelow(rules)].value;
  if (choose({0, 0, 1})) {
    e.block_schedule.type = ScheduleType::kStep;
    e.block_schedule.step = 0.5;
    e.block_schedule.gamma = 0.7;
    e.block_schedule.warmup = 0.5;
  }
  if (choose({0, 1})) {
    const int overlap = choose({1, 2, 3});
    const bool block = e.sync.mode == SyncMode::kBlock;
    e.sync.overlap = block ? std::min(overlap, e.sync.block - 1) : overlap;
  }
  if (e.sync.mode == SyncMode::kBlock && choose({0, 1})) {
    e.sync.fragments = choose({1, 2, 3, 4});
    e.sync.block *= e.sync.fragments;
    e.sync.local_share = choose({0, 0, 1}) * 0.5;
    if (e.sync.fragments > 1) e.block.reset_local_state = false;
  }
  if (choose({0, 0, 1})) settings.tensors[choose({0, 1, 3})].factors.rate = 0;  // frozen
  if (choose({0, 0, 1})) e.job.patience = choose({1, 2});
  if (e.sync.mode == SyncMode::kBlock && choose({0, 0, 0, 1})) {  // contributions are relayed
    if (e.sync.ChunkUnit() == 512) AddATensorOfSeveralGroups(&settings);
    e.sync.push_codec = choose({0, 1}) ? CodecId::kTopk : CodecId::kTopk2bit;
    e.sync.pull_codec = CodecId::kFp32;
    e.block.rule = BlockRule::kAverage;
    e.evaluation.average_samples = 0;
  }
  // FakeTrainer's contributions have weights of their own.
  if (seed % 4 == 0) e.job.seed = 4;
  faults.closes = choose({0, 1});
  if (choose({0, 0, 0, 1})) faults.resets = choose({1, 2});
  return settings;
}

SimSettings Undisturbed(SimSettings settings) {
  settings.faults = Faults{};
  settings.rare_ways = false;
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
    if (said.epoch() != epoch.epoch + 1 || !SameBits(ReadSums(said.sums()), epoch.validation)) {
      violations->push_back("other figures of epoch " + std::to_string(epoch.epoch + 1));
    }
  }
}

// Server 0's disk was lost before the others had copies of what only that disk had: its file, or
// the manifest, without which another server does not offer its own file. The job names the file.
bool IsWithoutADisk(const SimResult& result) {
  return result.lost_disk == 0 && result.violations.empty() &&
         result.status.code() == StatusCode::kFailedPrecondition &&
         result.status.message().find("no server's disk has its file") != std::string::npos;
}

// A job that was run to its end, stops and all.
struct Ended {
  SimResult result;  // of the last run
  std::vector<Point> curve;
  std::vector<std::string> violations;
  bool at_once = true;          // in one run
  bool without_a_disk = false;  // ended since the only disk with a file was lost
};

Ended RunToItsEnd(const SimSettings& settings, Disk* disk) {
  SimSettings next = settings;
  next.hashes_messages = std::getenv("KUMO_SIM_PRINT_HASHES") != nullptr;
  Ended ended;
  SimResult& result = ended.result;
  result = RunJob(next, disk);
  if (next.hashes_messages) {
    std::printf("seed %llu: messages %016llx\n", static_cast<unsigned long long>(settings.seed),
                static_cast<unsigned long long>(result.messages_hash));
  }
  ended.curve = Curve(result);
  ended.violations = result.violations;
  ended.without_a_disk = IsWithoutADisk(result);
  // Stopped, or its last checkpoint could not be saved: goes on from what was saved. Any other end
  // would be a job that hung.
  const std::string& words = result.status.message();
  const bool stopped = settings.stop_at >= 0 && words.starts_with("stopped");
  const bool unsaved = (settings.faults.disk > 0 || settings.stop_at >= 0) &&
                       words.find("saved") != std::string::npos;
  // Server 0's disk was lost when the others, or all workers, had left, since the job was done.
  const bool away = settings.faults.disk_losses > 0 &&
                    (words.starts_with("waited") || words.starts_with("no round has closed"));
  const bool again = result.status.code() == StatusCode::kUnavailable && ended.violations.empty() &&
                     (stopped || unsaved || away);
  if (ended.without_a_disk || !again) return ended;
  ended.at_once = false;
  next.stop_at = -1;
  next.faults.disk = 0;
  next.faults.server_kills = 0;
  // Whatever a server lacks then, it gets.
  next.faults.disk_losses = 0;
  if (next.experiment.checkpoint.HasPrivateDisks() && !away) {
    next.servers = 1 + static_cast<int>(settings.seed % 3);
  }
  result = RunJob(next, disk);
  if (!result.rounds.empty()) {
    const int64_t from = result.rounds.front();
    std::erase_if(ended.curve, [&](const Point& point) { return std::get<0>(point) > from; });
  }
  const std::vector<Point> rest = Curve(result);
  ended.curve.insert(ended.curve.end(), rest.begin(), rest.end());
  ended.violations = result.violations;
  return ended;
}

// Runs a job to its end; whether everything held.
bool Holds(const SimSettings& settings, std::string* why) {
  SimSettings shared = Undisturbed(settings);
  shared.experiment.checkpoint.disks = CheckpointDisks::kShared;
  const SimResult reference = RunJob(shared);
  Disk disk;
  const Ended ended = RunToItsEnd(settings, &disk);
  if (ended.without_a_disk) return true;
  const SimResult& result = ended.result;
  std::vector<std::string> violations = ended.violations;
  if (ended.at_once && result.epochs.size() != reference.epochs.size()) {
    violations.push_back(std::to_string(result.epochs.size()) + " epochs were evaluated");
  }
  if (!result.status.ok()) violations.push_back("ends with: " + result.status.message());
  if (Bits(result.weights) != Bits(reference.weights)) violations.push_back("other weights");
  CheckEvaluations(result, disk, &violations);
  if (ended.curve != Curve(reference)) violations.push_back("another curve");
  for (const std::string& violation : violations) *why += violation + "\n";
  return violations.empty() && reference.violations.empty() && reference.status.ok();
}

// More epochs: the job goes on as if it had had them from the start, where the rate does not depend
// on the end, and patience does not either: a job does not end early within its last two rounds.
// Going on with them as well is a job like any other, on whatever machines.
bool GoesOn(SimSettings settings, std::string* why) {
  settings.experiment.job.patience = 0;
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
  if (Bits(result.weights) != Bits(reference.weights)) violations.push_back("other weights");
  if (curve != Curve(reference)) violations.push_back("another curve");
  const checkpoint::Manifest& last = disk.manifests.rbegin()->second;
  if (last.continuations_size() != 1 || last.continuations(0).version() != before.version) {
    violations.push_back("the manifest does not say what has changed");
  }
  for (const std::string& violation : violations) *why += violation + "\n";
  return violations.empty();
}

// Parts of the seeds, so that CTest runs them on all cores: part p takes each kParts-th one.
constexpr int kParts = 20;
class EverySeed : public testing::TestWithParam<int> {};

TEST_P(EverySeed, EndsWithTheSameWeights) {
  const int first = FromEnvironment("KUMO_SIM_FIRST_SEED", 1);
  const int count = Seeds();
  for (int seed = first + GetParam(); seed < first + count; seed += kParts) {
    std::string why;
    if (Holds(RandomJob(seed), &why)) continue;
    FAIL() << why << "repeat with: KUMO_SIM_FIRST_SEED=" << seed
           << " KUMO_SIM_SEEDS=1 build/release/bin/cluster_test "
              "--gtest_filter=Cluster/EverySeed.EndsWithTheSameWeights/0";
  }
}

// Async mode promises no bits, but that each contribution counts once in each chunk, in its epoch
// and in the figures, whoever dies, stops and resumes (Invariants::OnApplication).
TEST_P(EverySeed, CountsEachContributionOnceInAsyncMode) {
  const int first = FromEnvironment("KUMO_SIM_FIRST_SEED", 1);
  const int count = Seeds() / 2;
  for (int seed = first + GetParam(); seed < first + count; seed += kParts) {
    SimSettings settings = RandomJob(seed);
    Experiment& e = settings.experiment;
    e.sync.mode = SyncMode::kAsync;
    e.sync.staleness = std::array{1, 2, 5, kMostStaleness}[seed / kParts % 4];
    e.sync.staleness_correction = seed % 3 == 0;
    e.sync.overlap = 0;
    e.sync.warmup_samples = 0;
    if (!e.sync.PullCodec().codes_weights()) e.sync.pull_codec = CodecId::kFp16;
    e.cluster.replicas = 1;
    Disk disk;
    const Ended ended = RunToItsEnd(settings, &disk);
    if (ended.without_a_disk) continue;
    std::string why;
    for (const std::string& violation : ended.violations) why += violation + "\n";
    if (!ended.result.status.ok()) why += "ends with: " + ended.result.status.message() + "\n";
    int64_t samples = 0;
    for (const Point& point : ended.curve) samples += std::get<2>(point);
    const int64_t trained = int64_t{settings.train_samples} * e.job.epochs;
    if (e.job.patience == 0 && samples != trained) {
      why += std::to_string(samples) + " samples in the curve instead of " +
             std::to_string(trained) + "\n";
    }
    if (why.empty()) continue;
    FAIL() << why << "repeat with: KUMO_SIM_FIRST_SEED=" << seed
           << " KUMO_SIM_SEEDS=2 build/release/bin/cluster_test --gtest_filter="
              "Cluster/EverySeed.CountsEachContributionOnceInAsyncMode/0";
  }
}
INSTANTIATE_TEST_SUITE_P(Cluster, EverySeed, testing::Range(0, kParts));

// With seed 4 contributions have weights of their own (FakeTrainer).
TEST(Cluster, AsyncModeWithoutStalenessIsGradientModeBitForBit) {
  for (const int seed : {3, 4}) {
    SimSettings settings = SmallJob(3);
    settings.experiment.job.seed = seed;
    settings.experiment.sync.mode = SyncMode::kGradient;
    const SimResult gradient = RunJob(settings);
    settings.experiment.sync.mode = SyncMode::kAsync;
    settings.experiment.sync.staleness = 0;
    const SimResult async = RunJob(settings);
    ExpectFinished(async);
    EXPECT_EQ(Bits(async.weights), Bits(gradient.weights));
    EXPECT_EQ(Curve(async), Curve(gradient));
  }
}

// A seed is a whole job: what repeats it sends the same messages at the same times.
TEST(Cluster, ASeedSendsTheSameMessagesEachTime) {
  const auto hash = [](uint64_t seed) {
    SimSettings settings = RandomJob(seed);
    settings.hashes_messages = true;
    return RunJob(settings).messages_hash;
  };
  for (const uint64_t seed : {3, 4, 5}) {
    const uint64_t first = hash(seed);
    EXPECT_EQ(hash(seed), first) << "seed " << seed;
    EXPECT_NE(hash(seed + 100), first) << "seed " << seed;
  }
}

// A rare way that is never taken shows nothing.
TEST(Cluster, EveryRareWayIsTaken) {
  std::array<RareWays::Count, kRareWays> counts{};
  const auto taken = [](const RareWays::Count& count) { return count.taken > 0; };
  for (int seed = 1; seed <= 200 && !std::ranges::all_of(counts, taken); ++seed) {
    SimSettings settings = RandomJob(seed);
    settings.rare_ways = true;
    const SimResult result = RunJob(settings);
    for (int i = 0; i < kRareWays; ++i) {
      counts[i].reached += result.rare_ways[i].reached;
      counts[i].taken += result.rare_ways[i].taken;
    }
  }
  for (int i = 0; i < kRareWays; ++i) {
    const std::string name = NameOf(static_cast<RareWay>(i));
    RecordProperty(name, std::to_string(counts[i].taken));
    EXPECT_GT(counts[i].reached, 0) << name;
    EXPECT_GT(counts[i].taken, 0) << name << " was reached " << counts[i].reached << " times";
  }
}

TEST(Cluster, GoingOnWithMoreEpochsIsHavingHadThemFromTheStart) {
  for (uint64_t seed = 1; seed <= ShareOf(120); ++seed) {
    std::string why;
    EXPECT_TRUE(GoesOn(RandomJob(seed), &why)) << "seed " << seed << ": " << why;
  }
}

// Planted bugs: the checks above are worth something.
struct Planted {
  const char* name;
  Mutation mutation;
  int first_seed = 1;
};
class PlantedBug : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFound) {
  bool found = false;
  std::string why;
  const int first = GetParam().first_seed;
  for (int seed = first; seed < first + 400 && !found; ++seed) {
    SimSettings settings = RandomJob(seed);
    settings.mutation = GetParam().mutation;
    if (GetParam().mutation ==
        Mutation::kOldGenerationCounts) {  // needs a past, and messages of it
      settings.experiment.sync.push_codec = CodecId::kOneBit;
      settings.experiment.cluster.workers = 3;
      settings.faults.kills = 3;
      settings.faults.restart = 1;
      settings.faults.kill_within = 500 * kMillisecond;
      settings.faults.jitter = 100 * kMillisecond;
    }
    found = !Holds(settings, &why);
    if (found) RecordProperty("seed", seed);
  }
  EXPECT_TRUE(found);
}
INSTANTIATE_TEST_SUITE_P(
    Cluster, PlantedBug,
    testing::Values(Planted{"ContributionTwice", Mutation::kContributionTwice},
                    Planted{"ContributionLeftOut", Mutation::kContributionLeftOut},
                    Planted{"RoundSkipped", Mutation::kRoundSkipped},
                    // Few jobs show it; the first one is the 290th.
                    Planted{"OldGenerationCounts", Mutation::kOldGenerationCounts, 280},
                    Planted{"ManifestTooEarly", Mutation::kManifestTooEarly},
                    Planted{"StateLostOnTheWay", Mutation::kStateLostOnTheWay},
                    Planted{"AcknowledgementsLost", Mutation::kAcknowledgementsLost},
                    Planted{"SamplesTwice", Mutation::kSamplesTwice},
                    Planted{"DifferenceTwice", Mutation::kDifferenceTwice},
                    Planted{"RelayWithoutOne", Mutation::kRelayWithoutOne},
                    Planted{"SpanOfOneRound", Mutation::kSpanOfOneRound},
                    Planted{"WayLost", Mutation::kWayLost}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace kumo::sim
