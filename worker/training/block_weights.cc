// Life of a partition's block, with base weights s, end weights y, weights after the steps ahead z,
// local share a (block_weights.h):
//
//   Begin       weights <- s; if the round goes on (GoOn): s - a s + way for chunks that took part
//               in the round before, s + way for the others
//   steps       move `weights`
//   End         way <- weights, that is y. Without steps ahead, KeepWay follows at once, with z = y
//   Code        codes the contribution from y (or from the gradients)
//   KeepAhead   way <- z - (1 - a) y for chunks that took part, z - s for the others (KeepWay)
//
// With steps ahead the array `way` holds y until the contribution is coded, and the way afterwards:
// a partition carries one vector for both. Statistics are not carried: KeepWay zeroes them.
//
// Adopt: a partition comes from another worker with its arrays, or without them if they were lost.
// The optimiser's count of steps then starts anew (lost_before), and the next owner's copy is
// rescaled to the count that the job prescribes (CopiesFor). A lost way of chunks that took part
// becomes a s, so that GoOn begins at the base weights.
#include "worker/training/block_weights.h"

#include <cstddef>
#include <set>

#include "common/job/round_policy.h"

namespace kumo {

void InstalledWeights::Attach(const ShardMap* map) {
  map_ = map;
  base_ = {*backend_, layout_.size(), "the base weights"};
}

void InstalledWeights::Install(const InstallAction& install) {
  DeviceArray<float>& vector = install.vector == wire::START ? base_ : evaluated_;
  if (vector.empty()) vector = {*backend_, layout_.size(), "the evaluated weights"};
  const Range range = map_->chunks()[install.chunk].range;
  float* const to = vector.data() + range.begin;
  if (install.relay) {
    Step(*install.relay, install.payload.bytes, range.size(), to);
  } else if (install.adds) {
    backend_->DecodeAdd(*install.codec, install.payload.bytes, 1.0f, range.size(), to);
  } else {
    backend_->Decode(*install.codec, install.payload.bytes, range.size(), to);
  }
}

void InstalledWeights::Step(const Relay& relay, std::span<const std::byte> contributions,
                            int64_t numbers, float* weights) {
  if (sum_.size() < numbers) sum_ = {*backend_, numbers, "relayed contributions"};
  backend_->Zero(sum_.data(), static_cast<size_t>(numbers) * sizeof(float));
  const size_t length = relay.codec->EncodedBytes(static_cast<size_t>(numbers));
  for (size_t i = 0; i < relay.samples.size(); ++i) {
    backend_->DecodeAdd(*relay.codec, contributions.subspan(i * length, length),
                        static_cast<float>(relay.samples[i]), numbers, sum_.data());
  }
  const auto scale = static_cast<float>(1.0 / static_cast<double>(relay.round_samples));
  backend_->AddTo(-scale, sum_.data(), numbers, weights);
}

BlockWeights::BlockWeights(const Experiment& experiment, const ParameterLayout* layout,
                           Backend* backend)
    : layout_(*layout),
      backend_(backend),
      block_(experiment.sync.RoundMinibatches()),
      ahead_(experiment.sync.overlap),
      minibatch_(experiment.sync.minibatch),
      weights_(*backend, layout->size(), "the weights"),
      installed_(layout, backend),
      partitions_(RoundPolicy(experiment).carried(), layout, backend) {}

void BlockWeights::Attach(const JobShape* shape, const Optimiser* optimiser,
                          std::span<const MatrixTensor> matrices) {
  shape_ = shape;
  optimiser_ = optimiser;
  if (optimiser != nullptr && !optimiser->traits().steps_matrices) matrices = {};
  int64_t begin = 0;
  for (const MatrixTensor& matrix : matrices) {
    const Range range = layout_.tensor(matrix.tensor);
    moments_.push_back({begin, range.begin});
    begin = range.end;
  }
  moments_.push_back({begin, layout_.size()});
  installed_.Attach(&shape->map);
}

void BlockWeights::Begin(const TrainAction& train, const float* gradients) {
  PartitionArrays::Arrays& carried = partitions_.Of(train.partition);
  backend_->Copy(installed_.base(), static_cast<size_t>(weights_.bytes()), weights_.data());
  if (train.round.goes_on) GoOn(train.round, &carried);
  const bool ahead = shape_->TrainsAhead(train.round.round, train.partition);
  const float* const end = ahead ? carried.way.data() : weights_.data();
  contribution_.emplace(
      *shape_, train.round, train.partition,
      Contribution::Vectors{installed_.base(), end, gradients, carried.residual.data()}, backend_);
}

void BlockWeights::End(const TrainAction& train) {
  PartitionArrays::Arrays& carried = partitions_.Of(train.partition);
  if (carried.way.empty()) return;
  backend_->Copy(weights_.data(), static_cast<size_t>(weights_.bytes()), carried.way.data());
  if (!shape_->TrainsAhead(train.round.round, train.partition)) KeepWay(train.round, &carried);
}

Status BlockWeights::Code(const TrainAction& train, TrainedBlock* block) {
  KUMO_RETURN_IF_ERROR(contribution_->Finish());
  if (const auto bad = contribution_->first_bad()) {
    return BadNumberError(*bad, train.round.round, train.partition, layout_);
  }
  block->contributions = contribution_->payloads();
  contribution_.reset();
  if (train.save_state) {
    KUMO_ASSIGN_OR_RETURN(block->carried,
                          CopiesFor(StepsBefore(train.round) + block_, train.partition,
                                    &partitions_.Of(train.partition)));
  }
  return OkStatus();
}

Status BlockWeights::KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead) {
  PartitionArrays::Arrays& carried = partitions_.Of(train.partition);
  KeepWay(shape_->plan.Round(train.round.round - 1), &carried);
  if (train.save_state) {
    KUMO_ASSIGN_OR_RETURN(ahead->carried,
                          CopiesFor(StepsBefore(train.round) + ahead_, train.partition, &carried));
  }
  return OkStatus();
}

void BlockWeights::EachRange(const RoundPlan& round, bool taking_part,
                             const std::function<void(Range)>& use) const {
  Range range;
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (chunk.range.begin >= TrainedNumbers()) break;
    if (JobPlan::TakesPart(round, chunk) != taking_part) continue;
    if (range.end != chunk.range.begin) {
      if (range.size() > 0) use(range);
      range.begin = chunk.range.begin;
    }
    range.end = chunk.range.end;
  }
  if (range.size() > 0) use(range);
}

void BlockWeights::GoOn(const RoundPlan& round, PartitionArrays::Arrays* carried) {
  if (const float share = shape_->policy.local_share(); share > 0) {
    EachRange(shape_->plan.Round(round.round - 1), true, [&](Range range) {
      backend_->AddTo(-share, installed_.base() + range.begin, range.size(),
                      weights_.data() + range.begin);
    });
  }
  backend_->AddTo(1.0f, carried->way.data(), TrainedNumbers(), weights_.data());
}

// The multiple of 0 turns -0 into 0.
void BlockWeights::KeepWay(const RoundPlan& round, PartitionArrays::Arrays* carried) {
  float* const way = carried->way.data();
  const float share = 1.0f - shape_->policy.local_share();
  EachRange(round, true, [&](Range range) {
    float* const ended = way + range.begin;
    backend_->Combine(-share, ended, 0.0f, ended, range.size(), ended);
  });
  EachRange(round, false, [&](Range range) {
    const float* const base = installed_.base() + range.begin;
    backend_->Combine(-1.0f, base, 0.0f, base, range.size(), way + range.begin);
  });
  const int64_t numbers = TrainedNumbers();
  backend_->AddTo(1.0f, weights_.data(), numbers, way);
  backend_->Zero(way + numbers, static_cast<size_t>(layout_.size() - numbers) * sizeof(float));
}

int64_t BlockWeights::StepsBefore(const RoundPlan& round, int partition,
                                  const PartitionArrays::Arrays& carried) const {
  const bool resets = shape_->policy.resets_local_state();
  const int64_t before = resets ? 0 : StepsBefore(round);
  const int64_t lost = carried.lost_before;
  if (lost < 0 || (resets && lost != round.round)) return before;
  return before - FrontOf(lost, partition) - (resets ? 0 : StepsBefore(shape_->plan.Round(lost)));
}

int64_t BlockWeights::FrontOf(int64_t round, int partition) const {
  return shape_->plan.AheadSamples(shape_->plan.Round(round), partition).size() / minibatch_;
}

Result<std::vector<CarriedArray>> BlockWeights::CopiesFor(int64_t steps, int partition,
                                                          PartitionArrays::Arrays* carried) const {
  const bool resets = shape_->policy.resets_local_state();
  const int64_t lost = carried->lost_before;
  if (lost < 0 || resets || optimiser_ == nullptr) {
    return partitions_.Copies(*carried, shape_->map);
  }
  const int64_t since = steps - FrontOf(lost, partition) - StepsBefore(shape_->plan.Round(lost));
  const auto factors = optimiser_->FactorsBetween(std::max<int64_t>(since, 1), steps);
  return partitions_.Copies(*carried, shape_->map, [&](int slot, Range of, std::span<float> copy) {
    for (const Range& moments : moments_) {
      const int64_t end = std::min(moments.end, of.end);
      for (int64_t i = std::max(moments.begin, of.begin); i < end; ++i) {
        copy[i - of.begin] *= factors[slot];
      }
    }
  });
}

void BlockWeights::Adopt(const AdoptAction& adopt) {
  const bool lost = partitions_.Adopt(adopt, shape_->map);
  if (lost && adopt.round < shape_->plan.rounds() && shape_->plan.Round(adopt.round).local_steps) {
    partitions_.Of(adopt.partition).lost_before = adopt.round;
  }
  const float share = shape_->policy.local_share();
  if (share == 0 || adopt.round >= shape_->plan.rounds()) return;
  // A lost way of chunks that took part becomes share * base: GoOn then begins at the base.
  if (!shape_->plan.Round(adopt.round).goes_on) return;
  const RoundPlan before = shape_->plan.Round(adopt.round - 1);
  PartitionArrays::Arrays& carried = partitions_.Of(adopt.partition);
  std::set<int> stored;
  for (const CarriedArray& array : adopt.arrays) {
    if (array.index == shape_->policy.carried().residual) stored.insert(array.chunk);
  }
  for (const Chunk& chunk : shape_->map.chunks()) {
    if (!JobPlan::TakesPart(before, chunk) || !chunk.trained()) continue;
    if (stored.contains(chunk.index)) continue;
    backend_->AddTo(share, installed_.base() + chunk.range.begin, chunk.range.size(),
                    carried.way.data() + chunk.range.begin);
  }
}

}  // namespace kumo
