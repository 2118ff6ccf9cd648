// Two threads share one piece of work, by a rendezvous under mutex_:
//
//   compute thread: Ask       work_ = work, answer_ empty; waits for answer_ or cancelled_
//   program: WaitForWork      returns a copy of work_ (again, if it is asked again)
//   program: Get, Set, ...    allowed while work_ is there and answer_ is not (CheckWanted)
//   program: Finish or Fail   sets answer_
//   compute thread: Ask       takes answer_, resets work_
//
// While the compute thread waits in Ask, it touches no vector: so the program's calls, which hold
// the mutex, are the only access to weights, gradients and states, except for the coding thread's
// base weights, which they do not touch. Work without samples is answered at once, without the
// program.
//
// Cancel ends the wait from any thread: Ask returns Aborted, and so do later calls of the program.
// An error of the program (Fail) without work is kept in failure_ and ends the next work.
//
// A block in gradient rounds ends with clipping, as Trainer does it; in local steps the program's
// optimiser has stepped the weights, and clipping is its own.
#include "worker/library/caller_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/job/round_policy.h"
#include "data/permutation.h"
#include "models/backend/cpu/cpu_backend.h"
#include "worker/training/initial_weights.h"
#include "worker/training/step_position.h"

namespace kumo {
namespace {

size_t BytesOf(Range range) { return static_cast<size_t>(range.size()) * sizeof(float); }

}  // namespace

CallerEngine::CallerEngine(const Experiment& experiment, JobSpec spec, Buffer<float> initial,
                           Schedule schedule, const Clock* clock)
    : experiment_(experiment),
      spec_(std::move(spec)),
      initial_(std::move(initial)),
      schedule_(std::move(schedule)),
      clock_(clock),
      backend_(MakeCpuBackend(experiment.network.threads)),
      weights_(experiment, &spec_.layout, backend_.get()) {}

Result<std::unique_ptr<CallerEngine>> CallerEngine::Make(const Experiment& experiment, JobSpec spec,
                                                         Buffer<float> initial,
                                                         const Clock* clock) {
  const int epochs = experiment.job.epochs;
  KUMO_ASSIGN_OR_RETURN(Schedule schedule,
                        Schedule::Make(experiment.schedule, spec.train_samples, epochs));
  KUMO_RETURN_IF_ERROR(
      Schedule::Make(experiment.BlockSchedule(), spec.train_samples, epochs, "block_schedule")
          .status());
  return std::unique_ptr<CallerEngine>(new CallerEngine(
      experiment, std::move(spec), std::move(initial), std::move(schedule), clock));
}

Status CallerEngine::Attach(const JobShape* shape) {
  shape_ = shape;
  weights_.Attach(shape, /*optimiser=*/nullptr, /*matrices=*/{});
  if (experiment_.sync.ServersStep()) {
    gradients_ = {*backend_, spec_.layout.size(), "the gradients"};
  }
  return backend_->Wait();
}

Result<InitialWeights> CallerEngine::MakeInitialWeights() {
  Buffer<float> weights(initial_.size());
  std::ranges::copy(initial_.span(), weights.data());
  return kumo::MakeInitialWeights(experiment_, spec_.layout, shape_->map, std::move(weights));
}

CallerWork CallerEngine::BlockOf(const RoundPlan& round, int partition, bool ahead) const {
  const JobPlan& plan = shape_->plan;
  const Range front = plan.AheadSamples(round, partition);
  const bool begun = !ahead && front.size() > 0;
  const bool resets = shape_->policy.resets_local_state();
  CallerWork work{.kind = ahead ? CallerWork::Kind::kAhead : CallerWork::Kind::kBlock,
                  .partition = partition,
                  .round = round,
                  .epoch = round.epoch,
                  .samples = ahead ? front : plan.MainSamples(round, partition)};
  if (begun) work.first_minibatch = front.size() / experiment_.sync.minibatch;
  if (!round.local_steps) return work;
  work.restarts = resets && !begun;
  work.keeps_state = states() > 0 && (ahead || !resets);
  if (work.restarts) return work;
  work.steps_before = work.first_minibatch +
                      weights_.StepsBefore(round, partition, weights_.partitions().Of(partition));
  return work;
}

// The program may hand in the state of some tensors only: those without a gradient have none.
void CallerEngine::Restart(const CallerWork& work) {
  if (!work.restarts || states() == 0) return;
  DeviceArray<float>& state = weights_.partitions().Of(work.partition).optimiser;
  backend_->Zero(state.data(), static_cast<size_t>(state.bytes()));
}

Result<TrainedBlock> CallerEngine::Train(const TrainAction& train, const OnCoded&) {
  TrainedBlock block;
  const TimeUs begin = clock_->NowUs();
  weights_.Begin(train, gradients_.data());
  backend_->Zero(gradients_.data(), static_cast<size_t>(gradients_.bytes()));
  const CallerWork work = BlockOf(train.round, train.partition, false);
  Restart(work);
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  KUMO_ASSIGN_OR_RETURN(block.metrics, Ask(work));
  if (!train.round.local_steps) {
    StepParameters step;
    step.clip_norm = experiment_.optimiser.clip_norm;
    backend_->SetStep(step);
    backend_->MeasureGradients(gradients_.data(), weights_.TrainedNumbers());
    backend_->ScaleGradients(gradients_.data(), weights_.TrainedNumbers());
  }
  weights_.End(train);
  block.times.compute_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  return block;
}

Status CallerEngine::Code(const TrainAction& train, TrainedBlock* block) {
  const TimeUs begin = clock_->NowUs();
  KUMO_RETURN_IF_ERROR(weights_.Code(train, block));
  if (!shape_->TrainsAhead(train.round.round, train.partition)) {
    block->times.coding_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  }
  return OkStatus();
}

Result<TrainedAhead> CallerEngine::StepAhead(const RoundPlan& round, int partition) {
  const TimeUs begin = clock_->NowUs();
  const CallerWork work = BlockOf(round, partition, true);
  Restart(work);
  KUMO_ASSIGN_OR_RETURN(const MetricSums metrics, Ask(work));
  TrainedAhead ahead;
  ahead.samples = metrics.samples;
  ahead.compute_ms = static_cast<double>(clock_->NowUs() - begin) * 1e-3;
  return ahead;
}

Result<Evaluation> CallerEngine::Evaluate(const EvaluateAction& evaluate) {
  // Reports an allocation of the evaluated weights that failed.
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  const Range samples =
      shape_->plan.EvaluationSamples(spec_.validation_samples, evaluate.partition);
  KUMO_ASSIGN_OR_RETURN(MetricSums sums,
                        Ask({.kind = CallerWork::Kind::kEvaluation,
                             .partition = evaluate.partition,
                             .version = evaluate.version,
                             .vector = evaluate.vector,
                             .epoch = shape_->plan.EvaluatedEpoch(evaluate.version),
                             .samples = samples}));
  return Evaluation{.metrics = std::move(sums)};
}

Result<MetricSums> CallerEngine::Ask(const CallerWork& work) {
  if (work.samples.size() == 0) {
    return MetricSums{0, std::vector<double>(static_cast<size_t>(spec_.metrics.sums()))};
  }
  MutexLock lock(mutex_);
  if (cancelled_) return Aborted("cancelled");
  if (!failure_.ok()) {
    failed_ = true;
    return failure_;
  }
  work_ = work;
  was_set_.assign(spec_.layout.tensors().size(), false);
  answer_.reset();
  changed_.NotifyAll();
  while (!answer_ && !cancelled_) changed_.Wait(mutex_);
  work_.reset();
  if (!answer_) return Aborted("cancelled");
  return *std::exchange(answer_, std::nullopt);
}

void CallerEngine::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.NotifyAll();
}

bool CallerEngine::cancelled() {
  MutexLock lock(mutex_);
  return cancelled_;
}

std::optional<CallerWork> CallerEngine::WaitForWork(TimeUs timeout) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout);
  MutexLock lock(mutex_);
  // Work with an answer is over; the compute thread has not seen it yet.
  while (!cancelled_ && (!work_ || answer_)) {
    if (!changed_.WaitUntil(mutex_, until)) break;
  }
  if (cancelled_ || answer_) return std::nullopt;
  return work_;
}

Status CallerEngine::CheckWanted() {
  if (work_ && !answer_ && !cancelled_) return OkStatus();
  return Aborted("the work is no longer wanted: ask for the next");
}

Result<Range> CallerEngine::Place(int tensor) {
  KUMO_RETURN_IF_ERROR(CheckWanted());
  if (tensor < 0 || tensor >= std::ssize(spec_.layout.tensors())) {
    return InvalidArgument("there is no tensor " + std::to_string(tensor));
  }
  return spec_.layout.tensor(tensor);
}

Status CallerEngine::Samples(std::span<int64_t> indices) {
  MutexLock lock(mutex_);
  KUMO_RETURN_IF_ERROR(CheckWanted());
  if (std::ssize(indices) != work_->samples.size()) {
    return InvalidArgument("the work has " + std::to_string(work_->samples.size()) + " samples");
  }
  if (work_->evaluates()) {
    for (size_t i = 0; i < indices.size(); ++i) {
      indices[i] = work_->samples.begin + static_cast<int64_t>(i);
    }
    return OkStatus();
  }
  const EpochPermutation order(spec_.train_samples, experiment_.job.seed, work_->round.epoch);
  for (size_t i = 0; i < indices.size(); ++i) {
    indices[i] = order.At(work_->samples.begin + static_cast<int64_t>(i));
  }
  return OkStatus();
}

Result<float> CallerEngine::LearningRate(int64_t minibatch) {
  MutexLock lock(mutex_);
  KUMO_RETURN_IF_ERROR(CheckWanted());
  const int64_t size = experiment_.sync.minibatch;
  const int64_t begin = minibatch * size;
  if (work_->evaluates() || minibatch < 0 || begin >= work_->samples.size()) {
    return InvalidArgument("the work has no minibatch " + std::to_string(minibatch) +
                           " to train on");
  }
  const int64_t in_block = work_->first_minibatch + minibatch;
  return schedule_.RateAt(StepPosition(experiment_, work_->round, in_block),
                          std::min(size, work_->samples.size() - begin));
}

Status CallerEngine::Get(int tensor, float* to) {
  MutexLock lock(mutex_);
  KUMO_ASSIGN_OR_RETURN(const Range place, Place(tensor));
  const float* const from =
      work_->evaluates() ? weights_.installed().Of(work_->vector) : weights_.data();
  return backend_->Read(from + place.begin, BytesOf(place), to);
}

Status CallerEngine::Set(int tensor, const float* from) {
  MutexLock lock(mutex_);
  KUMO_ASSIGN_OR_RETURN(const Range place, Place(tensor));
  if (work_->evaluates()) return FailedPrecondition("the weights are evaluated, not trained");
  const TensorSpec& spec = spec_.layout.tensors()[tensor];
  was_set_[tensor] = true;
  if (spec.factors.frozen()) return OkStatus();
  const bool gradient = !work_->steps() && spec.trained();
  float* const to = gradient ? gradients_.data() : weights_.data();
  backend_->Write(from, BytesOf(place), to + place.begin);
  return OkStatus();
}

Result<float*> CallerEngine::StatePlace(int state, int tensor) {
  KUMO_ASSIGN_OR_RETURN(const Range place, Place(tensor));
  if (state < 0 || state >= states() || work_->evaluates() ||
      !spec_.layout.tensors()[tensor].trained()) {
    return InvalidArgument("the work has no state " + std::to_string(state) + " of tensor " +
                           std::to_string(tensor));
  }
  float* const states = weights_.partitions().Of(work_->partition).optimiser.data();
  return states + state * spec_.layout.size() + place.begin;
}

Status CallerEngine::GetState(int state, int tensor, float* to) {
  MutexLock lock(mutex_);
  KUMO_ASSIGN_OR_RETURN(const float* const from, StatePlace(state, tensor));
  return backend_->Read(from, BytesOf(spec_.layout.tensor(tensor)), to);
}

Status CallerEngine::SetState(int state, int tensor, const float* from) {
  MutexLock lock(mutex_);
  KUMO_ASSIGN_OR_RETURN(float* const to, StatePlace(state, tensor));
  backend_->Write(from, BytesOf(spec_.layout.tensor(tensor)), to);
  return OkStatus();
}

Status CallerEngine::Finish(std::vector<double> sums) {
  MutexLock lock(mutex_);
  KUMO_RETURN_IF_ERROR(CheckWanted());
  for (size_t i = 0; i < was_set_.size() && !work_->evaluates(); ++i) {
    const TensorSpec& tensor = spec_.layout.tensors()[i];
    if (was_set_[i] || tensor.factors.frozen()) continue;
    return FailedPrecondition("tensor " + tensor.name + " was not handed in");
  }
  MetricSums metrics{work_->samples.size(), std::move(sums)};
  KUMO_RETURN_IF_ERROR(spec_.metrics.Check(metrics, metrics.samples));
  answer_ = std::move(metrics);
  changed_.NotifyAll();
  return OkStatus();
}

void CallerEngine::Fail(Status reason) {
  MutexLock lock(mutex_);
  if (work_ && !answer_) {
    answer_ = reason;
    failed_ = true;
  }
  failure_ = std::move(reason);
  changed_.NotifyAll();
}

bool CallerEngine::failed() {
  MutexLock lock(mutex_);
  return failed_;
}

}  // namespace kumo
