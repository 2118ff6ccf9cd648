// A job has at most four stretches of equal rounds: whole epochs of gradient rounds (all of them in
// gradient mode), the front of an epoch in which the warm-up ends, the rest of that epoch in
// blocks, and whole epochs in blocks. Round(r) finds the stretch and divides:
//
//   repeat = (r - first_round) / rounds_per_repeat    the epoch in the stretch
//   within = (r - first_round) % rounds_per_repeat    the round in the epoch
//   samples = [begin + within * samples_per_round, ...), cut at the stretch's end
//
// So a plan takes no memory per round, and each process computes any round in constant time.
//
// Slices. EvenSlice cuts n samples into parts of n / parts or n / parts + 1; the longer ones come
// first. Slices are contiguous and cover the range, so each sample is in exactly one.
//
// Limits. 2^40 samples and 10^6 epochs keep all products below 2^63; the settings may come from a
// peer, so Make checks them first.
#include "common/job/job_plan.h"

#include <algorithm>
#include <string>

#include <glog/logging.h>

namespace kumo {
namespace {

Range EvenSlice(Range range, int part, int parts) {
  const int64_t n = range.size();
  const int64_t quotient = n / parts;
  const int64_t remainder = n % parts;
  const int64_t begin = range.begin + part * quotient + std::min<int64_t>(part, remainder);
  return {begin, begin + quotient + (part < remainder ? 1 : 0)};
}

// Requires settings that the option table and ProblemsOfRounds accept.
void CheckRanges(const PlanSettings& settings) {
  CHECK_GE(settings.partitions, 1);
  CHECK_GE(settings.minibatch, 1);
  CHECK_GE(settings.block, 1);
  CHECK_GE(settings.epochs, 1);
  CHECK(settings.overlap >= 0 && settings.overlap < settings.block) << settings.overlap;
  const int most = settings.mode == SyncMode::kAsync      ? kMostStaleness
                   : settings.mode == SyncMode::kGradient ? kMostDelay
                                                          : 0;
  CHECK(settings.delay >= 0 && settings.delay <= most) << settings.delay;
  CHECK(settings.fragments >= 1 && settings.fragments <= kMostFragments) << settings.fragments;
  CHECK_GE(settings.warmup_samples, 0);
}

}  // namespace

Result<JobPlan> JobPlan::Make(const PlanSettings& settings) {
  CheckRanges(settings);
  if (settings.train_samples < 1) {
    return InvalidArgument("training samples = " + std::to_string(settings.train_samples) +
                           ": must be at least 1");
  }
  if (settings.train_samples > int64_t{1} << 40 || settings.epochs > 1'000'000) {
    return InvalidArgument("a job of " + std::to_string(settings.train_samples) + " samples and " +
                           std::to_string(settings.epochs) + " epochs is too long");
  }

  constexpr int64_t kMostSamplesARound = int64_t{1} << 40;
  if (settings.minibatch > kMostSamplesARound / settings.partitions / settings.block) {
    return InvalidArgument("a round of " + std::to_string(settings.partitions) + " partitions, " +
                           std::to_string(settings.block) + " minibatches each of " +
                           std::to_string(settings.minibatch) + " samples is too long");
  }
  JobPlan plan;
  plan.settings_ = settings;
  const int64_t n = settings.train_samples;
  int64_t warmup =
      settings.mode == SyncMode::kBlock ? settings.warmup_samples : n * settings.epochs;
  warmup = std::min(warmup, n * settings.epochs);
  const int whole = static_cast<int>(warmup / n);  // epochs in gradient mode
  const int64_t part = warmup % n;                 // and the start of one more
  plan.AddStretch(0, whole, {0, n}, /*local_steps=*/false);
  if (part > 0) {
    plan.AddStretch(whole, 1, {0, part}, /*local_steps=*/false);
    plan.first_block_round_ = plan.rounds_;
    plan.AddStretch(whole, 1, {part, n}, /*local_steps=*/true);
  } else {
    plan.first_block_round_ = plan.rounds_;
  }
  const int rest = whole + (part > 0 ? 1 : 0);
  plan.AddStretch(rest, settings.epochs - rest, {0, n}, /*local_steps=*/true);
  return plan;
}

void JobPlan::AddStretch(int first_epoch, int64_t repeats, Range samples, bool local_steps) {
  if (repeats <= 0) return;
  Stretch stretch;
  stretch.first_round = rounds_;
  stretch.repeats = repeats;
  stretch.first_epoch = first_epoch;
  stretch.samples = samples;
  stretch.local_steps = local_steps;
  stretch.samples_per_round =
      int64_t{settings_.partitions} * settings_.minibatch * (local_steps ? settings_.block : 1);
  stretch.rounds_per_repeat =
      (samples.size() + stretch.samples_per_round - 1) / stretch.samples_per_round;
  rounds_ += stretch.rounds_per_repeat * repeats;
  stretches_.push_back(stretch);
}

const JobPlan::Stretch& JobPlan::StretchOf(int64_t round) const {
  CHECK_GE(round, 0);
  CHECK_LT(round, rounds_);
  auto stretch = stretches_.rbegin();
  while (stretch->first_round > round) ++stretch;
  return *stretch;
}

RoundPlan JobPlan::Round(int64_t round) const {
  const Stretch* const stretch = &StretchOf(round);

  const int64_t repeat = (round - stretch->first_round) / stretch->rounds_per_repeat;
  const int64_t within = (round - stretch->first_round) % stretch->rounds_per_repeat;
  RoundPlan plan;
  plan.round = round;
  plan.epoch = stretch->first_epoch + static_cast<int>(repeat);
  plan.local_steps = stretch->local_steps;
  plan.samples.begin = stretch->samples.begin + within * stretch->samples_per_round;
  plan.samples.end =
      std::min(plan.samples.begin + stretch->samples_per_round, stretch->samples.end);
  plan.first_sample = plan.epoch * settings_.train_samples + plan.samples.begin;
  plan.full_precision = plan.first_sample < settings_.warmup_samples;
  plan.ends_epoch = plan.samples.end == settings_.train_samples;
  plan.step = round + 1 - (plan.local_steps ? first_block_round_ : 0);
  if (plan.local_steps && within > 0) {
    plan.ahead = int64_t{settings_.overlap} * settings_.minibatch;
    plan.goes_on = settings_.own_weights;
  }
  if (plan.local_steps && settings_.fragments > 1 && within + 1 < stretch->rounds_per_repeat) {
    plan.fragment = static_cast<int>(within % settings_.fragments);
  }
  return plan;
}

RoundPlan JobPlan::SpanOf(const RoundPlan& round, const Chunk& chunk) const {
  const int fragments = settings_.fragments;
  if (!round.local_steps || fragments == 1 || !chunk.trained()) return round;
  const Stretch& stretch = StretchOf(round.round);
  // In each repeat the chunk takes part in every F-th round from its fragment's number on, and in
  // the last one.
  const auto before = [&](int64_t within) {  // rounds before this one
    return (within - chunk.fragment + fragments - 1) / fragments;
  };
  const auto of_repeat = [&](const Stretch& of) { return before(of.rounds_per_repeat - 1) + 1; };
  const int64_t repeat = (round.round - stretch.first_round) / stretch.rounds_per_repeat;
  const int64_t within = (round.round - stretch.first_round) % stretch.rounds_per_repeat;
  const int64_t earlier = before(within);
  RoundPlan span = round;
  span.step = earlier + 1 + repeat * of_repeat(stretch);
  for (const Stretch& of : stretches_) {
    if (&of == &stretch) break;
    if (of.local_steps) span.step += of.repeats * of_repeat(of);
  }
  const int64_t first = earlier == 0 ? 0 : chunk.fragment + (earlier - 1) * fragments + 1;
  const int64_t back = (within - first) * stretch.samples_per_round;
  span.samples.begin -= back;
  span.first_sample -= back;
  return span;
}

int64_t JobPlan::SpanSamples(const RoundPlan& round, const Chunk& chunk, int partition) const {
  int64_t samples = 0;
  const RoundPlan span = SpanOf(round, chunk);
  RoundPlan of = round;
  while (true) {
    samples += PartitionSamples(of, partition).size();
    if (of.samples.begin <= span.samples.begin) return samples;
    of = Round(of.round - 1);
  }
}

int64_t JobPlan::NumbersSince(int64_t version, const Chunk& chunk) const {
  if (chunk.frozen()) return 0;
  while (version > 0 && !TakesPart(Round(version - 1), chunk)) --version;
  return version;
}

bool JobPlan::SameNumbers(int64_t a, int64_t b, const Chunk& chunk) const {
  const auto [older, newer] = std::minmax(a, b);
  return older >= 0 && newer <= rounds_ && NumbersSince(newer, chunk) <= older;
}

int64_t JobPlan::SamplesAt(int64_t version) const {
  return version == rounds_ ? samples() : Round(version).first_sample;
}

Range JobPlan::EpochOf(int64_t round) const {
  const int64_t rounds = stretches_.front().rounds_per_repeat;
  const int64_t begin = round / rounds * rounds;
  return {begin, begin + rounds};
}

int64_t JobPlan::BaseOf(int64_t round) const {
  return delay() == 0 ? round : std::max(EpochOf(round).begin, round - delay());
}

Range JobPlan::RoundsFrom(int64_t version) const {
  if (version >= rounds_) return {rounds_, rounds_};
  if (delay() == 0) return {version, version + 1};
  const Range epoch = EpochOf(version);
  const int64_t end = std::min(version + delay() + 1, epoch.end);
  return {version == epoch.begin ? version : std::min(version + delay(), end), end};
}

int64_t JobPlan::LastOpen(int64_t version) const {
  return version >= rounds_ ? rounds_ - 1 : RoundsFrom(version).end - 1;
}

bool JobPlan::EndsPart(const RoundPlan& round, int parts) const {
  // Both below 2^40 * 10^6.
  const auto part = [&](int64_t position) { return position * parts / settings_.train_samples; };
  return part(round.samples.end) > part(round.samples.begin);
}

Range JobPlan::PartitionSamples(const RoundPlan& round, int partition) const {
  return EvenSlice(round.samples, partition, settings_.partitions);
}

Range JobPlan::AheadSamples(const RoundPlan& round, int partition) const {
  const Range slice = PartitionSamples(round, partition);
  if (slice.size() == 0) return slice;
  const int64_t before_the_last = (slice.size() - 1) / settings_.minibatch * settings_.minibatch;
  return {slice.begin, slice.begin + std::min(round.ahead, before_the_last)};
}

Range JobPlan::MainSamples(const RoundPlan& round, int partition) const {
  return {AheadSamples(round, partition).end, PartitionSamples(round, partition).end};
}

int64_t JobPlan::MeasuredSamples(const RoundPlan& round) const {
  if (round.ahead == 0) return round.samples.size();
  int64_t measured = 0;
  for (int p = 0; p < settings_.partitions; ++p) measured += MainSamples(round, p).size();
  return measured;
}

int64_t JobPlan::LargestSlice() const {
  int64_t largest = 0;
  for (const Stretch& stretch : stretches_) {
    const int64_t round = std::min(stretch.samples_per_round, stretch.samples.size());
    largest = std::max(largest, EvenSlice({0, round}, 0, settings_.partitions).size());
  }
  return largest;
}

int64_t JobPlan::SmallestPart(int part) const {
  int64_t smallest = part;
  for (const Stretch& stretch : stretches_) {
    const int64_t rest = stretch.samples.size() % stretch.samples_per_round;
    for (const int64_t round :
         {std::min(stretch.samples_per_round, stretch.samples.size()), rest}) {
      for (const int partition : {0, settings_.partitions - 1}) {
        const int64_t slice = EvenSlice({0, round}, partition, settings_.partitions).size();
        if (slice == 0) continue;
        const int64_t last = slice % part;
        smallest = std::min<int64_t>(smallest, last > 0 ? last : part);
      }
    }
  }
  return smallest;
}

Range JobPlan::EvaluationSamples(int64_t samples, int partition) const {
  return EvenSlice({0, samples}, partition, settings_.partitions);
}

int JobPlan::EvaluatedEpoch(int64_t version) const {
  if (version < 1 || version > rounds_) return -1;
  const RoundPlan last = Round(version - 1);
  if (!last.ends_epoch) return -1;
  if (version == rounds_) return last.epoch;
  const int every = settings_.evaluate_every_epochs;
  return every > 0 && (last.epoch + 1) % every == 0 ? last.epoch : -1;
}

}  // namespace kumo
