// What the partitions that a worker holds carry from round to round, on its device: the codec's
// residual, and the slots of a local optimiser that is not reset with each block. Each array is as
// long as the weights.
//
// Owned by the Trainer; one thread.
#pragma once

#include <map>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"
#include "worker/session/actions.h"

namespace kumo {

class PartitionArrays {
 public:
  struct Arrays {
    DeviceArray<float> residual;   // empty where the codec needs none
    DeviceArray<float> optimiser;  // all slots, where the local optimiser is not reset
  };

  // residual, slots: what each partition carries. layout and backend are borrowed for life.
  PartitionArrays(bool residual, int slots, const ParameterLayout* layout, Backend* backend)
      : has_residual_(residual), slots_(slots), layout_(*layout), backend_(backend) {}

  // Arrays of each partition.
  int count() const { return (has_residual_ ? 1 : 0) + slots_; }
  // A partition comes, with what it carries; what is not named is zero.
  void Adopt(const AdoptAction& adopt, const ShardMap& map);
  void Drop(int partition) { held_.erase(partition); }
  // Requires that it has come and not gone.
  Arrays& Of(int partition) { return held_.at(partition); }
  // The next partition that is held after `partition`; -1 where there is none.
  int Next(int partition) const;

  // Adds copies of a partition's arrays to its block. The device's failure.
  Status AppendTo(const Arrays& arrays, const ShardMap& map, TrainedBlock* block) const;

 private:
  const bool has_residual_;
  const int slots_;
  const ParameterLayout& layout_;
  Backend* const backend_;
  std::map<int, Arrays> held_;  // by partition
};

}  // namespace kumo
