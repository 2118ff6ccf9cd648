#include "worker/library/library_worker.h"

#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/version.h"
#include "common/job/job_identity.h"
#include "common/job/process_identity.h"
#include "common/job/round_policy.h"
#include "common/settings/parser.h"
#include "common/settings/worker_program.h"
#include "worker/training/metric_settings.h"

namespace kumo {
namespace {

constexpr char kPage[] = "docs/pytorch.md";

// Settings that choose by a metric need to know whether more of it is better.
Status CheckDirections(const Experiment& experiment, const std::vector<std::string>& undirected) {
  const auto check = [&](const std::string& key, const std::string& metric) {
    if (std::ranges::count(undirected, metric) == 0) return OkStatus();
    return InvalidArgument(key + " = " + metric + ", but it is unknown whether more of " + metric +
                           " is better; declare it in the program: kumo.Metric(\"" + metric +
                           "\", more_is_better=True), or False");
  };
  KUMO_RETURN_IF_ERROR(check("checkpoint.best", experiment.checkpoint.best));
  if (experiment.job.patience == 0) return OkStatus();
  return check("job.patience_metric", experiment.job.patience_metric);
}

Result<JobSpec> SpecOf(const Experiment& experiment, const OwnModel& model) {
  JobSpec spec;
  KUMO_ASSIGN_OR_RETURN(spec.layout, ParameterLayout::Make(model.tensors));
  KUMO_ASSIGN_OR_RETURN(spec.metrics, MetricList::Make(model.metrics));
  if (model.metrics.empty()) return InvalidArgument("a job needs a metric; name one, such as loss");
  if (model.train_samples < 1) {
    return InvalidArgument("train_samples = " + std::to_string(model.train_samples) +
                           ": must be at least 1");
  }
  if (model.validation_samples < 0) {
    return InvalidArgument("validation_samples = " + std::to_string(model.validation_samples) +
                           ": must be at least 0");
  }
  KUMO_RETURN_IF_ERROR(CheckMetricSettings(experiment, spec.metrics, model.validation_samples,
                                           "the program", std::string("there (") + kPage + ")"));
  KUMO_RETURN_IF_ERROR(CheckDirections(experiment, model.undirected));
  spec.train_samples = model.train_samples;
  spec.validation_samples = model.validation_samples;
  spec.train.name = spec.validation.name = "samples of a program";
  spec.optimiser_slots = RoundPolicy(experiment).carried().optimiser_slots;
  return spec;
}

Buffer<float> InitialOf(const ParameterLayout& layout, const OwnModel& model) {
  Buffer<float> weights(layout.size());
  for (size_t i = 0; i < model.initial.size(); ++i) {
    const Range range = layout.tensor(static_cast<int>(i));
    std::copy_n(model.initial[i], range.size(), weights.data() + range.begin);
  }
  return weights;
}

// The settings of the program, then those of `kumo launch`, one a line.
std::vector<std::string> SetsOf(const LibraryWorkerSettings& settings) {
  std::vector<std::string> sets = settings.sets;
  std::istringstream lines(ValueOf(settings.variables, "KUMO_SETTINGS"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) sets.push_back(line);
  }
  return sets;
}

// Makes paths absolute: the program may have changed its working folder since it was started in
// `folder` ("": by hand, here), and may change it while paths are used.
void ResolvePaths(std::string folder, Experiment* experiment) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);
  if (folder.empty()) folder = here;
  if (folder.empty()) return;
  for (std::string* const path :
       {&experiment->output.directory, &experiment->network.initial_weights,
        &experiment->network.initial_names, &experiment->cluster.keys}) {
    if (!path->empty() && !path->starts_with('/')) *path = JoinPath(folder, *path);
  }
  constexpr std::string_view kIpc = "ipc://";  // before a path, or an abstract name: @NAME
  for (std::string& address : experiment->cluster.servers) {
    if (!address.starts_with(kIpc)) continue;
    const std::string path = address.substr(kIpc.size());
    if (path.starts_with('/') || path.starts_with('@')) continue;
    const std::string absolute = JoinPath(folder, path);
    // A longer one is none of a socket's.
    if (folder != here || absolute.size() < sizeof(sockaddr_un::sun_path)) {
      address = std::string(kIpc) + absolute;
    }
  }
}

Result<Experiment> ExperimentFor(const LibraryWorkerSettings& settings) {
  const std::string launched = ValueOf(settings.variables, "KUMO_EXPERIMENT");
  const std::string& file = launched.empty() ? settings.experiment : launched;
  if (file.empty()) {
    return FailedPrecondition(
        "no experiment file is named; name one, or start this program with kumo launch FILE");
  }
  KUMO_ASSIGN_OR_RETURN(Experiment experiment,
                        ParseExperiment(file, SetsOf(settings), settings.variables));
  if (!experiment.worker.OwnsModel()) {
    return FailedPrecondition(file +
                              ": worker.command is not set, so the job trains network.file; "
                              "set worker.command to the command that starts this program");
  }
  if (experiment.cluster.servers.empty()) {
    return FailedPrecondition(file +
                              ": cluster.servers is not set; start the job with kumo launch, which "
                              "starts this program too, or list the servers' addresses");
  }
  return experiment;
}

}  // namespace

LeaveRequests::LeaveRequests() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
LeaveRequests::~LeaveRequests() { close(fd_); }

void LeaveRequests::Request() {
  const uint64_t one = 1;
  const ssize_t written = write(fd_, &one, sizeof(one));
  (void)written;  // full: a request is pending already
}

std::vector<int> LeaveRequests::Take() {
  uint64_t count = 0;
  if (read(fd_, &count, sizeof(count)) < 0) return {};
  return {0};
}

LibraryWorker::LibraryWorker(Experiment experiment, std::string idle_mark,
                             std::unique_ptr<Logging> logging)
    : experiment_(std::move(experiment)),
      idle_mark_(std::move(idle_mark)),
      logging_(std::move(logging)) {}

Result<std::unique_ptr<LibraryWorker>> LibraryWorker::Open(const LibraryWorkerSettings& settings,
                                                           const OwnModel& model) {
  KUMO_ASSIGN_OR_RETURN(Experiment experiment, ExperimentFor(settings));
  SessionSettings session;
  session.identity = IdentityOf(experiment);
  ResolvePaths(ValueOf(settings.variables, "KUMO_FOLDER"), &experiment);
  KUMO_ASSIGN_OR_RETURN(JobSpec spec, SpecOf(experiment, model));
  session.experiment = experiment;
  session.spec = spec;
  // The launched name counts, since all workers run the same program.
  session.name = ValueOf(settings.variables, "KUMO_WORKER_NAME");
  if (session.name.empty()) session.name = settings.name;
  if (session.name.empty()) session.name = HostName() + "-" + std::to_string(getpid());
  session.device = settings.device;
  session.process = ThisProcess(HostName());
  // A program that logs through glog itself keeps its own log.
  std::unique_ptr<Logging> logging;
  if (!google::IsGoogleLoggingInitialized()) {
    KUMO_ASSIGN_OR_RETURN(logging,
                          Logging::Start(LogOfWorker("kumo_worker", experiment, session.name)));
  }
  Buffer<float> initial = InitialOf(spec.layout, model);
  std::unique_ptr<LibraryWorker> worker(
      new LibraryWorker(experiment, ValueOf(settings.variables, kIdleMark), std::move(logging)));
  ProcessTitle title{"kumo-worker", session.name, std::string(kVersion), std::string(kCommit)};
  KUMO_ASSIGN_OR_RETURN(
      worker->shown_,
      ShownProcess::Start(ValueOf(settings.variables, "KUMO_HTTP"), "KUMO_HTTP", std::move(title)));
  KUMO_ASSIGN_OR_RETURN(worker->engine_, CallerEngine::Make(experiment, std::move(spec),
                                                            std::move(initial), &worker->clock_));
  KUMO_ASSIGN_OR_RETURN(
      worker->service_,
      WorkerService::Make(session, &worker->clock_, worker->engine_.get(), &worker->leave_,
                          worker->shown_ ? worker->shown_->view() : nullptr));
  RemoveIdleMark(worker->idle_mark_);
  worker->thread_ = std::thread([self = worker.get()] {
    try {
      self->run_result_ = self->service_->Run();
    } catch (...) {
      self->run_result_ = CurrentException();
    }
    self->engine_->Cancel();
    self->over_ = true;
  });
  return worker;
}

LibraryWorker::~LibraryWorker() {
  if (thread_.joinable()) {
    EndEarly();
    thread_.join();
  }
  // Next has returned the other errors, but the program may have caught them. A departure that was
  // asked for is no error, even if the partitions were not handed over in time.
  const bool has_left = asked_to_leave_ && (ended_ || service_->handed_over());
  if (!service_ || service_->job_ended() || has_left) return;
  LOG_IF(WARNING, ended_) << "the worker has ended before the job: " << run_result_.message();
  SetIdleMark(idle_mark_);
}

void LibraryWorker::EndEarly() {
  if (over_) return;
  ends_early_ = true;
  engine_->Fail(Unavailable("the program ended its worker before the job was done"));
  // Work that fails ends the worker with its own reason: a request then only helps if the session
  // no longer wants that work. A second request, some time after the first, ends a worker that
  // holds leases.
  constexpr auto kFailure = std::chrono::seconds(2);
  constexpr auto kBetweenRequests = std::chrono::milliseconds(200);
  constexpr auto kStep = std::chrono::milliseconds(5);
  auto next = std::chrono::steady_clock::now();
  if (engine_->failed()) next += kFailure;
  while (!over_) {
    if (const auto now = std::chrono::steady_clock::now(); now >= next) {
      leave_.Request();
      next = now + kBetweenRequests;
    }
    std::this_thread::sleep_for(kStep);
  }
}

std::optional<CallerWork> LibraryWorker::Next(TimeUs timeout) {
  if (ended_) return std::nullopt;
  if (const auto work = engine_->WaitForWork(timeout)) return work;
  if (!engine_->cancelled() || ends_early_) return std::nullopt;
  // Without the engine the service's thread ends at once.
  thread_.join();
  ended_ = true;
  result_ = run_result_;
  // The session calls a departure that was asked for an interruption, complete or not.
  if (asked_to_leave_ && service_->handed_over()) {
    result_ = OkStatus();
    left_ = true;
  }
  return std::nullopt;
}

void LibraryWorker::Leave() {
  asked_to_leave_ = true;
  leave_.Request();
}

}  // namespace kumo
