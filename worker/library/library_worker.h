// Library worker: a worker inside a program that computes its own model: experiment, job, engine,
// log, and the service on a thread of its own.
//
// It starts its threads in Open and has ended them when it is destroyed. Thread-safety: Leave,
// EndEarly and the engine's methods by any thread; the others by one thread at a time. It must be
// destroyed when all calls have returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "common/base/process/logging.h"
#include "common/base/process/signals.h"
#include "common/base/status.h"
#include "common/http/process_view.h"
#include "common/job/metric_list.h"
#include "common/job/parameter_layout.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment.h"
#include "worker/library/caller_engine.h"
#include "worker/worker_service.h"

namespace kumo {

// Leave requests of the program, in the place of a process's signals. Any thread.
class LeaveRequests : public StopSource {
 public:
  LeaveRequests();
  ~LeaveRequests() override;
  LeaveRequests(const LeaveRequests&) = delete;
  LeaveRequests& operator=(const LeaveRequests&) = delete;

  void Request();
  int fd() const override { return fd_; }
  std::vector<int> Take() override;

 private:
  const int fd_;
};

// A program's model and samples.
struct OwnModel {
  std::vector<TensorSpec> tensors;
  std::vector<const float*> initial;  // by tensor; borrowed for Open
  std::vector<Metric> metrics;
  std::vector<std::string> undirected;  // metrics for which nobody said whether more is better
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
};

struct LibraryWorkerSettings {
  std::string experiment;         // file, unless $KUMO_EXPERIMENT is set
  std::vector<std::string> sets;  // "section.key=value", before those of $KUMO_SETTINGS
  std::string name;               // unless $KUMO_WORKER_NAME is set; "": HOST-PID
  std::string device;             // for people
  Variables variables;            // of the environment
};

class LibraryWorker {
 public:
  // The errors of ParseExperiment and ParameterLayout::Make; FailedPrecondition if the experiment
  // is not one of an own model, or names no servers.
  static Result<std::unique_ptr<LibraryWorker>> Open(const LibraryWorkerSettings& settings,
                                                     const OwnModel& model);
  // Gives work in progress back.
  ~LibraryWorker();
  LibraryWorker(const LibraryWorker&) = delete;
  LibraryWorker& operator=(const LibraryWorker&) = delete;

  CallerEngine* engine() { return engine_.get(); }
  const Experiment& experiment() const { return experiment_; }
  // Waits for work, `timeout` at most; none: there is none yet, or the worker has ended, or ends
  // early.
  std::optional<CallerWork> Next(TimeUs timeout);
  // Whether the service has ended, and then its result: ok if the job is done or this worker has
  // left on request.
  bool ended() const { return ended_; }
  const Status& result() const { return result_; }
  bool left() const { return left_; }
  void Leave();
  // Ends the service, if it still runs: work in progress is given back, and Next, if it waits,
  // returns.
  void EndEarly();
  // Whether EndEarly has found a running service.
  bool ends_early() const { return ends_early_; }

 private:
  LibraryWorker(Experiment experiment, std::string idle_mark, std::unique_ptr<Logging> logging);

  const Experiment experiment_;
  const std::string idle_mark_;             // a file (common/settings/worker_program.h); "": none
  const std::unique_ptr<Logging> logging_;  // ends last
  RunningClock clock_;
  LeaveRequests leave_;
  std::unique_ptr<ShownProcess> shown_;  // $KUMO_HTTP; may be null
  std::unique_ptr<CallerEngine> engine_;
  std::unique_ptr<WorkerService> service_;
  std::atomic<bool> asked_to_leave_{false};
  std::atomic<bool> ends_early_{false};
  bool left_ = false;
  bool ended_ = false;
  Status result_;
  std::atomic<bool> over_{false};  // the service's thread has nothing left to do
  Status run_result_;              // written by that thread before over_
  std::thread thread_;             // uses the members above
};

}  // namespace kumo
