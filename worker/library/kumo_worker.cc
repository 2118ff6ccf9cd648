// The C interface (kumo_worker.h): arguments checked and converted, exceptions and errors turned
// into codes, and calls in progress counted, so that a worker may be closed by any thread.
#include "worker/library/kumo_worker.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/process/exit_report.h"
#include "common/base/rng.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/source_checkpoint.h"
#include "worker/library/library_worker.h"
#include "worker/training/initial_weights.h"
#include "worker/training/step_position.h"

extern char** environ;

// An opened worker and the calls in progress. It stays valid when it is closed, since a thread may
// be about to use it: closed ones are freed with the process.
struct kumo_worker {
 public:
  explicit kumo_worker(std::unique_ptr<kumo::LibraryWorker> opened) : worker_(std::move(opened)) {}

  // Whether this process has opened it. In a forked child the lock is in any state.
  bool is_ours() const { return pid_ == getpid(); }

  // Begins a call: FailedPrecondition if the worker is closed, or if the call must be the only one
  // and another such one is in progress.
  kumo::Status Begin(bool exclusive) KUMO_EXCLUDES(mutex_);
  void End(bool exclusive) KUMO_EXCLUDES(mutex_);
  // Between Begin and End.
  kumo::LibraryWorker& worker() { return *worker_; }

  // Makes the calls in progress return, and ends the worker; the process may then open another one.
  // If another thread closes the worker, waits for that.
  void Close() KUMO_EXCLUDES(mutex_);

  kumo_worker* older = nullptr;  // the one that this process opened before

 private:
  const pid_t pid_ = getpid();
  kumo::Mutex mutex_;
  kumo::CondVar changed_;
  int calls_ KUMO_GUARDED_BY(mutex_) = 0;  // in progress
  bool has_exclusive_call_ KUMO_GUARDED_BY(mutex_) = false;
  bool is_closing_ KUMO_GUARDED_BY(mutex_) = false;  // no call may begin
  bool is_closed_ KUMO_GUARDED_BY(mutex_) = false;
  std::unique_ptr<kumo::LibraryWorker> worker_;
};

struct kumo_weights {
  kumo::ParameterLayout layout;
  kumo::Buffer<float> weights;
};

namespace kumo {
namespace {

static_assert(static_cast<int>(StatusCode::kOutOfRange) == KUMO_OUT_OF_RANGE);

thread_local std::string last_error;
// The process that has a worker, or 0. A forked child has none, whatever its parent has.
std::atomic<pid_t> owner{0};
// The newest worker of this process; changed by its owner. Closed ones stay reachable from there.
kumo_worker* newest = nullptr;

Status Closed() { return FailedPrecondition("the worker is closed: kumo_worker_close was called"); }

kumo_status Report(const Status& status) {
  if (status.ok()) return KUMO_OK;
  last_error = status.message();
  return static_cast<kumo_status>(status.code());
}

// No exception leaves the library.
kumo_status Guarded(const std::function<Status()>& body) {
  try {
    return Report(body());
  } catch (...) {
    return Report(CurrentException());
  }
}

// Exclusive calls about a worker run one at a time; shared calls may run beside any other.
enum class Use { kExclusive, kShared };

// For a call about an open worker. argument: a pointer of the caller's, which must not be null.
kumo_status GuardedOf(kumo_worker* worker, Use use, const void* argument,
                      const std::function<Status(LibraryWorker&)>& body) {
  return Guarded([&]() -> Status {
    if (worker == nullptr) return InvalidArgument("the worker is null");
    if (argument == nullptr) return InvalidArgument("an argument is null");
    if (!worker->is_ours()) {
      return FailedPrecondition(
          "this process was forked from the process that opened the worker; use the worker in the "
          "process that opened it");
    }
    struct Call {
      ~Call() { worker->End(exclusive); }
      kumo_worker* worker;
      bool exclusive;
    };
    const bool exclusive = use == Use::kExclusive;
    KUMO_RETURN_IF_ERROR(worker->Begin(exclusive));
    const Call call{worker, exclusive};
    return body(worker->worker());
  });
}

Result<TensorSpec> SpecOf(const kumo_tensor& tensor) {
  if (tensor.name == nullptr || tensor.shape == nullptr || tensor.initial == nullptr ||
      tensor.dimensions < 1) {
    return InvalidArgument("a tensor lacks its name, its shape or its initial values");
  }
  TensorSpec spec;
  spec.name = tensor.name;
  spec.shape.assign(tensor.shape, tensor.shape + tensor.dimensions);
  switch (tensor.kind) {
    case KUMO_TENSOR_WEIGHTS:
      break;
    case KUMO_TENSOR_UNDECAYED:
      spec.segment = Segment::kUndecayed;
      break;
    case KUMO_TENSOR_STATISTICS:
      spec.segment = Segment::kStatistics;
      break;
    case KUMO_TENSOR_FROZEN:
      spec.factors.rate = 0;
      break;
    default:
      return InvalidArgument("tensor " + spec.name + " is of an unknown kind");
  }
  return spec;
}

Result<Metric> MetricOf(const kumo_metric& metric, int sum) {
  if (metric.name == nullptr) return InvalidArgument("a metric has no name");
  Metric converted{.name = metric.name, .sum = sum, .more_is_better = metric.more_is_better > 0};
  switch (metric.formula) {
    case KUMO_METRIC_MEAN:
      return converted;
    case KUMO_METRIC_SHARE:
      converted.formula = MetricFormula::kShare;
      return converted;
    case KUMO_METRIC_PERPLEXITY:
      converted.formula = MetricFormula::kExponentialOfMean;
      return converted;
    default:
      return InvalidArgument("metric " + converted.name + " has an unknown formula");
  }
}

Result<OwnModel> ModelOf(const kumo_worker_options& options) {
  OwnModel model;
  for (const kumo_tensor& tensor :
       std::span(options.tensors, static_cast<size_t>(options.tensors_count))) {
    KUMO_ASSIGN_OR_RETURN(TensorSpec spec, SpecOf(tensor));
    model.tensors.push_back(std::move(spec));
    model.initial.push_back(tensor.initial);
  }
  for (const kumo_metric& metric :
       std::span(options.metrics, static_cast<size_t>(options.metrics_count))) {
    KUMO_ASSIGN_OR_RETURN(Metric converted,
                          MetricOf(metric, static_cast<int>(model.metrics.size())));
    if (metric.more_is_better < 0) model.undirected.push_back(converted.name);
    model.metrics.push_back(std::move(converted));
  }
  model.train_samples = options.train_samples;
  model.validation_samples = options.validation_samples;
  return model;
}

Status Open(const kumo_worker_options& options, kumo_worker** worker) {
  KUMO_ASSIGN_OR_RETURN(const OwnModel model, ModelOf(options));
  const auto text = [](const char* string) { return std::string(string ? string : ""); };
  LibraryWorkerSettings settings;
  settings.experiment = text(options.experiment);
  for (int i = 0; i < options.settings_count; ++i) {
    settings.sets.push_back(text(options.settings[i]));
  }
  settings.name = text(options.name);
  settings.device = options.device != nullptr ? options.device : "cpu";
  settings.variables = VariablesOf(environ);
  KUMO_ASSIGN_OR_RETURN(auto opened, LibraryWorker::Open(settings, model));
  *worker = new kumo_worker(std::move(opened));
  (*worker)->older = std::exchange(newest, *worker);
  return OkStatus();
}

// A block's front draws other random numbers than its rest.
int SeedStream(CallerWork::Kind kind) {
  switch (kind) {
    case CallerWork::Kind::kBlock:
      return 0;
    case CallerWork::Kind::kEvaluation:
      return 1;
    case CallerWork::Kind::kAhead:
      return 2;
  }
  return 0;
}

kumo_work Described(const CallerWork& work, const Experiment& experiment) {
  kumo_work described = {};
  described.kind = work.evaluates() ? KUMO_WORK_EVALUATE : KUMO_WORK_TRAIN;
  described.partition = work.partition;
  described.round = work.evaluates() ? work.version : work.round.round;
  described.epoch = work.epoch;
  described.samples = work.samples.size();
  described.minibatch =
      work.evaluates() ? experiment.evaluation.minibatch : experiment.sync.minibatch;
  described.seed =
      Rng(experiment.job.seed, RngPurpose::kOwnModel, static_cast<uint64_t>(described.round),
          static_cast<uint64_t>(work.partition), static_cast<uint64_t>(SeedStream(work.kind)))
          .NextUint64();
  if (work.evaluates()) return described;
  described.steps = work.steps() ? 1 : 0;
  described.ahead = work.kind == CallerWork::Kind::kAhead ? 1 : 0;
  described.restarts = work.restarts ? 1 : 0;
  described.keeps_state = work.keeps_state ? 1 : 0;
  described.steps_before = work.steps_before;
  described.position = StepPosition(experiment, work.round, work.first_minibatch);
  return described;
}

Status Next(LibraryWorker& worker, int32_t timeout_ms, kumo_work* work) {
  *work = {};
  const auto next = worker.Next(TimeUs{timeout_ms > 0 ? timeout_ms : 0} * kMillisecond);
  if (next) {
    *work = Described(*next, worker.experiment());
    return OkStatus();
  }
  if (!worker.ended()) return worker.ends_early() ? Closed() : OkStatus();
  work->kind = worker.left() ? KUMO_WORK_LEFT : KUMO_WORK_DONE;
  return worker.result();
}

Status OpenWeights(const std::string& path, kumo_weights* weights) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const CheckpointFolder folder, FindCheckpointAt(files, path));
  KUMO_ASSIGN_OR_RETURN(
      const checkpoint::Manifest manifest,
      OrNewestValid(ReadManifest(files, folder.parent, folder.name), files, folder.parent));
  if (!HasTensors(manifest)) {
    return FailedPrecondition("checkpoint " + folder.path() +
                              " was written by release 0.1, without the names of its tensors");
  }
  KUMO_ASSIGN_OR_RETURN(weights->layout, LayoutOf(manifest));
  KUMO_ASSIGN_OR_RETURN(weights->weights, LoadStoredWeights(folder.path(), weights->layout));
  return OkStatus();
}

}  // namespace
}  // namespace kumo

kumo::Status kumo_worker::Begin(bool exclusive) {
  kumo::MutexLock lock(mutex_);
  if (is_closing_) return kumo::Closed();
  if (exclusive && has_exclusive_call_) {
    return kumo::FailedPrecondition(
        "another thread is in a call about this worker; let one thread at a time use it");
  }
  has_exclusive_call_ = has_exclusive_call_ || exclusive;
  ++calls_;
  return kumo::OkStatus();
}

void kumo_worker::End(bool exclusive) {
  kumo::MutexLock lock(mutex_);
  if (exclusive) has_exclusive_call_ = false;
  --calls_;
  changed_.NotifyAll();
}

void kumo_worker::Close() {
  {
    kumo::MutexLock lock(mutex_);
    if (std::exchange(is_closing_, true)) {
      while (!is_closed_) changed_.Wait(mutex_);
      return;
    }
  }
  worker_->EndEarly();
  {
    kumo::MutexLock lock(mutex_);
    while (calls_ > 0) changed_.Wait(mutex_);
  }
  worker_.reset();
  kumo::owner = 0;
  kumo::MutexLock lock(mutex_);
  is_closed_ = true;
  changed_.NotifyAll();
}

using kumo::Guarded;
using kumo::GuardedOf;
using kumo::InvalidArgument;
using kumo::LibraryWorker;
using kumo::OkStatus;
using kumo::Status;
using kumo::Use;

extern "C" {

const char* kumo_error(void) { return kumo::last_error.c_str(); }

int kumo_exit_code(kumo_status status) {
  if (status == KUMO_OK) return 0;
  return static_cast<int>(kumo::ExitCodeOf(static_cast<kumo::StatusCode>(status)));
}

const char* kumo_library_version(void) { return kumo::kVersion.data(); }

kumo_status kumo_worker_open(const kumo_worker_options* options, kumo_worker** worker) {
  return Guarded([&]() -> Status {
    if (options == nullptr || worker == nullptr) return InvalidArgument("an argument is null");
    const pid_t self = getpid();
    if (kumo::owner == self) {  // *worker may be it
      return kumo::FailedPrecondition("this process has a worker already; close it first");
    }
    *worker = nullptr;
    if (options->size != sizeof(kumo_worker_options) || options->tensors_count < 0 ||
        options->metrics_count < 0 || options->settings_count < 0) {
      return InvalidArgument("the options are of another version of kumo_worker.h");
    }
    if ((options->tensors_count > 0 && options->tensors == nullptr) ||
        (options->metrics_count > 0 && options->metrics == nullptr) ||
        (options->settings_count > 0 && options->settings == nullptr)) {
      return InvalidArgument("an array of the options is null");
    }
    if (kumo::owner.exchange(self) == self) {
      return kumo::FailedPrecondition("this process has a worker already; close it first");
    }
    // After a failure, by an exception too, the process may open another worker.
    struct Guard {
      ~Guard() {
        if (*worker == nullptr) kumo::owner = 0;
      }
      kumo_worker** worker;
    } const guard{worker};
    return kumo::Open(*options, worker);
  });
}

kumo_status kumo_worker_next(kumo_worker* worker, int32_t timeout_ms, kumo_work* work) {
  return GuardedOf(worker, Use::kExclusive, work,
                   [&](LibraryWorker& opened) { return kumo::Next(opened, timeout_ms, work); });
}

kumo_status kumo_worker_samples(kumo_worker* worker, int64_t* indices) {
  return GuardedOf(worker, Use::kExclusive, indices, [&](LibraryWorker& opened) -> Status {
    const auto work = opened.engine()->WaitForWork(0);
    if (!work) return kumo::Aborted("there is no work: ask for the next");
    return opened.engine()->Samples({indices, static_cast<size_t>(work->samples.size())});
  });
}

kumo_status kumo_worker_learning_rate(kumo_worker* worker, int64_t minibatch, float* rate) {
  return GuardedOf(worker, Use::kExclusive, rate, [&](LibraryWorker& opened) -> Status {
    KUMO_ASSIGN_OR_RETURN(*rate, opened.engine()->LearningRate(minibatch));
    return OkStatus();
  });
}

kumo_status kumo_worker_get(kumo_worker* worker, int32_t tensor, float* to) {
  return GuardedOf(worker, Use::kExclusive, to,
                   [&](LibraryWorker& opened) { return opened.engine()->Get(tensor, to); });
}

kumo_status kumo_worker_set(kumo_worker* worker, int32_t tensor, const float* from) {
  return GuardedOf(worker, Use::kExclusive, from,
                   [&](LibraryWorker& opened) { return opened.engine()->Set(tensor, from); });
}

kumo_status kumo_worker_states(kumo_worker* worker, int32_t* count) {
  return GuardedOf(worker, Use::kExclusive, count, [&](LibraryWorker& opened) {
    *count = opened.engine()->states();
    return OkStatus();
  });
}

kumo_status kumo_worker_get_state(kumo_worker* worker, int32_t state, int32_t tensor, float* to) {
  return GuardedOf(worker, Use::kExclusive, to, [&](LibraryWorker& opened) {
    return opened.engine()->GetState(state, tensor, to);
  });
}

kumo_status kumo_worker_set_state(kumo_worker* worker, int32_t state, int32_t tensor,
                                  const float* from) {
  return GuardedOf(worker, Use::kExclusive, from, [&](LibraryWorker& opened) {
    return opened.engine()->SetState(state, tensor, from);
  });
}

kumo_status kumo_worker_finish(kumo_worker* worker, const double* sums, int32_t count) {
  return GuardedOf(worker, Use::kExclusive, worker, [&](LibraryWorker& opened) -> Status {
    if (count < 0 || (count > 0 && sums == nullptr)) return InvalidArgument("no sums are given");
    return opened.engine()->Finish({sums, sums + count});
  });
}

kumo_status kumo_worker_fail(kumo_worker* worker, kumo_status status, const char* reason) {
  return GuardedOf(worker, Use::kShared, reason, [&](LibraryWorker& opened) -> Status {
    if (status == KUMO_OK) return InvalidArgument("there is no reason");
    opened.engine()->Fail(kumo::ErrorFromPeer(static_cast<uint32_t>(status), reason));
    return OkStatus();
  });
}

kumo_status kumo_worker_leave(kumo_worker* worker) {
  return GuardedOf(worker, Use::kShared, worker, [](LibraryWorker& opened) {
    opened.Leave();
    return OkStatus();
  });
}

void kumo_worker_close(kumo_worker* worker) {
  // A forked child has none of the worker's threads.
  if (worker == nullptr || !worker->is_ours()) return;
  worker->Close();
}

kumo_status kumo_weights_open(const char* path, kumo_weights** weights) {
  return Guarded([&]() -> Status {
    if (path == nullptr || weights == nullptr) return InvalidArgument("an argument is null");
    *weights = nullptr;
    auto opened = std::make_unique<kumo_weights>();
    KUMO_RETURN_IF_ERROR(kumo::OpenWeights(path, opened.get()));
    *weights = opened.release();
    return OkStatus();
  });
}

int32_t kumo_weights_count(const kumo_weights* weights) {
  if (weights == nullptr) return 0;
  return static_cast<int32_t>(weights->layout.tensors().size());
}

const char* kumo_weights_name(const kumo_weights* weights, int32_t tensor) {
  if (tensor < 0 || tensor >= kumo_weights_count(weights)) return nullptr;
  return weights->layout.tensors()[tensor].name.c_str();
}

int32_t kumo_weights_shape(const kumo_weights* weights, int32_t tensor, const int64_t** shape) {
  if (tensor < 0 || tensor >= kumo_weights_count(weights) || shape == nullptr) return 0;
  const std::vector<int64_t>& extents = weights->layout.tensors()[tensor].shape;
  *shape = extents.data();
  return static_cast<int32_t>(extents.size());
}

void kumo_weights_get(const kumo_weights* weights, int32_t tensor, float* to) {
  if (tensor < 0 || tensor >= kumo_weights_count(weights) || to == nullptr) return;
  const kumo::Range range = weights->layout.tensor(tensor);
  std::copy_n(weights->weights.data() + range.begin, range.size(), to);
}

void kumo_weights_close(kumo_weights* weights) { delete weights; }

}  // extern "C"
