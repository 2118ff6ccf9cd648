// Training engine: the computation behind a worker's session. It holds the weights that blocks
// start from and the carried state of each leased partition, trains blocks, and codes
// contributions. The session decides what is computed (actions.h), and an engine how: with a
// network of Kumo's on a device (Trainer), or otherwise.
//
// The driver makes all calls in the order of the session's actions, one at a time, from a thread of
// its own; only Cancel may come from another thread. If the engine codes beside steps, Code, the
// Installs that follow it and KeepAhead run on a second thread, in order, Code and Installs perhaps
// while the first one is in StepAhead: until they have returned, the base weights, the residual and
// the weights at the end of the block belong to the second thread.
#pragma once

#include <functional>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_identity.h"
#include "common/job/metric_sums.h"
#include "worker/session/actions.h"
#include "worker/session/job_shape.h"

namespace kumo {

class TrainingEngine {
 public:
  using OnCoded = std::function<void(std::vector<CodedChunk>)>;

  virtual ~TrainingEngine() = default;

  // The job as the worker's hello describes it.
  virtual const JobSpec& spec() const = 0;
  // Called once, before all that follows. `shape` must outlive this object.
  virtual Status Attach(const JobShape* shape) = 0;

  // The initial weights of the job, the same from every worker.
  virtual Result<InitialWeights> MakeInitialWeights() = 0;
  virtual void Install(const InstallAction& install) = 0;
  virtual void Adopt(const AdoptAction& adopt) = 0;
  // Trains the steps of a block from the base weights. Code must follow. `on_coded`, unless null,
  // may be called on this thread with chunks that are coded before the end of the block
  // (Session::OnCoded); the block contains them too. Errors end the worker.
  virtual Result<TrainedBlock> Train(const TrainAction& train, const OnCoded& on_coded) = 0;
  // Codes the contribution of that block with the codec of the round (RoundPolicy::PushCodec), and
  // adds what else the block has beside its metrics. Errors end the worker.
  virtual Status Code(const TrainAction& train, TrainedBlock* block) = 0;
  // Trains the front of the partition's slice of `round`, from the end of the block that was
  // trained just before.
  virtual Result<TrainedAhead> StepAhead(const RoundPlan& round, int partition) = 0;
  // Carries the way of these steps to the partition's next block, after Code.
  virtual Status KeepAhead(const TrainAheadAction& train, TrainedAhead* ahead) = 0;
  // Whether Code and Install may run beside StepAhead, on another thread.
  virtual bool codes_beside_steps() const = 0;
  virtual Result<Evaluation> Evaluate(const EvaluateAction& evaluate) = 0;
  virtual void Drop(int partition) = 0;
  // Ends the current and later computations soon, with Aborted. Any thread may call it.
  virtual void Cancel() = 0;

 protected:
  TrainingEngine() = default;
  TrainingEngine(const TrainingEngine&) = default;
  TrainingEngine& operator=(const TrainingEngine&) = default;
};

}  // namespace kumo
