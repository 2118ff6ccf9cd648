#include "cli/sweep/sweep_runner.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/launch/child_process.h"

namespace kumo {

std::vector<SweepJobEnd> SweepRunner::Run() {
  StartMore();
  while (!running_.empty()) {
    pollfd readable{signals_->fd(), POLLIN, 0};
    poll(&readable, 1, /*timeout=*/-1);
    for (const int signal : signals_->Take()) {
      if (signal != SIGCHLD) PassOn(signal);
    }
    Reap();
    StartMore();
  }
  return ends_;
}

void SweepRunner::StartMore() {
  while (!stopped() && next_ < jobs_.size() && std::ssize(running_) < parallel_) {
    const size_t job = next_++;
    Running started{job, 0};
    ChildSpec spec;
    spec.command = jobs_[job].command();
    spec.output_file = jobs_[job].output_file;
    std::error_code none_yet;
    const uintmax_t bytes = std::filesystem::file_size(spec.output_file, none_yet);
    if (!none_yet) started.output_start = bytes;
    spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
    const Result<pid_t> pid = StartChild(spec);
    if (pid.ok()) {
      running_[*pid] = started;
      on_start(job);
      continue;
    }
    ends_[job].code = static_cast<int>(ExitCodeOf(pid.status()));
    ends_[job].reason = pid.status().message();
    on_end(job, ends_[job]);
  }
}

void SweepRunner::Reap() {
  for (auto it = running_.begin(); it != running_.end();) {
    int status = 0;
    const auto [pid, running] = *it;
    if (waitpid(pid, &status, WNOHANG) != pid) {
      ++it;
      continue;
    }
    it = running_.erase(it);
    SweepJobEnd& end = ends_[running.job];
    end.code = ExitStatus(status);
    end.reason = ExitReasonOf("", jobs_[running.job].output_file, running.output_start);
    on_end(running.job, end);
  }
}

void SweepRunner::PassOn(int signal) {
  const int request = stop_requests_.OnSignal(clock_.NowUs());
  if (request == 0) return;
  for (const auto& [pid, running] : running_) kill(pid, request > 1 ? SIGKILL : signal);
}

}  // namespace kumo
