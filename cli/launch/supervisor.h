// Supervisor: the policy of `kumo launch` for the processes that it started, as a state machine.
// Events (a process ended, a request to stop, time) go in; actions (start, signal) come out. It
// accesses no process, clock or signal; the Launcher carries out its actions.
//
// Rules.
// - A process that crashes, is preempted or loses its servers is restarted after a pause that
//   doubles, a limited number of times; after the loss of a server the job resumes from its last
//   checkpoint.
// - A process that fails after the job has saved a later checkpoint than at the process's previous
//   failure, or that has run for as long as server 0 lets a job stand still, has all its restarts
//   again. So a long job survives any number of failures, and a process that fails without progress
//   of the job does not restart for ever.
// - A host that was reached and is no longer, such as one that boots, is tried for as long, without
//   counting.
// - If a server is gone for good, or no worker is left, the job fails.
// - Exit codes 64 and 78 mean that a restart cannot help: they end the job at once. So does a
//   program of worker.command that ends well during the job without having taken part: the job
//   would wait.
// - If all workers have ended, and server 0 does not end soon after, the workers have left on
//   request: the job is stopped. Or server 0 still copies the model: it is given time.
// - Server 0 decides the outcome: if it ends well, the job is done, and the other processes get
//   some time to leave; if it ends with 75, the job was stopped or has failed.
// - A request to stop goes to server 0 only, which saves and lets all processes leave; a second
//   request kills. A first request after server 0 has ended goes to the processes that are left; if
//   the job stops or fails by itself, a first request changes nothing.
// - The launcher reports the first cause of a failure, whatever other processes report later, in
//   the words of server 0 if these contain the report of a process that ended with the same exit
//   code: server 0 knows what to do next.
//
// Used by one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/remote_process.h"
#include "common/base/clock.h"
#include "common/base/process/stop_requests.h"

namespace kumo {

// Identity of a process of the job.
struct ProcessId {
  enum class Role { kServer, kWorker };
  Role role = Role::kServer;
  int index = 0;

  std::string Name() const;  // "server-0", "worker-3"
  auto operator<=>(const ProcessId&) const = default;
};
// Server 0, the coordinator.
inline constexpr ProcessId kServer0{ProcessId::Role::kServer, 0};

// The end of a process.
struct ProcessEnd {
  int code = 0;                  // exit code; meaningless if signal is not 0
  int signal = 0;                // the signal that killed it, or 0
  std::string reason;            // its own report; may be ""
  std::string host{};            // "": this machine
  bool took_part = true;         // false: a program of worker.command that was no worker at its end
  bool connection_lost = false;  // to its host; what became of the process is not known
  bool started = true;           // false: the system refused to start it

  bool ok() const { return code == 0 && signal == 0; }
};

// "worker-1 ended with exit code 78 (bad configuration): <reason>", or "... was killed by SIGSEGV".
std::string Describe(const ProcessId& process, const ProcessEnd& end);

struct SupervisorSettings {
  int servers = 1;
  int workers = 1;
  int max_restarts = 3;                        // of one process, without a later checkpoint
  TimeUs first_pause_us = 500 * kMillisecond;  // before the first restart; doubles
  TimeUs longest_pause_us = 10 * kSecond;
  // After the loss of a connection: until then the far side has killed the process, which could
  // otherwise still hold the output folder's lock, its port or its name.
  TimeUs lost_pause_us = FromSeconds(kUsualSilenceS) + 2 * kSecond;
  TimeUs grace_us = 25 * kSecond;  // from the request to stop to SIGKILL
  // From the end of server 0 to SIGTERM for the others: after a job that is done (also from the end
  // of the last worker to SIGTERM for server 0), and after one that was stopped. A process that is
  // still starting does not know of either.
  TimeUs leave_us = 10 * kSecond;
  TimeUs leave_stopped_us = kSecond;
  // Signals within this time are one request to stop (StopRequests).
  TimeUs same_request_us = 100 * kMillisecond;
  TimeUs failure_grace_us = 5 * kSecond;  // from SIGTERM to SIGKILL after a failure
  TimeUs stall_us = 600 * kSecond;        // standstill of a job after which server 0 ends it
  // Life of a connection that shows that the host was reached: ssh gives up earlier.
  TimeUs connected_us = 30 * kSecond;
};

struct SupervisorAction {
  enum class Kind { kStart, kSignal };
  Kind kind = Kind::kStart;
  ProcessId process;
  int signal = 0;
};

struct Outcome {
  int code = 0;
  bool done = false;                  // the job, whatever its processes did afterwards
  bool stopped = false;               // by a person or the machine
  bool explained = false;             // stopped: the words say what was saved
  std::string words;                  // "" if all went well
  std::vector<std::string> warnings;  // failures that were recovered
};

class Supervisor {
 public:
  using Actions = std::vector<SupervisorAction>;

  explicit Supervisor(const SupervisorSettings& settings);

  // Starts the processes; call it once, first.
  Actions Begin(TimeUs now);
  // The round of the job's newest complete checkpoint; -1: there is none.
  void OnCheckpoint(int64_t round) { checkpoint_ = round; }
  // A process that was started has ended.
  Actions OnEnd(const ProcessId& process, const ProcessEnd& end, TimeUs now);
  // A person or the machine requests to stop the job.
  Actions OnStopRequest(int signal, TimeUs now);
  // Time has passed; call it at NextDeadline() or at any time.
  Actions OnTime(TimeUs now);

  // The time of OnTime's next action.
  std::optional<TimeUs> NextDeadline() const;
  // True if the job is neither done, stopping nor failed.
  bool running() const { return phase_ == Phase::kRunning; }
  // True if no process is running and none will be started.
  bool over() const;
  // Requires over().
  Outcome outcome() const;
  // Failures so far that were recovered.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  enum class Phase { kRunning, kStopping, kFailing, kLeaving, kKilling };
  enum class State { kRunning, kPausing, kEnded };
  struct Process {
    State state = State::kRunning;
    int restarts = 0;                // since the job's last progress
    int64_t checkpoint_at_end = -1;  // the newest one at the last failure
    TimeUs started_at = 0;
    std::optional<TimeUs> unreachable_since;
    TimeUs restart_at = 0;  // kPausing
    ProcessEnd end;         // kEnded, kPausing
  };

  // Whether the process's host was reached, is no longer, and is still waited for.
  bool AwaitsHost(const Process& process, TimeUs now) const;
  // The pause before a process starts again; none if it has no restart left.
  std::optional<TimeUs> PauseOf(const ProcessEnd& end, TimeUs now, Process* process) const;
  void OnFailure(const ProcessId& id, const ProcessEnd& end, TimeUs now, Actions* actions);
  void Fail(const ProcessId& id, const ProcessEnd& end, const std::string& remark, TimeUs now,
            Actions* actions);
  void BeginToFail(Outcome cause, TimeUs now, Actions* actions);
  void PreferServer0sWords();
  void BeginToStop(TimeUs now, Actions* actions);
  std::string StopWords() const;
  void CancelRestarts();
  void SignalAll(int signal, Actions* actions);
  void AskOthersToLeave(TimeUs now, Actions* actions);
  void KillAll(Actions* actions);
  bool IsRunning(const ProcessId& id) const;
  bool AllWorkersHaveEnded() const;
  bool WorkerIsLeft() const;

  const SupervisorSettings settings_;
  std::map<ProcessId, Process> processes_;
  Phase phase_ = Phase::kRunning;
  std::optional<TimeUs> deadline_;      // of the phase
  bool others_were_signalled_ = false;  // after the end of server 0
  bool all_left_ = false;               // the job was stopped since no worker was left
  int stop_signal_ = 0;                 // of the request to stop, if there was one
  StopRequests stop_requests_;
  std::string stop_words_;  // server 0's, after a request to stop
  std::vector<std::string> killed_;
  bool killed_on_request_ = false;
  int64_t checkpoint_ = -1;
  std::optional<Outcome> cause_;
  std::vector<std::string> warnings_;
};

}  // namespace kumo
