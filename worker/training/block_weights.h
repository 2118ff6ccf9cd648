// Block weights: a worker's weights around the steps of a block: the pulled weights, the start of
// the block, its contribution, and the arrays that its partition carries to the next block.
//
// Vectors of the layout in a device's memory: the base weights, the weights that steps move, the
// evaluated ones (if the update rule or the pull codec keeps them apart), and the carried arrays of
// each partition. All work is queued on the backend.
//
// Weights of a partition's own. A block ends at weights y, which make the contribution. With
// sync.overlap the partition trains on from there to z (else z is y). When the next version s has
// arrived, it continues from
//   s + (z - y)                       the chunks that took part in the round,
//   (1 - a)(s + z - y) + a z          the same with sync.local_share = a,
//   z                                 chunks that took no part (sync.fragments).
// So each step is in one contribution. The partition carries its way w, which is z - (1 - a) y, or
// z - s for chunks that took no part, and starts from (1 - a) s + w, or s + w. Running statistics
// are not carried. Until the contribution is coded, the carried array holds y.
//
// Owned by a training engine, whose threads it has: Begin and End belong to its first thread, Code,
// KeepAhead and the Installs between them perhaps to its second one (training_engine.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/round_policy.h"
#include "common/job/shard_map.h"
#include "common/optimiser/optimiser.h"
#include "common/settings/experiment.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"
#include "models/graph/matrices.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/training/contribution.h"
#include "worker/training/partition_arrays.h"

namespace kumo {

// The vectors into which versions are decoded.
class InstalledWeights {
 public:
  // Both must outlive this object.
  InstalledWeights(const ParameterLayout* layout, Backend* backend)
      : layout_(*layout), backend_(backend) {}

  // Allocates the base weights.
  void Attach(const ShardMap* map);
  void Install(const InstallAction& install);
  const float* base() const { return base_.data(); }
  // Requires that the vector has been installed.
  float* Of(wire::Vector vector) { return (vector == wire::START ? base_ : evaluated_).data(); }

 private:
  // Steps the weights of a chunk with `numbers` elements by the contributions to it
  // (RoundPolicy::Relays).
  void Step(const Relay& relay, std::span<const std::byte> contributions, int64_t numbers,
            float* weights);

  const ParameterLayout& layout_;
  Backend* const backend_;
  const ShardMap* map_ = nullptr;
  DeviceArray<float> base_, evaluated_;
  DeviceArray<float> sum_;  // of relayed contributions to a chunk
};

class BlockWeights {
 public:
  // Allocates the weights that steps move. layout and backend must outlive this object.
  BlockWeights(const Experiment& experiment, const ParameterLayout* layout, Backend* backend);

  // Allocates the base weights. optimiser: the local one, which steps these tensors as matrices, if
  // it does; null if it is a program's. `shape` and `optimiser` must outlive this object.
  void Attach(const JobShape* shape, const Optimiser* optimiser,
              std::span<const MatrixTensor> matrices);

  // The weights that steps move.
  float* data() { return weights_.data(); }
  InstalledWeights& installed() { return installed_; }
  PartitionArrays& partitions() { return partitions_; }
  const PartitionArrays& partitions() const { return partitions_; }
  // Numbers of the weights that are trained, at the front of the layout.
  int64_t TrainedNumbers() const { return layout_.segment(Segment::kUndecayed).end; }

  // Steps that the optimiser of a partition has taken before the block of a round, since its slots
  // were zero; 0 if each block resets them. Negative if the slots of the block's front, the steps
  // ahead, were lost: the first step of its rest is number 1 then.
  int64_t StepsBefore(const RoundPlan& round, int partition,
                      const PartitionArrays::Arrays& carried) const;
  // Requires that the base weights of adopt.round are installed.
  void Adopt(const AdoptAction& adopt);
  // Queues the begin of a block, and plans its contribution. gradients: in a gradient round the
  // mean gradient when the block has ended.
  void Begin(const TrainAction& train, const float* gradients);
  // Contribution of the block that has begun and is not yet coded.
  Contribution* contribution() { return &*contribution_; }
  // Queues the end of the block.
  void End(const TrainAction& train);
  // Ends the coding of the contribution, and adds it and the carried arrays to `block`. OutOfRange,
  // naming round, partition and tensor, if an element is not finite or saturates its codec
  // permanently.
  Status Code(const TrainAction& train, TrainedBlock* block);
  // Queues the end of steps ahead, and adds the carried arrays to `ahead`. Comes after Code.
  Status KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead);

 private:
  // Steps of the job's local optimisers before the block of a round.
  int64_t StepsBefore(const RoundPlan& round) const { return (round.step - 1) * block_; }
  // Copies of a partition's arrays for its next owner, who counts `steps` steps of the optimiser: a
  // state that was lost meanwhile is made right for that count, unless blocks reset it or it is a
  // program's, whose meaning is not known.
  Result<std::vector<CarriedArray>> CopiesFor(int64_t steps, int partition,
                                              PartitionArrays::Arrays* carried) const;
  // Minibatches of a round's block that a partition trains before the round.
  int64_t FrontOf(int64_t round, int partition) const;
  // Calls `use` with the trained numbers that take part in a round, or with the others.
  void EachRange(const RoundPlan& round, bool taking_part,
                 const std::function<void(Range)>& use) const;
  // Queues the begin of a round from the partition's own weights: `weights_` are the base.
  void GoOn(const RoundPlan& round, PartitionArrays::Arrays* carried);
  // The carried array, which holds where the round's block has ended, becomes the way.
  void KeepWay(const RoundPlan& round, PartitionArrays::Arrays* carried);

  const ParameterLayout& layout_;
  Backend* const backend_;
  const JobShape* shape_ = nullptr;
  const Optimiser* optimiser_ = nullptr;
  std::vector<Range> moments_;  // numbers that the optimiser does not step as matrices
  const int64_t block_;         // minibatches of a round
  const int64_t ahead_;         // of them, those that are trained before the round
  const int64_t minibatch_;     // samples
  DeviceArray<float> weights_;
  InstalledWeights installed_;
  PartitionArrays partitions_;                // those that are leased
  std::optional<Contribution> contribution_;  // of the block that is trained and coded
};

}  // namespace kumo
