// Carried arrays of the partitions that a worker holds, on its device (CarriedArrays): the codec's
// residual, the way of the partition's own weights from the servers' weights, and the slots of a
// local optimiser whose state goes on. Each array is as long as the weights.
//
// Part of BlockWeights, and not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "common/job/round_policy.h"
#include "common/job/shard_map.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"
#include "worker/session/actions.h"

namespace kumo {

class PartitionArrays {
 public:
  struct Arrays {
    DeviceArray<float> residual;   // empty if the codec needs none
    DeviceArray<float> way;        // empty if partitions have no weights of their own
    DeviceArray<float> optimiser;  // all slots; empty if no state goes on
    // The round before whose block the slots began at zero although the partition had been trained:
    // they had been lost with their worker. -1: nothing was lost.
    int64_t lost_before = -1;
  };
  // Changes a copy of an optimiser's slot, of this range of the weights.
  using ChangeSlot = std::function<void(int slot, Range range, std::span<float> numbers)>;

  // carried: the arrays of each partition. layout and backend must outlive this object.
  PartitionArrays(const CarriedArrays& carried, const ParameterLayout* layout, Backend* backend)
      : kinds_(carried), layout_(*layout), backend_(backend) {}

  // Number of arrays per partition.
  int count() const { return kinds_.count(); }
  // Adds a partition with its carried state; arrays that are not listed are zero. All slots of the
  // optimiser are zero if one is missing: they have one count of steps. Returns whether they are.
  bool Adopt(const AdoptAction& adopt, const ShardMap& map);
  void Drop(int partition) { held_.erase(partition); }
  // Requires that the partition is held.
  Arrays& Of(int partition) { return held_.at(partition); }
  const Arrays& Of(int partition) const { return held_.at(partition); }
  // The next held partition after `partition`; -1 if there is none.
  int Next(int partition) const;

  // Copies of a partition's arrays, by chunk. change: null for none. Errors: a device failure.
  Result<std::vector<CarriedArray>> Copies(Arrays& arrays, const ShardMap& map,
                                           const ChangeSlot& change = nullptr) const;

 private:
  std::vector<float*> Vectors(Arrays& arrays) const;

  const CarriedArrays kinds_;
  const ParameterLayout& layout_;
  Backend* const backend_;
  std::map<int, Arrays> held_;  // by partition
};

}  // namespace kumo
