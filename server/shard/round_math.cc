#include "server/shard/round_math.h"

#include <atomic>
#include <string>
#include <utility>

#include "server/rules/aggregate.h"
#include "server/shard/subject.h"

namespace kumo {
namespace {

// So that the sum over all partitions fits.
constexpr int64_t kMostWeight = int64_t{1} << 40;

// Recycles `old`, an array of the version that ends, unless others than the version itself hold it:
// messages on their way, or snapshots that are being written. `holders`: how many names the version
// has for the array.
FloatArray Recycle(const FloatArray& old, long holders, size_t elements) {
  if (!old || old.use_count() != holders) return MakeArray(elements);
  // use_count() is a relaxed read. The fence orders all accesses of the last other holder before
  // the writes of the next work.
  std::atomic_thread_fence(std::memory_order_acquire);
  return old;
}

}  // namespace

Version NextArrays(const Rule& rule, int64_t step, bool worker_copy, Version* current,
                   Version* previous) {
  const size_t elements = current->start->size();
  Version next;
  const bool one_array = previous->weights == previous->start;
  next.start = Recycle(previous->start, one_array ? 2 : 1, elements);
  if (!rule.keeps_weights_apart()) {
    next.weights = next.start;
  } else if (one_array) {
    next.weights = MakeArray(elements);
  } else {
    next.weights = Recycle(previous->weights, 1, elements);
  }
  if (worker_copy) next.worker_copy = Recycle(previous->worker_copy, 1, elements);
  *previous = {};
  next.slots = std::exchange(current->slots, {});
  if (step == 1) next.slots.clear();
  while (static_cast<int>(next.slots.size()) < rule.slots()) {
    next.slots.push_back(MakeArray(elements));
  }
  return next;
}

Result<RoundMath> RoundMath::Make(const Experiment& experiment, const JobPlan& plan,
                                  const JobSpec& spec, const ShardMap& map, int server) {
  RoundMath math;
  math.plan_ = plan;
  math.policy_ = RoundPolicy(experiment, spec.layout, map);
  math.layout_ = spec.layout;
  math.metrics_ = spec.metrics;
  math.weight_decay_ = experiment.optimiser.weight_decay;
  math.block_decay_ = experiment.block.weight_decay;
  math.stream_ = map.ServerBytes(server) > kStreamBytes;
  const PlanSettings& of = plan.settings();
  math.corrects_staleness_ = experiment.sync.staleness_correction;
  math.average_samples_ = experiment.evaluation.average_samples;
  const auto evaluated = [&math](std::unique_ptr<Rule> rule) {
    return math.average_samples_ > 0 ? MakeAveragedRule(std::move(rule)) : std::move(rule);
  };
  math.gradient_rule_ = evaluated(MakeGradientRule(experiment.optimiser));
  math.block_rule_ =
      evaluated(MakeBlockRule(experiment.block, of.partitions,
                              int64_t{of.partitions} * of.minibatch * experiment.sync.block));
  math.average_rule_ = evaluated(MakeAverageRule());
  KUMO_ASSIGN_OR_RETURN(math.schedule_,
                        Schedule::Make(experiment.schedule, of.train_samples, of.epochs));
  KUMO_ASSIGN_OR_RETURN(
      math.block_schedule_,
      Schedule::Make(experiment.BlockSchedule(), of.train_samples, of.epochs, "block_schedule"));
  return math;
}

const std::shared_ptr<const Rule>& RoundMath::RuleFor(const RoundPlan& round,
                                                      Segment segment) const {
  if (segment == Segment::kStatistics) return average_rule_;
  return round.local_steps ? block_rule_ : gradient_rule_;
}

Result<CodedContribution> RoundMath::Contribution(const Chunk& chunk, const Message& push) const {
  const wire::Header& header = push.header;
  const RoundPlan round = plan_.Round(header.round());
  CodedContribution contribution;
  const int64_t samples = plan_.PartitionSamples(round, header.partition()).size();
  if (header.samples() != samples) {
    return InvalidArgument(SubjectOf(header) + ": " + std::to_string(header.samples()) +
                           " samples instead of " + std::to_string(samples));
  }
  if (chunk.index == 0) {
    const int64_t measured = plan_.MainSamples(round, header.partition()).size();
    KUMO_RETURN_IF_ERROR(
        metrics_.Check(ReadSums(header.metrics()), measured).WithContext(SubjectOf(header)));
  }
  if (!JobPlan::TakesPart(round, chunk)) {
    if (!push.payload.bytes.empty()) {
      return InvalidArgument(SubjectOf(header) + ": " + std::to_string(push.payload.bytes.size()) +
                             " bytes for weights that are not trained in this round");
    }
    return contribution;
  }
  const int64_t of_span = plan_.SpanSamples(round, chunk, header.partition());
  if (of_span == 0) return contribution;
  if (header.has_weight() && (!policy_.MayWeigh(round, chunk.segment) || header.weight() < 0 ||
                              header.weight() > kMostWeight)) {
    return InvalidArgument(SubjectOf(header) + ": a weight of " + std::to_string(header.weight()));
  }
  // Nothing is decoded of a contribution without weight, and workers send nothing.
  contribution.weight = header.has_weight() ? header.weight() : of_span;
  if (contribution.weight == 0) return contribution;
  const Codec& codec = policy_.PushCodec(round, chunk);
  if (header.codec() != static_cast<uint32_t>(codec.id())) {
    return InvalidArgument(SubjectOf(header) + ": codec " + std::to_string(header.codec()) +
                           " instead of " + std::string(codec.name()));
  }
  const size_t elements = chunk.range.size();
  if (push.payload.bytes.size() != codec.EncodedBytes(elements)) {
    return InvalidArgument(SubjectOf(header) + ": " + std::to_string(push.payload.bytes.size()) +
                           " bytes instead of " + std::to_string(codec.EncodedBytes(elements)));
  }
  KUMO_RETURN_IF_ERROR(codec.Check(push.payload.bytes, elements).WithContext(SubjectOf(header)));
  contribution.codec = &codec;
  contribution.bytes = push.payload.bytes;
  contribution.owner = push.payload.owner;
  return contribution;
}

void RoundMath::Close(const Chunk& chunk, const Version& base, ChunkWork* work, Version* current,
                      Version* previous) const {
  const RoundPlan round = plan_.Round(work->round);
  if (!JobPlan::TakesPart(round, chunk)) {
    Share(round, chunk, work, current);
  } else {
    const RoundPlan span = plan_.SpanOf(round, chunk);
    Step(span, span.first_sample + span.samples.size(), chunk, base, work, current, previous);
  }
}

// The correction of Zhang et al. 2016 (Staleness-aware Async-SGD), with staleness in rounds.
void RoundMath::Apply(const Chunk& chunk, int64_t round, const Arrival& arrival, ChunkWork* work,
                      Version* current, Version* previous) const {
  RoundPlan of = plan_.Round(round);
  if (work->contributions.empty()) {
    Share(of, chunk, work, current);
    return;
  }
  of.step = arrival.step;
  Step(of, plan_.SamplesAt(round + 1), chunk, *current, work, current, previous);
  if (corrects_staleness_ && arrival.since > partitions()) {
    work->info.learning_rate *=
        static_cast<float>(partitions()) / static_cast<float>(arrival.since);
  }
}

void RoundMath::Share(const RoundPlan& round, const Chunk& chunk, ChunkWork* work,
                      Version* current) const {
  work->rule = RuleFor(round, chunk.segment);
  work->next = *current;
  current->slots.clear();
}

// Contributions to statistics are ways from `base` to running means. With a delay, `current` minus
// such a way is no mean: it would overshoot, and variances become negative.
void RoundMath::Step(const RoundPlan& round, int64_t trained, const Chunk& chunk,
                     const Version& base, ChunkWork* work, Version* current,
                     Version* previous) const {
  work->rule = RuleFor(round, chunk.segment);
  work->info.samples = round.samples.size();
  if (round.local_steps) {
    // In the middle: the mean of a linear warm-up over the round, and not 0 at its begin.
    const int64_t middle = round.first_sample + round.samples.size() / 2;
    work->info.learning_rate = schedule_->RateAt(middle, plan_.settings().minibatch);
    work->info.block_rate = block_schedule_->RateAt(middle, 1);
  } else {
    work->info.learning_rate = schedule_->RateAt(round.first_sample, round.samples.size());
    work->info.momentum = schedule_->MomentumAt(round.first_sample, round.samples.size());
  }
  if (chunk.segment == Segment::kDecayed) {
    work->info.weight_decay = round.local_steps ? block_decay_ : weight_decay_;
  }
  // On arrival each contribution counts by its share of the round's samples.
  int64_t samples = work->info.samples;
  if (plan_.on_arrival() && samples > 0) {
    samples = work->contributions.front().weight;
    work->info.weight_decay *= static_cast<float>(samples) / static_cast<float>(work->info.samples);
  }
  work->info.step = round.step;
  work->info.partitions = partitions();
  work->info.factors = chunk.factors;
  if (average_samples_ > 0 && samples > 0) {
    work->info.average_share = AverageShare(average_samples_, trained, samples);
  }
  work->relays = policy_.Relays(round, chunk);
  work->pull_codec = policy_.PullCodec(round, chunk.segment);
  work->pull_context = policy_.PullContext(work->round + 1, chunk.range);
  const bool differences = work->pull_codec != nullptr && policy_.pulls_differences();
  work->next = NextArrays(*work->rule, round.step, differences, current, previous);
  work->current = *current;
  if (chunk.segment == Segment::kStatistics) {
    work->current.start = base.start;
    if (!work->rule->keeps_weights_apart()) work->current.weights = base.start;
  }
  work->stream = stream_;
}

Status RoundMath::CodeStart(const Chunk& chunk, int64_t number, Version* version) const {
  const Codec* const codec = policy_.PullCodec(chunk.segment);
  if (codec == nullptr || policy_.pulls_changes()) return OkStatus();
  CodedNumbers coded = EncodeForPulls(
      *codec, policy_.PullContext(plan_.NumbersSince(number, chunk), chunk.range), *version->start);
  KUMO_RETURN_IF_ERROR(CheckFits(chunk, number, coded.first_bad));
  version->coded = std::move(coded.bytes);
  return OkStatus();
}

Status RoundMath::CheckFits(const Chunk& chunk, int64_t number, int64_t first_bad) const {
  if (first_bad < 0) return OkStatus();
  const int tensor = layout_.TensorAt(chunk.range.begin + first_bad);
  return OutOfRange("the weights after " + std::to_string(number) + " rounds: tensor " +
                    (tensor < 0 ? "?" : layout_.tensors()[tensor].name) + " has become " +
                    policy_.PullCodec(chunk.segment)->DescribeMisfit() +
                    " (sync.pull_codec); a lower schedule.learning_rate usually helps");
}

}  // namespace kumo
