#include "cli/launch/supervisor.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include <glog/logging.h>

#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"
#include "common/base/text.h"

namespace kumo {

namespace {

bool IsHopeless(const ProcessEnd& end) {
  return end.signal == 0 && (end.code == static_cast<int>(ExitCode::kUsage) ||
                             end.code == static_cast<int>(ExitCode::kBadConfiguration));
}

// Signals of a request to stop; a process may be killed by them before it installs its handlers.
bool WasAskedToStop(const ProcessEnd& end) { return end.signal == SIGTERM || end.signal == SIGINT; }

bool IsUnavailable(const ProcessEnd& end) {
  return end.signal == 0 && end.code == static_cast<int>(ExitCode::kUnavailable);
}

int CodeOf(const ProcessEnd& end) {
  return end.signal != 0 ? static_cast<int>(ExitCode::kCrashed) : end.code;
}

// "worker-1 on beta".
std::string NameWithHost(const ProcessId& process, const ProcessEnd& end) {
  return end.host.empty() ? process.Name() : process.Name() + " on " + end.host;
}

Outcome FailureOf(const ProcessEnd& end, std::string words) {
  Outcome outcome;
  outcome.code = CodeOf(end);
  outcome.words = std::move(words);
  return outcome;
}

Outcome IdleOutcome(const ProcessId& id, const ProcessEnd& end) {
  Outcome outcome;
  outcome.code = static_cast<int>(ExitCode::kBadConfiguration);
  outcome.words =
      NameWithHost(id, end) +
      " ended without having taken part in the job; does the program of worker.command "
      "make a kumo.Worker, go through its blocks() until the job is complete, and catch no error "
      "of theirs? The log of its output is logs/" +
      id.Name() + ".stderr of the output folder";
  return outcome;
}

std::string Seconds(TimeUs us) { return std::to_string((us + kSecond / 2) / kSecond) + " s"; }

}  // namespace

Supervisor::Supervisor(const SupervisorSettings& settings)
    : settings_(settings), stop_requests_(settings.same_request_us) {
  CHECK_GE(settings.servers, 1);
  CHECK_GE(settings.workers, 1);
}

Supervisor::Actions Supervisor::Begin(TimeUs now) {
  Actions actions;
  const auto start = [&](ProcessId::Role role, int count) {
    for (int i = 0; i < count; ++i) {
      processes_[{role, i}] = Process();
      processes_[{role, i}].started_at = now;
      actions.push_back({SupervisorAction::Kind::kStart, {role, i}, 0});
    }
  };
  start(ProcessId::Role::kServer, settings_.servers);
  start(ProcessId::Role::kWorker, settings_.workers);
  return actions;
}

Supervisor::Actions Supervisor::OnEnd(const ProcessId& id, const ProcessEnd& end, TimeUs now) {
  Actions actions;
  CHECK(IsRunning(id)) << id.Name() << " ended without having been started";
  Process& process = processes_[id];
  process.state = State::kEnded;
  process.end = end;
  switch (phase_) {
    case Phase::kRunning:
      if (id == kServer0 && end.ok()) {
        phase_ = Phase::kLeaving;
        deadline_ = now + settings_.leave_us;
        CancelRestarts();
      } else if (!end.ok()) {
        OnFailure(id, end, now, &actions);
      } else if (!end.took_part) {
        BeginToFail(IdleOutcome(id, end), now, &actions);
      }
      if (phase_ == Phase::kRunning && AllWorkersHaveEnded()) deadline_ = now + settings_.leave_us;
      break;
    case Phase::kStopping:
      // Once server 0 has ended, the checkpoint is saved, and the others have only to leave: they
      // get less time from here on.
      if (id == kServer0) {
        if (!all_left_) stop_words_ = end.reason;
        deadline_ = std::min(*deadline_, now + settings_.leave_stopped_us);
      }
      // Processes that stop end with 0 or 75, or by the signal. Anything else is a failure of its
      // own.
      if (!end.ok() && !IsUnavailable(end) && !WasAskedToStop(end) && !cause_) {
        cause_ = FailureOf(end, Describe(id, end) + " (while stopping)");
      }
      break;
    case Phase::kLeaving:
      if (end.ok()) break;
      // A process that misses the end of the job loses its servers instead, which is harmless.
      if (IsUnavailable(end) || WasAskedToStop(end)) {
        warnings_.push_back(Describe(id, end) + " (after the job was done)");
      } else if (!cause_) {
        cause_ = FailureOf(end, Describe(id, end) + " (after the job was done)");
      }
      break;
    case Phase::kFailing:
      PreferServer0sWords();
      break;
    case Phase::kKilling:
      break;
  }
  return actions;
}

bool Supervisor::AwaitsHost(const Process& process, TimeUs now) const {
  return process.unreachable_since && now < *process.unreachable_since + settings_.stall_us;
}

std::optional<TimeUs> Supervisor::PauseOf(const ProcessEnd& end, TimeUs now,
                                          Process* process) const {
  const TimeUs ran = now - process->started_at;
  if (checkpoint_ > process->checkpoint_at_end || ran >= settings_.stall_us) process->restarts = 0;
  process->checkpoint_at_end = checkpoint_;
  if (!end.connection_lost) {
    process->unreachable_since.reset();
  } else if (ran >= settings_.connected_us) {
    process->unreachable_since = now;
  }
  if (AwaitsHost(*process, now)) {
    return process->unreachable_since == now
               ? std::max(settings_.first_pause_us, settings_.lost_pause_us)
               : settings_.longest_pause_us;
  }
  if (process->restarts == settings_.max_restarts) return std::nullopt;
  const int doublings = std::min(process->restarts++, 20);  // the shift must not overflow
  return std::min(settings_.first_pause_us << doublings, settings_.longest_pause_us);
}

void Supervisor::OnFailure(const ProcessId& id, const ProcessEnd& end, TimeUs now,
                           Actions* actions) {
  // Server 0 ends with 75 by decision: the job was stopped, or it has given up. A new server 0
  // would go on against that decision.
  const bool decided = end.started && !end.connection_lost;
  if (IsHopeless(end) || (id == kServer0 && IsUnavailable(end) && decided)) {
    return Fail(id, end, "", now, actions);
  }
  Process& process = processes_[id];
  if (const std::optional<TimeUs> pause = PauseOf(end, now, &process)) {
    process.state = State::kPausing;
    process.restart_at = now + *pause;
    // A host that is tried again and again is told of once.
    if (!AwaitsHost(process, now) || process.unreachable_since == now) {
      warnings_.push_back(Describe(id, end) + " (started again)");
    }
    return;
  }
  const std::string remark = process.restarts == 0
                                 ? ""
                                 : " (after " + std::to_string(process.restarts) +
                                       (process.restarts == 1 ? " restart)" : " restarts)");
  // The other workers take the partitions of one that is gone; nobody takes a server's chunks.
  if (id.role == ProcessId::Role::kWorker && WorkerIsLeft()) {
    warnings_.push_back(Describe(id, end) + remark);
  } else {
    Fail(id, end, remark, now, actions);
  }
}

void Supervisor::Fail(const ProcessId& id, const ProcessEnd& end, const std::string& remark,
                      TimeUs now, Actions* actions) {
  BeginToFail(FailureOf(end, Describe(id, end) + remark), now, actions);
}

void Supervisor::BeginToFail(Outcome cause, TimeUs now, Actions* actions) {
  cause_ = std::move(cause);
  phase_ = Phase::kFailing;
  deadline_ = now + settings_.failure_grace_us;
  CancelRestarts();
  SignalAll(SIGTERM, actions);
}

// Server 0 reports one of several processes that fail at the same time, not always the one that
// ended first. A program that catches the error with which the job ends may end before server 0.
void Supervisor::PreferServer0sWords() {
  const Process& server = processes_.at(kServer0);
  if (!cause_ || server.state != State::kEnded || CodeOf(server.end) != cause_->code) return;
  for (const auto& [id, process] : processes_) {
    if (id == kServer0 || process.state != State::kEnded) continue;
    const bool is_idle = process.end.ok() && !process.end.took_part;
    const bool is_reported = CodeOf(process.end) == cause_->code && !process.end.reason.empty() &&
                             server.end.reason.find(process.end.reason) != std::string::npos;
    if (is_idle || is_reported) cause_->words = Describe(kServer0, server.end);
  }
}

Supervisor::Actions Supervisor::OnStopRequest(int signal, TimeUs now) {
  Actions actions;
  if (phase_ == Phase::kKilling) return actions;
  const int request = stop_requests_.OnSignal(now);
  if (request == 0) return actions;
  if (request > 1) {
    killed_on_request_ = true;
    KillAll(&actions);
    return actions;
  }
  stop_signal_ = signal;
  if (phase_ == Phase::kRunning) {
    BeginToStop(now, &actions);
  } else if (phase_ != Phase::kFailing && processes_.at(kServer0).state == State::kEnded) {
    AskOthersToLeave(now, &actions);
  }
  return actions;
}

void Supervisor::BeginToStop(TimeUs now, Actions* actions) {
  phase_ = Phase::kStopping;
  deadline_ =
      now + (all_left_ ? std::max(settings_.grace_us, settings_.stall_us) : settings_.grace_us);
  CancelRestarts();
  // Server 0 saves with the help of all others, so they must not get the signal, too. Without a
  // server 0 nobody can save.
  if (IsRunning(kServer0)) {
    actions->push_back({SupervisorAction::Kind::kSignal, kServer0, SIGTERM});
  } else {
    SignalAll(SIGTERM, actions);
  }
}

Supervisor::Actions Supervisor::OnTime(TimeUs now) {
  Actions actions;
  for (auto& [id, process] : processes_) {
    if (process.state == State::kPausing && now >= process.restart_at) {
      process.state = State::kRunning;
      process.started_at = now;
      actions.push_back({SupervisorAction::Kind::kStart, id, 0});
    }
  }
  if (!deadline_ || now < *deadline_) return actions;
  // A running job has a deadline only after its last worker has ended (OnEnd).
  if (phase_ == Phase::kRunning) {
    all_left_ = true;
    BeginToStop(now, &actions);
    return actions;
  }
  // After the end of server 0 the others are asked once before they are killed: they may be waiting
  // for a server that is gone.
  const bool left = phase_ == Phase::kLeaving ||
                    (phase_ == Phase::kStopping && processes_.at(kServer0).state == State::kEnded);
  if (left && !others_were_signalled_) {
    AskOthersToLeave(now, &actions);
  } else {
    KillAll(&actions);
  }
  return actions;
}

std::optional<TimeUs> Supervisor::NextDeadline() const {
  std::optional<TimeUs> next = deadline_;
  for (const auto& [id, process] : processes_) {
    if (process.state == State::kPausing) {
      next = next ? std::min(*next, process.restart_at) : process.restart_at;
    }
  }
  return next;
}

bool Supervisor::over() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const auto& entry) { return entry.second.state == State::kEnded; });
}

Outcome Supervisor::outcome() const {
  CHECK(over());
  Outcome outcome;
  // A request to stop that came too late stops nothing: a job that is done stays done.
  const bool done = processes_.at(kServer0).end.ok();
  if (cause_) {
    outcome = *cause_;
  } else if ((stop_signal_ != 0 || all_left_) && !done) {
    outcome.code = static_cast<int>(ExitCode::kUnavailable);
    outcome.stopped = true;
    outcome.explained = !stop_words_.empty();
    outcome.words = StopWords();
  } else if (!killed_.empty() && !killed_on_request_) {
    outcome.code = static_cast<int>(ExitCode::kCrashed);
    outcome.words = "the job is done, but " + Join(killed_) + " did not end within " +
                    Seconds(settings_.leave_us + settings_.failure_grace_us) +
                    " and had to be killed";
  }
  outcome.done = done;
  outcome.warnings = warnings_;
  return outcome;
}

// Server 0's own report, "stopped after round 12, ...", follows the signal's name.
std::string Supervisor::StopWords() const {
  constexpr std::string_view kStopped = "stopped ";
  std::string words = all_left_ ? "stopped: all workers have left the job"
                                : std::string("stopped by ") + SignalName(stop_signal_);
  if (!killed_.empty()) words += " (killed: " + Join(killed_) + ")";
  if (stop_words_.starts_with(kStopped)) return words + " " + stop_words_.substr(kStopped.size());
  return stop_words_.empty() ? words : words + ": " + stop_words_;
}

void Supervisor::CancelRestarts() {
  for (auto& [id, process] : processes_) {
    if (process.state == State::kPausing) process.state = State::kEnded;
  }
}

void Supervisor::SignalAll(int signal, Actions* actions) {
  for (const auto& [id, process] : processes_) {
    if (process.state == State::kRunning) {
      actions->push_back({SupervisorAction::Kind::kSignal, id, signal});
    }
  }
}

void Supervisor::AskOthersToLeave(TimeUs now, Actions* actions) {
  if (others_were_signalled_) return;
  others_were_signalled_ = true;
  deadline_ = now + settings_.failure_grace_us;
  SignalAll(SIGTERM, actions);
}

void Supervisor::KillAll(Actions* actions) {
  phase_ = Phase::kKilling;
  deadline_.reset();
  for (const auto& [id, process] : processes_) {
    if (process.state == State::kRunning) killed_.push_back(id.Name());
  }
  SignalAll(SIGKILL, actions);
}

bool Supervisor::IsRunning(const ProcessId& id) const {
  const auto it = processes_.find(id);
  return it != processes_.end() && it->second.state == State::kRunning;
}

bool Supervisor::AllWorkersHaveEnded() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const auto& entry) {
    return entry.first.role != ProcessId::Role::kWorker || entry.second.state == State::kEnded;
  });
}

bool Supervisor::WorkerIsLeft() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& entry) {
    const bool worker = entry.first.role == ProcessId::Role::kWorker;
    // A worker that ended well has seen the end of the job.
    return worker && (entry.second.state != State::kEnded || entry.second.end.ok());
  });
}

std::string ProcessId::Name() const {
  return (role == Role::kServer ? "server-" : "worker-") + std::to_string(index);
}

std::string Describe(const ProcessId& process, const ProcessEnd& end) {
  std::string text = NameWithHost(process, end);
  if (!end.started) return text + ": " + end.reason;
  if (end.signal != 0) {
    text += std::string(" was killed by ") + SignalName(end.signal) + " (signal " +
            std::to_string(end.signal) + ")";
  } else {
    text += " ended with exit code " + ExitCodeText(end.code);
  }
  return end.reason.empty() ? text : text + ": " + end.reason;
}

}  // namespace kumo
