// Launcher: carries out the Supervisor's decisions. It starts processes, reports their ends and the
// user's signals to the Supervisor, sends signals, and reaps all children.
//
// Single-threaded: used from the main thread, which forks and therefore must live as long as the
// children (see DieWithParent).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/child_process.h"
#include "cli/launch/supervisor.h"
#include "common/base/clock.h"
#include "common/base/process/signals.h"

namespace kumo {

struct LaunchPlan {
  SupervisorSettings supervisor;
  // Program and arguments of each process in the supervisor's settings.
  std::map<ProcessId, std::vector<std::string>> commands;
  // Additions to the environment of a process.
  std::map<ProcessId, std::vector<std::pair<std::string, std::string>>> environment;
  // Hosts of remote processes, for messages.
  std::map<ProcessId, std::string> hosts;
  // An existing folder. The output of a process goes to <name>.stderr there, except for the stdout
  // of server 0, which shows the progress on this process's stdout unless `quiet`; the reason of
  // its end is in <name>.last-words.
  std::string log_directory;
  std::string checkpoints;  // the folder of the job's checkpoints
  bool quiet = false;
  // Called for events that a user should learn at once: restarts, and warnings of server 0 while
  // the job runs.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

class Launcher {
 public:
  // signals must also handle SIGCHLD; clock and signals must outlive the launcher.
  Launcher(LaunchPlan plan, const Clock* clock, StopSignals* signals);
  // Kills and reaps the remaining processes.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts all processes and returns when none is running any more.
  Outcome Run();

 private:
  void Do(const Supervisor::Actions& actions);
  Status Start(const ProcessId& id);
  void Signal(const ProcessId& id, int signal);
  // Waits for a signal or for the supervisor's next deadline.
  void Wait();
  void Reap();
  void TellWarnings();
  int64_t NewestCheckpoint() const;
  std::string OutputFile(const ProcessId& id) const;
  // A file in the log directory, for a process that may change its working folder.
  std::string AbsoluteFile(const std::string& name) const;
  std::string TerminationLog(const ProcessId& id) const;
  // See common/settings/worker_program.h; "": there is none for this process.
  std::string IdleMark(const ProcessId& id) const;

  const LaunchPlan plan_;
  const Clock* const clock_;
  StopSignals* const signals_;
  Supervisor supervisor_;
  std::map<pid_t, ProcessId> running_;
  std::map<ProcessId, uintmax_t> output_start_;  // length of the output file at the last start
  WarningTail server_warnings_;                  // of server 0
  size_t told_ = 0;                              // number of supervisor warnings told so far
};

}  // namespace kumo
