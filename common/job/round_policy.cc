#include "common/job/round_policy.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <glog/logging.h>

#include "common/base/rng.h"
#include "common/optimiser/optimiser.h"

namespace kumo {
namespace {

// Tensors in the order of the flat vector.
std::vector<int> ByPosition(const ParameterLayout& layout) {
  std::vector<int> tensors(layout.tensors().size());
  std::iota(tensors.begin(), tensors.end(), 0);
  std::ranges::sort(tensors, {}, [&layout](int i) { return layout.tensor(i).begin; });
  return tensors;
}

}  // namespace

RoundPolicy::RoundPolicy(const Experiment& experiment, const ParameterLayout& layout,
                         const ShardMap& map)
    : RoundPolicy(experiment) {
  if (push_codec_->traits().uses_tensors) MakePushCodecs(layout, map);
  if (form_ != PullForm::kRelay) return;
  auto relays = std::make_shared<std::vector<bool>>();
  for (const Chunk& chunk : map.chunks()) {
    const auto numbers = static_cast<size_t>(chunk.range.size());
    const Codec& codec = push_codecs_ ? *push_codecs_->at(chunk.index) : *push_codec_;
    relays->push_back(experiment.sync.partitions * codec.EncodedBytes(numbers) <=
                      CodecOf(CodecId::kFp32).EncodedBytes(numbers));
  }
  relays_ = std::move(relays);
}

void RoundPolicy::MakePushCodecs(const ParameterLayout& layout, const ShardMap& map) {
  auto codecs = std::make_shared<std::vector<std::unique_ptr<const Codec>>>();
  const std::vector<int> tensors = ByPosition(layout);
  auto tensor = tensors.begin();
  for (const Chunk& chunk : map.chunks()) {
    const Range range = chunk.range;
    while (layout.tensor(*tensor).end <= range.begin) ++tensor;
    std::vector<TensorPiece> pieces;
    for (auto of = tensor; of != tensors.end() && layout.tensor(*of).begin < range.end; ++of) {
      const int64_t begin = std::max(layout.tensor(*of).begin, range.begin);
      pieces.push_back({*of, static_cast<size_t>(begin - range.begin)});
    }
    codecs->push_back(
        push_codec_->ForTensors(std::move(pieces), static_cast<size_t>(range.size())));
  }
  push_codecs_ = std::move(codecs);
}

RoundPolicy::RoundPolicy(const Experiment& experiment)
    : seed_(experiment.job.seed),
      local_steps_(experiment.sync.mode == SyncMode::kBlock),
      resets_(experiment.block.reset_local_state),
      push_codec_(&experiment.sync.PushCodec()),
      may_weigh_(local_steps_ ? experiment.sync.fragments == 1 && experiment.sync.overlap == 0
                              : !experiment.sync.AppliesOnArrival()),
      averages_weights_(experiment.evaluation.average_samples > 0),
      block_keeps_apart_(TraitsOf(experiment.block).keeps_weights_apart) {
  // Weights to which contributions are applied on arrival are kept as the last version, if that is
  // evaluated, and as they are.
  if (const int delay = experiment.sync.Delay(); experiment.sync.mode != SyncMode::kAsync) {
    kept_versions_ = JobPlan::MostKept(delay);
    saved_versions_ = 1 + delay;
  }
  const Codec& pull_codec = experiment.sync.PullCodec();
  if (experiment.RelaysContributions()) {
    form_ = PullForm::kRelay;
  } else {
    if (!pull_codec.lossless()) pull_codec_ = &pull_codec;
    if (!pull_codec.codes_weights()) form_ = PullForm::kDifference;
  }
  carried_.residual = !push_codec_->lossless() && experiment.sync.error_feedback ? 1 : 0;
  carried_.way = experiment.sync.KeepsOwnWeights() ? 1 : 0;
  // The optimizer state of a block that was begun ahead is kept until the block ends.
  const int optimiser_slots = TraitsOf(experiment.optimiser.type).slots;
  if (local_steps_) local_share_ = static_cast<float>(experiment.sync.local_share);
  const bool ahead = experiment.sync.overlap > 0;
  if (local_steps_ && (!resets_ || ahead)) carried_.optimiser_slots = optimiser_slots;
  if (local_steps_) rule_slots_ = TraitsOf(experiment.block).slots;
  if (experiment.sync.ServersStep()) rule_slots_ = std::max(rule_slots_, optimiser_slots);
}

const Codec& RoundPolicy::PushCodec(const RoundPlan& round, const Chunk& chunk) const {
  const bool exact = round.full_precision || chunk.segment == Segment::kStatistics;
  if (exact) return CodecOf(CodecId::kFp32);
  if (push_codecs_ != nullptr) return *push_codecs_->at(chunk.index);
  CHECK(!push_codec_->traits().uses_tensors) << "made without a map";
  return *push_codec_;
}

// A warm-up is in full precision both ways; but weights that a codec rounds are rounded in each
// version alike.
const Codec* RoundPolicy::PullCodec(const RoundPlan& round, Segment segment) const {
  return round.full_precision && pulls_differences() ? nullptr : PullCodec(segment);
}

const Codec* RoundPolicy::PullCodec(Segment segment) const {
  return segment == Segment::kStatistics ? nullptr : pull_codec_;
}

std::optional<Relay> RoundPolicy::RelayOf(const JobPlan& plan, int64_t version,
                                          const Chunk& chunk) const {
  if (form_ != PullForm::kRelay) return std::nullopt;
  const int64_t made_by = plan.NumbersSince(version, chunk) - 1;
  if (made_by < 0) return std::nullopt;
  const RoundPlan round = plan.Round(made_by);
  if (!Relays(round, chunk)) return std::nullopt;
  Relay relay{.codec = &PushCodec(round, chunk)};
  for (int p = 0; p < plan.settings().partitions; ++p) {
    const int64_t samples = plan.SpanSamples(round, chunk, p);
    if (samples == 0) continue;
    relay.samples.push_back(samples);
    relay.round_samples += samples;
  }
  return relay;
}

ExchangeBytes RoundPolicy::BytesOf(const RoundPlan& round, std::span<const Chunk> chunks,
                                   int partitions) const {
  ExchangeBytes bytes;
  for (const Chunk& chunk : chunks) {
    if (chunk.frozen()) continue;
    const auto numbers = static_cast<size_t>(chunk.range.size());
    const auto push = static_cast<int64_t>(PushCodec(round, chunk).EncodedBytes(numbers));
    bytes.push += push;
    if (Relays(round, chunk)) {
      bytes.pull += partitions * push;
      continue;
    }
    const Codec* const pull = PullCodec(round, chunk.segment);
    bytes.pull += static_cast<int64_t>(
        (pull == nullptr ? CodecOf(CodecId::kFp32) : *pull).EncodedBytes(numbers));
  }
  return bytes;
}

EncodeContext RoundPolicy::PushContext(const RoundPlan& round, int partition,
                                       const Range& chunk) const {
  EncodeContext context;
  context.key = Rng(seed_, RngPurpose::kRounding, static_cast<uint64_t>(round.round),
                    static_cast<uint64_t>(partition))
                    .NextUint64();
  context.first = static_cast<uint64_t>(chunk.begin);
  return context;
}

const Codec* RoundPolicy::FindPullCodec(uint32_t id) const {
  for (const Codec* codec : {&CodecOf(CodecId::kFp32), pull_codec_}) {
    if (codec != nullptr && static_cast<uint32_t>(codec->id()) == id) return codec;
  }
  return nullptr;
}

// Its random stream belongs to no partition.
EncodeContext RoundPolicy::PullContext(int64_t version, const Range& chunk) const {
  EncodeContext context;
  context.key =
      Rng(seed_, RngPurpose::kRounding, static_cast<uint64_t>(version), 0, /*c=*/1).NextUint64();
  context.first = static_cast<uint64_t>(chunk.begin);
  return context;
}

bool RoundPolicy::evaluates_apart() const {
  return pulls_differences() || KeepsApart(local_steps_);
}

int RoundPolicy::version_vectors() const {
  return 1 + (KeepsApart(local_steps_) ? 1 : 0) + (pulls_differences() ? 1 : 0);
}

}  // namespace kumo
