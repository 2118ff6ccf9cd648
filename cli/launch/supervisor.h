// What `kumo launch` does about the processes that it started, as a state machine: it takes what
// happened (a process ended, a person wants to stop, time passed) and returns what to do (start,
// signal). It sees no process, clock or signal itself; Launcher carries its decisions out.
//
// In prose. A process that crashes, is preempted or loses its servers is started again, after a
// pause that doubles, a limited number of times: the job goes on (from its last checkpoint, where a
// server was lost). When a server is gone for good, or no worker is left, the job fails. Exit codes
// 64 and 78 say that starting again cannot help: they end the job at once. Server 0 knows how the
// job stands: when it ends well the job is done, and the others get a moment to leave; when it
// leaves with 75 the job was stopped or has failed. A request to stop goes to server 0 alone, which
// saves and lets everybody leave; a second one kills. The first cause of a failure is what the
// launcher reports, whatever the end of the others says after it.
//
// Used by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/process_end.h"
#include "common/base/clock.h"

namespace kumo {

struct SupervisorSettings {
  int servers = 1;
  int workers = 1;
  int max_restarts = 3;                        // of one process
  TimeUs first_pause_us = 500 * kMillisecond;  // before its first restart; then doubling
  TimeUs longest_pause_us = 10 * kSecond;
  TimeUs grace_us = 25 * kSecond;  // from the request to stop to SIGKILL
  TimeUs leave_us = 10 * kSecond;  // from the end of server 0 to SIGTERM for who is still there
  // Requests to stop that come so soon after the first are the same one: `timeout` signals a
  // process and its group, one right after the other. A person takes longer to press keys twice.
  TimeUs same_request_us = 100 * kMillisecond;
  TimeUs failure_grace_us = 5 * kSecond;  // from SIGTERM to SIGKILL after a failure
};

struct SupervisorAction {
  enum class Kind { kStart, kSignal };
  Kind kind = Kind::kStart;
  ProcessId process;
  int signal = 0;
  bool again = false;  // kStart: it has run before
};

struct Outcome {
  int code = 0;
  bool done = false;                  // the job, whatever came of its processes then
  bool stopped = false;               // by a person or the machine
  bool explained = false;             // stopped: the words say what was saved
  std::string words;                  // "" when all went well
  std::vector<std::string> warnings;  // what went wrong and was made good
};

class Supervisor {
 public:
  using Actions = std::vector<SupervisorAction>;

  explicit Supervisor(const SupervisorSettings& settings);

  // Starts the processes; to be called once, at first.
  Actions Begin();
  // A process that was started has ended.
  Actions OnEnd(const ProcessId& process, const ProcessEnd& end, TimeUs now);
  // A person or the machine wants the job to stop.
  Actions OnStopRequest(int signal, TimeUs now);
  // Time has passed; to be called at NextDeadline(), or whenever.
  Actions OnTime(TimeUs now);

  // When OnTime has something to do next.
  std::optional<TimeUs> NextDeadline() const;
  // The job is neither done nor to be stopped nor has it failed.
  bool running() const { return phase_ == Phase::kRunning; }
  // No process is running and none will be started.
  bool over() const;
  // Requires over().
  Outcome outcome() const;
  // What went wrong so far and was made good.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  enum class Phase { kRunning, kStopping, kFailing, kLeaving, kKilling };
  enum class State { kRunning, kPausing, kEnded };
  struct Process {
    State state = State::kRunning;
    int restarts = 0;
    TimeUs restart_at = 0;  // kPausing
    ProcessEnd end;         // kEnded, kPausing
  };

  void OnFailure(const ProcessId& id, const ProcessEnd& end, TimeUs now, Actions* actions);
  void Fail(const ProcessId& id, const ProcessEnd& end, const std::string& remark, TimeUs now,
            Actions* actions);
  std::string StopWords() const;
  void CancelRestarts();
  void SignalAll(int signal, Actions* actions);
  void KillAll(Actions* actions);
  bool IsRunning(const ProcessId& id) const;
  bool WorkerIsLeft() const;

  const SupervisorSettings settings_;
  std::map<ProcessId, Process> processes_;
  Phase phase_ = Phase::kRunning;
  std::optional<TimeUs> deadline_;  // of the phase
  bool leaving_was_signalled_ = false;
  int stop_signal_ = 0;
  TimeUs stop_requested_at_ = 0;
  std::string stop_words_;  // server 0's, after a request to stop
  std::vector<std::string> killed_;
  std::optional<Outcome> cause_;
  std::vector<std::string> warnings_;
};

}  // namespace kumo
