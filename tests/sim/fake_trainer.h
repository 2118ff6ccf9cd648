// Fake trainer: stands in for a worker's arithmetic. A block's result is a fixed function of base
// weights, partition, round and carried state, so any mix-up of versions, partitions or states
// changes the final bits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/rng.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"

namespace kumo::sim {

class FakeTrainer {
 public:
  // shape is borrowed for life.
  FakeTrainer(uint64_t seed, const JobShape* shape, const JobSpec& spec);

  // In a quarter of the seeds contributions have weights of their own, also none; else nullopt.
  static std::optional<int64_t> WeightOf(uint64_t seed, int64_t round, int partition);

  std::vector<Payload> InitialWeights() const;
  void Install(const InstallAction& install);
  void Adopt(const AdoptAction& adopt);
  TrainedBlock Train(const TrainAction& train);
  TrainedAhead TrainAhead(const TrainAheadAction& train);
  MetricSums Evaluate(const EvaluateAction& evaluate) const;
  void Drop(int partition) { carried_.erase(partition); }

 private:
  // Stores the way of a partition's own weights `end_` after a round (Trainer); `ends`: of the
  // round's block.
  void StoreWay(const RoundPlan& round, int partition, const std::vector<float>& ends);
  // Copies of a partition's carried arrays.
  std::vector<CarriedArray> Copies(int partition) const;

  uint64_t seed_;
  const JobShape* shape_;
  JobSpec spec_;
  std::vector<float> vectors_[2];                           // START, WEIGHTS
  std::map<int, std::vector<std::vector<float>>> carried_;  // partition -> slot -> flat vector
  std::vector<float> end_;                                  // own weights of the last partition
};

}  // namespace kumo::sim
