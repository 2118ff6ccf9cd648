// A worker's arithmetic: the weights on its device, the network, the local optimiser, and what each
// leased partition carries from round to round.
//
// Four flat vectors of the layout in the device's memory: `base` (what blocks start from),
// `weights` (moved by a block), `gradients`, and `evaluated` (only where the update rule keeps the
// evaluated weights apart); one more per slot of the local optimiser, and per partition one for the
// codec's residual. A block's steps are queued on the device; the host waits for its end alone.
//
// Used by one thread at a time: the runtime runs everything here on its compute thread, in order.
#pragma once

#include <atomic>
#include <cstdint>
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
#include "data/dataset.h"
#include "models/backend/step_recorder.h"
#include "models/net.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/training/contribution.h"
#include "worker/training/opened_job.h"
#include "worker/training/partition_arrays.h"

namespace kumo {

class Trainer {
 public:
  // job: as OpenJob opened it of the experiment. The device's failure.
  static Result<std::unique_ptr<Trainer>> Make(const Experiment& experiment, OpenedJob job,
                                               const Clock* clock);
  // The same with OpenJob, and its errors.
  static Result<std::unique_ptr<Trainer>> Make(const Experiment& experiment, const Clock* clock);

  const JobSpec& spec() const { return spec_; }
  const Net& net() const { return *net_; }
  const Datasets& datasets() const { return job_.datasets; }
  // What the device's memory holds, and what each leased partition will add, for people.
  std::string DescribeMemory() const;

  // Takes the memory that training needs. `shape` is borrowed for life.
  Status Attach(const JobShape* shape);

  // The weights that a job begins with. FailedPrecondition where network.initial_weights cannot be
  // used: another worker would find the same.
  Result<InitialWeights> MakeInitialWeights() const;
  void Install(const InstallAction& install);
  void Adopt(const AdoptAction& adopt) { carried_.Adopt(adopt, shape_->map); }
  // FailedPrecondition, naming round, partition and tensor, where a number of the contribution is
  // not finite, or saturates so far that its residual would, too. `on_coded`, unless it is null, is
  // called on this thread with chunks of a gradient that are coded before the step is at its end
  // (Session::OnCoded); the block has them, too.
  Result<TrainedBlock> Train(const TrainAction& train, const Contribution::OnCoded& on_coded);
  Result<checkpoint::SampleSums> Evaluate(const EvaluateAction& evaluate);
  void Drop(int partition) { carried_.Drop(partition); }
  // What is under way and what comes after ends at its next minibatch, Aborted. May be called from
  // any thread.
  void Cancel() { cancelled_ = true; }

  // The whole validation set against `weights` (a flat vector): `kumo evaluate`.
  Result<checkpoint::SampleSums> EvaluateAll(std::span<const float> weights);

 private:
  Trainer(const Experiment& experiment, const Clock* clock, OpenedJob job);
  Status TakeSums(checkpoint::SampleSums* metrics);  // what the net has added up, waited for

  // `count` vectors of the layout, one after the other.
  DeviceArray<float> MakeVectors(int count, const std::string& what) const;
  void StartRange(const TrainAction& train);
  void StartNextRange(const TrainAction& train);
  // The stream's next minibatch is the net's. Its size; 0 where the range has ended.
  Result<int> LoadNext(BatchStream* stream);
  Result<checkpoint::SampleSums> Minibatches(const TrainAction& train,
                                             const Contribution::OnCoded& on_coded,
                                             PartitionArrays::Arrays* carried,
                                             Contribution* contribution);
  void OptimiserStep(PartitionArrays::Arrays* carried);
  Result<checkpoint::SampleSums> EvaluateRange(Range samples, float* weights);
  std::string TensorAt(int64_t position) const;

  const Experiment experiment_;
  const Clock* const clock_;
  const JobShape* shape_ = nullptr;
  const OpenedJob job_;  // outlives what follows
  Backend* const backend_;
  Net* const net_;
  const JobSpec& spec_;
  // The chunks whose gradients are final with a stage of the net's backward pass, by stage. Empty
  // where gradients may change until the end of the step.
  std::vector<std::vector<int>> chunks_of_stage_;

  std::optional<BatchStream> train_, validation_;
  std::optional<std::pair<int64_t, int>> started_;  // round and partition whose range comes next

  DeviceArray<float> base_, weights_, gradients_, evaluated_;
  DeviceArray<float> optimiser_slots_;  // all, where they are reset with each block
  std::atomic<bool> cancelled_{false};
  PartitionArrays carried_;  // of the partitions that are leased
};

// Of a training step: what it is done with, and which of its gradients are final before its end.
//
// Pure functions; thread-safe.
// A minibatch of a block.
struct BlockStep {
  int minibatch = 0;  // counted from 0
  int samples = 0;
};
// carries_state: the local optimiser's state comes from the block before.
StepParameters ParametersOf(const Experiment& experiment, const OpenedJob& job,
                            const TrainAction& train, const BlockStep& minibatch,
                            bool carries_state);

// By stage of the net's backward pass, ranges of tensors in `stages`: the chunks whose gradients
// are final with it. Empty where gradients may change until the end of the step.
std::vector<std::vector<int>> ReadyChunks(const Experiment& experiment,
                                          std::span<const Range> stages,
                                          const ParameterLayout& layout, const ShardMap& map);


}  // namespace kumo
