// Trainer: a worker's arithmetic. It owns the weights on the device, the network, the local
// optimiser and the carried state of each leased partition.
//
// Device memory: the block's weights (block_weights.h), which hold one vector per partition for the
// codec's residual; gradients; one vector per slot of the local optimiser, and one for the sum of
// gradients if minibatches are computed in parts. The steps of a block are queued on the device;
// the host waits only for the end of the block.
//
// Owned by its maker. Threads: as TrainingEngine has them (training_engine.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/parameter_layout.h"
#include "common/job/shard_map.h"
#include "common/optimiser/optimiser.h"
#include "common/settings/experiment.h"
#include "data/batch_stream.h"
#include "data/open_datasets.h"
#include "models/backend/step_recorder.h"
#include "models/net/detector.h"
#include "models/net/net.h"
#include "models/weight_step.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/session/training_engine.h"
#include "worker/training/block_weights.h"
#include "worker/training/contribution.h"
#include "worker/training/opened_job.h"
#include "worker/training/partition_arrays.h"

namespace kumo {

// Part of a block that is computed at once: a minibatch, or a part of it.
struct BlockStep {
  int minibatch = 0;  // from 0
  int part = 0;       // likewise, of the minibatch
  int samples = 0;    // of the whole minibatch
};

class Trainer : public TrainingEngine {
 public:
  // job: the result of OpenJob for the same experiment. Errors: a device failure.
  static Result<std::unique_ptr<Trainer>> Make(const Experiment& experiment, OpenedJob job,
                                               const Clock* clock);
  // Opens the job too. Also the errors of OpenJob.
  static Result<std::unique_ptr<Trainer>> Make(const Experiment& experiment, const Clock* clock);

  const JobSpec& spec() const override { return spec_; }
  const Net& net() const { return *net_; }
  const Datasets& datasets() const { return job_.datasets; }
  // Device memory in use, and the addition per leased partition, for people.
  std::string DescribeMemory() const;

  // Allocates what training needs.
  Status Attach(const JobShape* shape) override;
  // FailedPrecondition if network.initial_weights cannot be used; every worker would find the same.
  Result<InitialWeights> MakeInitialWeights() override;
  void Install(const InstallAction& install) override { weights_.installed().Install(install); }
  void Adopt(const AdoptAction& adopt) override { weights_.Adopt(adopt); }
  Result<TrainedBlock> Train(const TrainAction& train, const OnCoded& on_coded) override;
  Status Code(const TrainAction& train, TrainedBlock* block) override;
  // Requires that the front of the slice is not empty.
  Result<TrainedAhead> StepAhead(const RoundPlan& round, int partition) override;
  Status KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead) override {
    return weights_.KeepAhead(train, ahead);
  }
  bool codes_beside_steps() const override { return backend_->codes_beside_steps(); }
  Result<Evaluation> Evaluate(const EvaluateAction& evaluate) override;
  void Drop(int partition) override { weights_.partitions().Drop(partition); }
  // Computations end at their next minibatch.
  void Cancel() override { cancelled_ = true; }

  // Evaluates `weights` (a flat vector) on the whole validation set. The sums of precisions are not
  // settled.
  Result<MetricSums> EvaluateAll(std::span<const float> weights);
  // Predicts an output of the network for the whole validation set with `weights`, and calls `take`
  // with each minibatch and its numbers (samples x the output's size).
  using TakeOutput = std::function<void(const Minibatch&, std::span<const float> numbers)>;
  Status PredictAll(std::span<const float> weights, int output, const TakeOutput& take);

 private:
  Trainer(const Experiment& experiment, const Clock* clock, OpenedJob job);

  // `count` consecutive vectors of the layout; `what` names them in an out-of-memory message.
  DeviceArray<float> MakeVectors(int count, const std::string& what) const;
  // A part of a partition's slice whose minibatches are trained one after the other.
  struct Part {
    RoundPlan round;
    int partition = 0;
    bool ahead = false;  // the front of the slice; else the rest
    bool operator==(const Part& other) const {
      return round.round == other.round.round && partition == other.partition &&
             ahead == other.ahead;
    }
  };
  Range SamplesOf(const Part& part) const;
  std::optional<Part> After(const Part& part) const;
  void StartRange(const Part& part);
  void StartNextRange(const Part& part);
  struct Loaded {
    int size = 0;           // samples; 0 at the end of the range
    int64_t positives = 0;  // of a detector: the divisor of its loss (Detector::Positives)
  };
  // Loads the next training minibatch, or part of one, into the net.
  Result<Loaded> LoadNext();
  // contribution, weight: null for minibatches ahead. weight: of the contribution.
  Result<MetricSums> Minibatches(const Part& part, const OnCoded& on_coded,
                                 PartitionArrays::Arrays* carried, Contribution* contribution,
                                 std::optional<int64_t>* weight);
  // The local optimiser's state while a partition's block is trained.
  DeviceArray<float>& OptimiserState(PartitionArrays::Arrays* carried) {
    return carried->optimiser.empty() ? optimiser_slots_ : carried->optimiser;
  }
  bool in_parts() const { return experiment_.sync.minibatch_parts > 1; }
  // Gradients of a whole minibatch.
  float* gradients() { return in_parts() ? gradient_sum_.data() : gradients_.data(); }
  // Queues the addition of a part's gradients to its minibatch's gradients. before: positives of
  // the minibatch's earlier parts.
  void AddPart(const Loaded& part, const BlockStep& step, int64_t before);
  // Queues the end of a minibatch, whose gradients are there.
  void FinishMinibatch(bool steps, PartitionArrays::Arrays* carried);
  Result<Evaluation> EvaluateRange(Range samples, float* weights);
  void Clear(DeviceArray<float>* array);

  const Experiment experiment_;
  const Clock* const clock_;
  const JobShape* shape_ = nullptr;
  const OpenedJob job_;  // outlives what follows
  Backend* const backend_;
  Net* const net_;
  const JobSpec& spec_;
  // By stage of the net's backward pass: the chunks whose gradients are final with the stage. Empty
  // if gradients may change until the end of the step.
  std::vector<std::vector<int>> chunks_of_stage_;

  std::optional<BatchStream> train_, validation_;
  std::optional<Detector> detector_;
  std::optional<Part> started_;  // whose reading has begun

  DeviceArray<float> gradients_;
  DeviceArray<float> gradient_sum_;     // over the parts of a minibatch; empty if there is one part
  DeviceArray<float> optimiser_slots_;  // all slots, if no state goes on from block to block
  std::optional<WeightStep> optimiser_step_;
  std::atomic<bool> cancelled_{false};
  BlockWeights weights_;  // waits for the device at its end, before the arrays above go
};

// The part that begins after `trained` samples of a block of `block` samples.
BlockStep StepAt(const Experiment& experiment, int64_t trained, int64_t block);
// Returns the parameters of a partition's training step. steps_before: steps that the local
// optimiser has taken before this block since its slots were zero.
StepParameters ParametersOf(const Experiment& experiment, const OpenedJob& job,
                            const RoundPlan& round, int partition, const BlockStep& minibatch,
                            int64_t steps_before);

// Returns, by stage of the net's backward pass (`stages`: ranges of tensors), the chunks whose
// gradients are final with the stage. Empty if gradients may change until the end of the step.
std::vector<std::vector<int>> ReadyChunks(const Experiment& experiment,
                                          std::span<const Range> stages,
                                          const ParameterLayout& layout, const ShardMap& map);

}  // namespace kumo
