#include "cli/launch/launcher.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "cli/launch/child_process.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/checkpoint/checkpoint.h"
#include "common/settings/worker_program.h"

namespace kumo {
namespace {

// Also the largest delay of a warning of server 0.
constexpr TimeUs kLongestWait = kSecond;

// host: of the process; "": this one.
ProcessEnd EndOf(int status, const std::string& host) {
  ProcessEnd end;
  end.host = host;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    return end;
  }
  end.code = WEXITSTATUS(status);
  if (!host.empty() && end.code == kConnectionLost) {
    end.code = static_cast<int>(ExitCode::kUnavailable);
    end.connection_lost = true;
  }
  return end;
}

}  // namespace

Launcher::Launcher(LaunchPlan plan, const Clock* clock, StopSignals* signals)
    : plan_(std::move(plan)),
      clock_(clock),
      signals_(signals),
      supervisor_(plan_.supervisor),
      server_warnings_(OutputFile(kServer0)) {}

Launcher::~Launcher() {
  for (const auto& [pid, id] : running_) kill(-pid, SIGKILL);
  for (const auto& [pid, id] : running_) waitpid(pid, nullptr, 0);
}

std::string Launcher::OutputFile(const ProcessId& id) const {
  return plan_.log_directory + "/" + id.Name() + ".stderr";
}

std::string Launcher::AbsoluteFile(const std::string& name) const {
  std::error_code error;
  const std::string file = plan_.log_directory + "/" + name;
  const std::filesystem::path absolute = std::filesystem::absolute(file, error);
  return error ? file : absolute.string();
}

std::string Launcher::TerminationLog(const ProcessId& id) const {
  return AbsoluteFile(id.Name() + ".last-words");
}

std::string Launcher::IdleMark(const ProcessId& id) const {
  return plan_.environment.contains(id) ? AbsoluteFile(id.Name() + ".idle") : "";
}

Outcome Launcher::Run() {
  Do(supervisor_.Begin(clock_->NowUs()));
  while (!supervisor_.over()) {
    Wait();
    for (const int signal : signals_->Take()) {
      if (signal == SIGCHLD) continue;
      LOG(INFO) << "received " << SignalName(signal);
      TellWarnings();  // those before the signal
      Do(supervisor_.OnStopRequest(signal, clock_->NowUs()));
    }
    Reap();
    Do(supervisor_.OnTime(clock_->NowUs()));
    TellWarnings();
  }
  return supervisor_.outcome();
}

void Launcher::TellWarnings() {
  for (const std::string& warning : server_warnings_.Next()) {
    if (supervisor_.running()) plan_.tell(kServer0.Name() + ": " + warning);
  }
  const std::vector<std::string>& warnings = supervisor_.warnings();
  for (; told_ < warnings.size(); ++told_) plan_.tell(warnings[told_]);
}

void Launcher::Do(const Supervisor::Actions& actions) {
  std::map<ProcessId, ProcessEnd> failures;
  for (const SupervisorAction& action : actions) {
    if (action.kind == SupervisorAction::Kind::kSignal) {
      Signal(action.process, action.signal);
      continue;
    }
    const Status status = Start(action.process);
    if (status.ok()) continue;
    ProcessEnd& end = failures[action.process];
    end.code = static_cast<int>(ExitCodeOf(status));
    end.reason = status.message();
    end.started = false;
  }
  for (const auto& [id, end] : failures) Do(supervisor_.OnEnd(id, end, clock_->NowUs()));
}

Status Launcher::Start(const ProcessId& id) {
  unlink(TerminationLog(id).c_str());
  ChildSpec spec;
  spec.command = plan_.commands.at(id);
  if (const auto more = plan_.environment.find(id); more != plan_.environment.end()) {
    spec.environment = more->second;
  }
  spec.environment.emplace_back("KUMO_TERMINATION_LOG", TerminationLog(id));
  SetIdleMark(IdleMark(id));
  spec.environment.emplace_back(kIdleMark, IdleMark(id));
  // Server 0 shows the progress, so it has the terminal.
  const bool shown = id == kServer0 && !plan_.quiet;
  (shown ? spec.error_file : spec.output_file) = OutputFile(id);
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(OutputFile(id), error);
  output_start_[id] = error ? 0 : bytes;
  KUMO_ASSIGN_OR_RETURN(const pid_t pid, StartChild(spec));
  running_[pid] = id;
  LOG(INFO) << "started " << id.Name() << " as pid " << pid;
  return OkStatus();
}

void Launcher::Signal(const ProcessId& id, int signal) {
  for (const auto& [pid, running] : running_) {
    if (running != id) continue;
    LOG(INFO) << "sending " << SignalName(signal) << " to " << id.Name() << ", pid " << pid;
    // The last resort also kills the process's own children.
    kill(signal == SIGKILL ? -pid : pid, signal);
  }
}

void Launcher::Wait() {
  const TimeUs now = clock_->NowUs();
  const TimeUs until = supervisor_.NextDeadline().value_or(now + kLongestWait);
  const TimeUs wait = std::clamp<TimeUs>(until - now, 0, kLongestWait);
  pollfd readable{signals_->fd(), POLLIN, 0};
  poll(&readable, 1, static_cast<int>((wait + kMillisecond - 1) / kMillisecond));
}

void Launcher::Reap() {
  for (auto it = running_.begin(); it != running_.end();) {
    const auto [pid, id] = *it;
    const std::optional<int> status = TakeEnded(pid);
    if (!status) {
      ++it;
      continue;
    }
    it = running_.erase(it);
    TellWarnings();  // those before the end: a short job's may all come in one wait
    const auto host = plan_.hosts.find(id);
    ProcessEnd end = EndOf(*status, host == plan_.hosts.end() ? "" : host->second);
    if (!end.ok()) end.reason = ExitReasonOf(TerminationLog(id), OutputFile(id), output_start_[id]);
    end.took_part = access(IdleMark(id).c_str(), F_OK) != 0;
    RemoveIdleMark(IdleMark(id));
    LOG(INFO) << Describe(id, end);
    supervisor_.OnCheckpoint(NewestCheckpoint());
    Do(supervisor_.OnEnd(id, end, clock_->NowUs()));
  }
}

// The round of the newest complete checkpoint; -1: none, or none can be read now.
int64_t Launcher::NewestCheckpoint() const {
  PosixFileSystem files;
  const Result<std::string> newest = FindLatest(files, plan_.checkpoints);
  return newest.ok() ? VersionOf(*newest) : -1;
}

}  // namespace kumo
