// Caller engine: the training engine of a program that computes its own model (kumo_worker.h).
// Train and Evaluate wait on the service's compute thread while the program's thread does the
// arithmetic: it takes the work, reads the weights, hands in its result, and finishes.
//
// The weights around a block's steps, in host memory, and contributions are Trainer's
// (block_weights.h); the program copies tensors out of them and into them.
//
// Thread-safety: the compute thread makes the calls of TrainingEngine, the program's thread the
// others. The program's calls touch the vectors only while the compute thread waits for them; and
// not the base weights, which belong to the coding thread during steps ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/optimiser/schedule.h"
#include "common/settings/experiment.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"
#include "worker/session/training_engine.h"
#include "worker/training/block_weights.h"

namespace kumo {

// A block to train, its front that is trained ahead (sync.overlap), or a slice of the validation
// set to evaluate.
struct CallerWork {
  enum class Kind { kBlock, kAhead, kEvaluation };
  Kind kind = Kind::kBlock;
  int partition = 0;
  RoundPlan round = {};               // of a block
  int64_t version = 0;                // of an evaluation: its weights' version
  wire::Vector vector = wire::START;  // likewise
  int epoch = 0;
  Range samples;                // of a block: positions in the epoch's permutation
  int64_t first_minibatch = 0;  // of these samples, in the partition's block
  // Whether the program's optimiser starts without state; else `steps_before` is the number of
  // minibatches that are behind its state.
  bool restarts = false;
  int64_t steps_before = 0;
  bool keeps_state = false;  // whether the optimiser's state at the end is needed again

  bool evaluates() const { return kind == Kind::kEvaluation; }
  // Whether the program hands in weights, not gradients.
  bool steps() const { return !evaluates() && round.local_steps; }
};

class CallerEngine : public TrainingEngine {
 public:
  // initial: the weights of a new job, layout.size() floats. `clock` must outlive this object.
  // InvalidArgument for a schedule that cannot be.
  static Result<std::unique_ptr<CallerEngine>> Make(const Experiment& experiment, JobSpec spec,
                                                    Buffer<float> initial, const Clock* clock);

  const JobSpec& spec() const override { return spec_; }
  Status Attach(const JobShape* shape) override;
  Result<InitialWeights> MakeInitialWeights() override;
  void Install(const InstallAction& install) override { weights_.installed().Install(install); }
  void Adopt(const AdoptAction& adopt) override { weights_.Adopt(adopt); }
  Result<TrainedBlock> Train(const TrainAction& train, const OnCoded& on_coded) override;
  Status Code(const TrainAction& train, TrainedBlock* block) override;
  Result<TrainedAhead> StepAhead(const RoundPlan& round, int partition) override;
  Status KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead) override {
    return weights_.KeepAhead(train, ahead);
  }
  bool codes_beside_steps() const override { return backend_->codes_beside_steps(); }
  Result<Evaluation> Evaluate(const EvaluateAction& evaluate) override;
  void Drop(int partition) override { weights_.partitions().Drop(partition); }
  void Cancel() override KUMO_EXCLUDES(mutex_);

  // Waits for work; none after `timeout` or after Cancel.
  std::optional<CallerWork> WaitForWork(TimeUs timeout) KUMO_EXCLUDES(mutex_);
  bool cancelled() KUMO_EXCLUDES(mutex_);

  // The following calls are about the work that WaitForWork has returned. Aborted if it is no
  // longer wanted, InvalidArgument for a tensor or state that does not exist.

  // indices: as many as the work has samples.
  Status Samples(std::span<int64_t> indices) KUMO_EXCLUDES(mutex_);
  Result<float> LearningRate(int64_t minibatch) KUMO_EXCLUDES(mutex_);
  Status Get(int tensor, float* to) KUMO_EXCLUDES(mutex_);
  Status Set(int tensor, const float* from) KUMO_EXCLUDES(mutex_);
  int states() const { return spec_.optimiser_slots; }
  Status GetState(int state, int tensor, float* to) KUMO_EXCLUDES(mutex_);
  Status SetState(int state, int tensor, const float* from) KUMO_EXCLUDES(mutex_);
  // FailedPrecondition names a tensor that was not handed in; InvalidArgument for sums that cannot
  // be. The work goes on after both.
  Status Finish(std::vector<double> sums) KUMO_EXCLUDES(mutex_);
  // Ends the work, and with it the worker, with an error. Without work, the next one ends so.
  void Fail(Status reason) KUMO_EXCLUDES(mutex_);
  // Whether work has ended with such an error.
  bool failed() KUMO_EXCLUDES(mutex_);

 private:
  CallerEngine(const Experiment& experiment, JobSpec spec, Buffer<float> initial, Schedule schedule,
               const Clock* clock);

  CallerWork BlockOf(const RoundPlan& round, int partition, bool ahead) const;
  // Clears the carried state of the partition if the program's optimiser starts without state.
  void Restart(const CallerWork& work);
  // Has the program's thread do the work, unless it has no samples.
  Result<MetricSums> Ask(const CallerWork& work) KUMO_EXCLUDES(mutex_);
  Status CheckWanted() KUMO_REQUIRES(mutex_);
  // The range of a tensor in the flat vectors, if there is such a tensor and the work is wanted.
  Result<Range> Place(int tensor) KUMO_REQUIRES(mutex_);
  // A carried array of the work's partition at a tensor's range.
  Result<float*> StatePlace(int state, int tensor) KUMO_REQUIRES(mutex_);

  const Experiment experiment_;
  const JobSpec spec_;
  const Buffer<float> initial_;
  const Schedule schedule_;
  const Clock* const clock_;
  const JobShape* shape_ = nullptr;
  const std::unique_ptr<Backend> backend_;  // outlives the arrays
  DeviceArray<float> gradients_;            // empty if all rounds have local steps
  BlockWeights weights_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<CallerWork> work_ KUMO_GUARDED_BY(mutex_);
  std::vector<bool> was_set_ KUMO_GUARDED_BY(mutex_);  // by tensor
  std::optional<Result<MetricSums>> answer_ KUMO_GUARDED_BY(mutex_);
  Status failure_ KUMO_GUARDED_BY(mutex_);
  bool failed_ KUMO_GUARDED_BY(mutex_) = false;
  bool cancelled_ KUMO_GUARDED_BY(mutex_) = false;
};

}  // namespace kumo
