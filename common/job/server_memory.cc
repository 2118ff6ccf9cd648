#include "common/job/server_memory.h"

#include <algorithm>

#include "common/codec/codec.h"
#include "common/job/round_policy.h"
#include "common/job/shard_map.h"

namespace kumo {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Memory of a server that holds nothing (docs/measurements.md, "Memory").
constexpr int64_t kProcessBytes = int64_t{16} << 20;

// An open round of a chunk, without contributions and the partitions' marks.
constexpr int64_t kOpenRoundBytes = 256;

int64_t LargestPart(const ShardMap& map) {
  int64_t largest = 0;
  for (int i = 0; i < map.servers(); ++i) largest = std::max(largest, map.ServerBytes(i));
  return largest;
}

int64_t MostChunks(const ShardMap& map) {
  int64_t most = 0;
  for (int i = 0; i < map.servers(); ++i) most = std::max(most, std::ssize(map.ServerChunks(i)));
  return most;
}

// Rounds by which a partition may be ahead: not beyond its epoch.
int64_t RoundsAhead(const Experiment& experiment, const JobSpec& spec) {
  const int64_t round = int64_t{experiment.sync.partitions} * experiment.sync.minibatch;
  return std::min<int64_t>(experiment.sync.staleness, spec.train_samples / round);
}

}  // namespace

int64_t ContributionBytes(const Experiment& experiment, int64_t numbers) {
  if (experiment.sync.warmup_samples > 0) return numbers * kFloat;
  const Codec& codec = experiment.sync.PushCodec();
  return static_cast<int64_t>(codec.EncodedBytes(static_cast<size_t>(numbers)));
}

int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters) {
  const RoundPolicy policy(experiment);
  const int64_t arrays = policy.version_vectors() + policy.rule_slots() + policy.saved_versions() -
                         1 + int64_t{experiment.sync.partitions} * policy.carried().count();
  return parameters * arrays * kFloat;
}

MemoryNeed MemoryOfServer(const Experiment& experiment, const JobSpec& spec, int servers) {
  const ShardMap map = ShardMapFor(experiment, spec.layout, std::clamp(servers, 1, kMaxServers));
  const int64_t part = LargestPart(map);
  const RoundPolicy policy(experiment);
  const int64_t slots = policy.rule_slots();
  const int64_t starts = policy.version_vectors();
  const int64_t versions = policy.kept_versions() + 1;  // and the next one while it is made
  const bool twice = experiment.cluster.replicas > 1 && servers > 1;
  const char* const shared_out = servers > 1 ? "network.file" : "network.file, cluster.servers";

  MemoryNeed need("a server");
  need.Add("process", {kProcessBytes});
  need.Add("versions of the weights", {part, versions, starts}, shared_out);
  need.Add("the update rule's state", {part, slots}, "optimiser.type, block.rule");
  if (const Codec* codec = policy.PullCodec(Segment::kDecayed); codec != nullptr) {
    const auto coded =
        static_cast<int64_t>(codec->EncodedBytes(static_cast<size_t>(part / kFloat)));
    need.Add("coded weights", {coded, versions}, "sync.pull_codec");
  } else if (policy.pull_form() == PullForm::kRelay) {
    const size_t coded =
        experiment.sync.PushCodec().EncodedBytes(static_cast<size_t>(part / kFloat));
    need.Add("relayed contributions",
             {static_cast<int64_t>(coded), experiment.sync.partitions, versions},
             "sync.partitions, sync.push_codec");
  }
  need.Add("contributions to open rounds",
           {ContributionBytes(experiment, part / kFloat), experiment.sync.partitions,
            policy.saved_versions()},
           "sync.partitions, sync.push_codec, sync.overlap");
  need.Add("their sum", {part});
  if (experiment.sync.AppliesOnArrival()) {
    // Each contribution makes other weights, while those that slow workers still receive are kept.
    const Codec* const codec = policy.PullCodec(Segment::kDecayed);
    const int64_t weights =
        codec == nullptr
            ? part
            : static_cast<int64_t>(codec->EncodedBytes(static_cast<size_t>(part / kFloat)));
    need.Add("weights on their way to workers",
             {weights, std::min(experiment.cluster.workers, experiment.sync.partitions)},
             "cluster.workers, sync.partitions");
    need.Add("rounds that are open",
             {MostChunks(map), RoundsAhead(experiment, spec),
              kOpenRoundBytes + experiment.sync.partitions / 8},
             "sync.staleness, cluster.chunk_kib");
  }
  need.Add("carried state while it is saved",
           {part, policy.carried().count(), experiment.sync.partitions},
           "sync.partitions, sync.push_codec, block.reset_local_state");
  need.Add("a checkpoint that is written", {part, starts + slots + policy.saved_versions() - 1},
           "");
  if (twice) {
    need.Add("versions of another server", {part, policy.kept_versions() * starts + 2 * slots},
             "cluster.replicas");
  }
  return need;
}

}  // namespace kumo
