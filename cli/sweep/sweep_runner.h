// Sweep runner: runs the jobs of a sweep as child processes, some at a time. A job that fails ends
// no other job.
//
// Single-threaded: used from the main thread, which forks and therefore must live as long as the
// children (see DieWithParent).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/process/signals.h"
#include "common/base/process/stop_requests.h"

namespace kumo {

struct SweepJob {
  std::string name;
  std::function<std::vector<std::string>()> command;  // called when the job starts
  std::string output_file;                            // appended with the output
};

struct SweepJobEnd {
  int code = 0;        // exit code, or 128 + the signal that killed it
  std::string reason;  // its last line; "" if it printed nothing
};

class SweepRunner {
 public:
  // signals must also handle SIGCHLD, and outlive the runner.
  SweepRunner(std::vector<SweepJob> jobs, int parallel, StopSignals* signals)
      : jobs_(std::move(jobs)), parallel_(parallel), ends_(jobs_.size()), signals_(signals) {}

  // Called when a job has started, and when it has ended.
  std::function<void(size_t job)> on_start = [](size_t) {};
  std::function<void(size_t job, const SweepJobEnd& end)> on_end = [](size_t, const SweepJobEnd&) {
  };

  // Runs all jobs. A request to stop is passed on to the running jobs, which save and end; no
  // further job starts. A second request kills. Returns the end of each job.
  std::vector<SweepJobEnd> Run();
  bool stopped() const { return stop_requests_.any(); }

 private:
  struct Running {
    size_t job = 0;
    uintmax_t output_start = 0;  // bytes of the output file at its start
  };
  void StartMore();
  void Reap();
  void PassOn(int signal);

  const std::vector<SweepJob> jobs_;
  const int parallel_;
  std::vector<SweepJobEnd> ends_;
  StopSignals* const signals_;
  size_t next_ = 0;  // job to start
  StopRequests stop_requests_{100 * kMillisecond};
  const SteadyClock clock_;
  std::map<pid_t, Running> running_;
};

}  // namespace kumo
