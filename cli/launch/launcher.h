// Carries out what the Supervisor decides: starts the processes, hands their ends and the person's
// signals to it, sends signals, and reaps everybody.
//
// Single-threaded: must be used from the main thread, which forks and therefore must live as long
// as the children (see DieWithParent).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/launch/child_process.h"
#include "cli/launch/supervisor.h"
#include "cli/launch/warning_tail.h"
#include "common/base/clock.h"
#include "common/base/process/signals.h"

namespace kumo {

struct LaunchPlan {
  SupervisorSettings supervisor;
  // A process's program and arguments; filled for each process that the settings ask for.
  std::map<ProcessId, std::vector<std::string>> commands;
  // Put behind them when a process is started again.
  std::map<ProcessId, std::vector<std::string>> again;
  // Where it runs, of processes on other hosts: for people.
  std::map<ProcessId, std::string> hosts;
  // An existing folder. What processes print goes to <name>.stderr there, but for server 0's
  // stdout, which shows the progress and keeps this process's, unless `quiet`; what a process says
  // at its end is found in <name>.last-words.
  std::string log_directory;
  bool quiet = false;
  // Called for what a person should hear at once: a process that is started again, and what server
  // 0 warns of, which ends when the job does.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

class Launcher {
 public:
  // signals must take SIGCHLD over too; clock and signals are borrowed for life.
  Launcher(LaunchPlan plan, const Clock* clock, StopSignals* signals);
  // Kills and reaps whatever is still there.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts everything and returns when nothing is running any more.
  Outcome Run();

 private:
  void Do(const Supervisor::Actions& actions);
  Status Start(const ProcessId& id, bool again);
  void Signal(const ProcessId& id, int signal);
  // Waits for a signal or the supervisor's next deadline.
  void Wait();
  void Reap();
  void TellWarnings();
  std::string OutputFile(const ProcessId& id) const;
  std::string ExitReporterFile(const ProcessId& id) const;

  const LaunchPlan plan_;
  const Clock* const clock_;
  StopSignals* const signals_;
  Supervisor supervisor_;
  std::map<pid_t, ProcessId> running_;
  std::map<ProcessId, uintmax_t> output_start_;  // length of the output file at the last start
  WarningTail server_warnings_;                  // of server 0
  size_t told_ = 0;                              // of the supervisor's warnings
};

}  // namespace kumo
