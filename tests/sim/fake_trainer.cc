#include "tests/sim/fake_trainer.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include <glog/logging.h>

#include "common/codec/contribution_encoder.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo::sim {
namespace {

Payload Pack(std::span<const float> numbers) {
  auto copy = std::make_shared<std::vector<float>>(numbers.begin(), numbers.end());
  return {copy, std::as_bytes(std::span<const float>(*copy))};
}

}  // namespace

FakeTrainer::FakeTrainer(uint64_t seed, const JobShape* shape, const JobSpec& spec)
    : seed_(seed), shape_(shape), spec_(spec) {
  for (auto& vector : vectors_) vector.resize(spec_.layout.size());
  end_.resize(spec_.layout.size());
}

std::optional<int64_t> FakeTrainer::WeightOf(uint64_t seed, int64_t round, int partition) {
  if (seed % 4 != 0) return std::nullopt;
  return (round * 7 + int64_t{partition} * 3) % 5;
}

std::vector<Payload> FakeTrainer::InitialWeights() const {
  std::vector<float> all(spec_.layout.size());
  Rng rng(seed_, RngPurpose::kInitialWeights);
  for (float& w : all) w = rng.NextNormal();
  std::vector<Payload> chunks;
  for (const Chunk& chunk : shape_->map.chunks()) {
    chunks.push_back(
        Pack(std::span<const float>(all).subspan(chunk.range.begin, chunk.range.size())));
  }
  return chunks;
}

void FakeTrainer::Install(const InstallAction& install) {
  const Range range = shape_->map.chunks()[install.chunk].range;
  const std::span<float> to =
      std::span<float>(vectors_[install.vector]).subspan(range.begin, range.size());
  if (install.relay) {
    std::vector<float> sum(to.size());
    const size_t length = install.codec->EncodedBytes(to.size());
    for (size_t i = 0; i < install.relay->samples.size(); ++i) {
      install.codec->DecodeAdd(install.payload.bytes.subspan(i * length, length), to.size(), 0,
                               static_cast<float>(install.relay->samples[i]), sum);
    }
    const auto scale = static_cast<float>(1.0 / static_cast<double>(install.relay->round_samples));
    for (size_t i = 0; i < to.size(); ++i) to[i] -= scale * sum[i];
  } else if (install.adds) {
    install.codec->DecodeAdd(install.payload.bytes, to.size(), 0, 1.0f, to);
  } else {
    install.codec->Decode(install.payload.bytes, to.size(), 0, to);
  }
}

void FakeTrainer::Adopt(const AdoptAction& adopt) {
  const CarriedArrays& carried = shape_->policy.carried();
  auto& arrays = carried_[adopt.partition];
  arrays.assign(carried.count(), std::vector<float>(spec_.layout.size()));
  const JobPlan& plan = shape_->plan;
  const float share = shape_->policy.local_share();
  const bool goes_on = adopt.round < plan.rounds() && plan.Round(adopt.round).goes_on;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (share == 0 || !goes_on || !chunk.trained()) continue;
    if (!JobPlan::TakesPart(plan.Round(adopt.round - 1), chunk)) continue;
    for (int64_t at = chunk.range.begin; at < chunk.range.end; ++at) {
      arrays[carried.residual][at] = share * vectors_[0][at];
    }
  }
  for (const auto& array : adopt.arrays) {
    const Range range = shape_->map.chunks()[array.chunk].range;
    std::memcpy(arrays[array.index].data() + range.begin, array.payload.bytes.data(),
                array.payload.bytes.size());
  }
}

TrainedBlock FakeTrainer::Train(const TrainAction& train) {
  const CarriedArrays& carried = shape_->policy.carried();
  auto& arrays = carried_.at(train.partition);
  const Range samples = shape_->plan.MainSamples(train.round, train.partition);
  const JobPlan& plan = shape_->plan;
  const RoundPlan before = train.round.goes_on ? plan.Round(train.round.round - 1) : RoundPlan();
  Rng rng(seed_, RngPurpose::kSimulation, train.partition, train.round.round);
  TrainedBlock block;
  ContributionEncoder encoder;
  // Sums that show in which order they are added.
  const double loss = 0.1 + std::abs(static_cast<double>(vectors_[0][train.partition]));
  block.metrics = test::SumsOf(samples.size(), static_cast<double>(samples.size()) * loss,
                               static_cast<double>(samples.size() / 2));
  block.weight = WeightOf(seed_, train.round.round, train.partition);
  for (const Chunk& chunk : shape_->map.chunks()) {
    const size_t n = chunk.range.size();
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) {
      const size_t at = chunk.range.begin + i;
      // Towards a minimum of the partition's own, with noise; local state moves it too.
      x[i] = 0.1f * (vectors_[0][at] - static_cast<float>(train.partition)) +
             0.01f *
                 static_cast<float>(
                     (at * 2654435761u + train.round.round * 40503u + train.partition * 9176u) %
                     1000u) /
                 1000.0f;
    }
    for (int s = 0; s < carried.optimiser_slots; ++s) {
      if (!chunk.trained()) break;
      auto& slot = arrays[carried.first_slot() + s];
      for (size_t i = 0; i < n; ++i) {
        const size_t at = chunk.range.begin + i;
        slot[at] = 0.5f * slot[at] + x[i];
        x[i] += 0.1f * slot[at];
      }
    }
    // From the base weights, or where the partition has left its own.
    const float share = JobPlan::TakesPart(before, chunk) ? shape_->policy.local_share() : 0.0f;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = chunk.range.begin + i;
      float start = vectors_[0][at];
      if (train.round.goes_on && chunk.trained()) {
        start += arrays[carried.residual][at] - share * start;
      }
      end_[at] = start - x[i];
      x[i] = vectors_[0][at] - end_[at];
    }
    if (!JobPlan::TakesPart(train.round, chunk) ||
        plan.SpanSamples(train.round, chunk, train.partition) == 0) {
      block.contributions.push_back({});
      continue;
    }
    const Codec& codec = shape_->policy.PushCodec(train.round, chunk);
    std::span<float> residual;
    if (carried.residual > 0 && !codec.lossless()) {
      residual = std::span<float>(arrays[0]).subspan(chunk.range.begin, n);
    }
    auto coded = std::make_shared<std::vector<std::byte>>(codec.EncodedBytes(n));
    const EncodeContext context =
        shape_->policy.PushContext(train.round, train.partition, chunk.range);
    CHECK_EQ(encoder.Encode(codec, context, x, nullptr, residual, *coded), -1);
    block.contributions.push_back({coded, std::span<const std::byte>(*coded)});
  }
  encoder.Finish();
  if (!shape_->TrainsAhead(train.round.round, train.partition)) {
    StoreWay(train.round, train.partition, end_);
  }
  if (train.save_state) block.carried = Copies(train.partition);
  return block;
}

// Depends on where the block has ended, on the round, and on the optimiser's state.
TrainedAhead FakeTrainer::TrainAhead(const TrainAheadAction& train) {
  const CarriedArrays& carried = shape_->policy.carried();
  auto& arrays = carried_.at(train.partition);
  const Range samples = shape_->plan.AheadSamples(train.round, train.partition);
  const float steps = static_cast<float>(samples.size());
  const std::vector<float> ends = end_;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (!chunk.trained()) continue;
    for (int64_t at = chunk.range.begin; at < chunk.range.end; ++at) {
      float way = -0.001f * steps * (end_[at] - static_cast<float>(train.partition));
      for (int s = 0; s < carried.optimiser_slots && samples.size() > 0; ++s) {
        float& slot = arrays[carried.first_slot() + s][at];
        slot = 0.25f * slot + way;
        way += 0.1f * slot;
      }
      end_[at] += way;
    }
  }
  StoreWay(shape_->plan.Round(train.round.round - 1), train.partition, ends);
  TrainedAhead ahead;
  ahead.samples = samples.size();
  if (train.save_state) ahead.carried = Copies(train.partition);
  return ahead;
}

void FakeTrainer::StoreWay(const RoundPlan& round, int partition, const std::vector<float>& ends) {
  const CarriedArrays& carried = shape_->policy.carried();
  if (carried.way == 0) return;
  const float merged = 1.0f - shape_->policy.local_share();
  std::vector<float>& way = carried_.at(partition)[carried.residual];
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (!chunk.trained()) continue;
    const bool took_part = JobPlan::TakesPart(round, chunk);
    for (int64_t at = chunk.range.begin; at < chunk.range.end; ++at) {
      way[at] = end_[at] - (took_part ? merged * ends[at] : vectors_[0][at]);
    }
  }
}

std::vector<CarriedArray> FakeTrainer::Copies(int partition) const {
  const auto& arrays = carried_.at(partition);
  std::vector<CarriedArray> copies;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (!chunk.trained()) continue;
    for (size_t i = 0; i < arrays.size(); ++i) {
      copies.push_back(
          {chunk.index, static_cast<int>(i),
           Pack(std::span<const float>(arrays[i]).subspan(chunk.range.begin, chunk.range.size()))});
    }
  }
  return copies;
}

MetricSums FakeTrainer::Evaluate(const EvaluateAction& evaluate) const {
  const Range slice = shape_->plan.EvaluationSamples(spec_.validation_samples, evaluate.partition);
  double sum = 0;
  for (float w : vectors_[evaluate.vector]) sum += std::abs(static_cast<double>(w));
  return test::SumsOf(slice.size(), sum * static_cast<double>(slice.size()), 0);
}

}  // namespace kumo::sim
