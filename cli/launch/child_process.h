// Child processes: starting a program, the reason of its end, and the warnings in its log. The
// kernel kills each child when this process dies, so no child outlives it.
//
// Functions; call them from a thread that lives as long as the process (see DieWithParent).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/process/exit_report.h"
#include "common/base/status.h"

namespace kumo {

// Warning tail: follows the warnings and errors that a process logs to a file. One thread.
class WarningTail {
 public:
  // Skips the existing contents of the file, which need not exist.
  explicit WarningTail(std::string path);

  // The messages logged since the last call, without glog's prefix (time, thread, source location).
  // At most the last 20.
  std::vector<std::string> Next();

 private:
  const std::string path_;
  std::string line_;  // incomplete line
  long long offset_ = 0;
};

// The message of a glog line with the severity of a warning or error; "" for other lines.
std::string WarningIn(const std::string& line);

// How a child begins with SIGINT, SIGTERM and SIGHUP.
enum class StopSignalsOfChild {
  kAsHere,   // ignores those that this process ignores
  kDefault,  // ignores none
  kIgnored,  // ignores all
};

struct ChildSpec {
  std::vector<std::string> command;                              // command[0]: path of the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  std::string output_file;  // appended with stdout and stderr; "": this process's streams
  std::string error_file;   // appended with stderr instead; "": as stdout
  int input_fd = -1;        // stdin, not closed; -1: empty
  bool own_group = true;    // false: the process group of this process
  StopSignalsOfChild stop_signals = StopSignalsOfChild::kAsHere;
  bool shows_errors = false;  // RunChild with an output: stderr stays this process's
};

// The exit code of `kumo remote` if the host cannot be reached, or the connection is lost: the
// program's own ExitCode::kUnavailable is a decision.
inline constexpr int kConnectionLost = 253;

struct ChildEnd {
  int code = 0;    // exit code, or 128 + the signal that killed it
  int signal = 0;  // the signal that killed it, or 0
};

// Converts waitpid's status of an ended child to its exit code, or 128 + the signal that killed it.
int ExitStatus(int status);

// Starts the program with default signal handlers and SIGKILL at the death of this process; by
// default in a process group of its own, so that Ctrl-C on the terminal reaches only the launcher.
// Unavailable if the system refuses for the moment (processes, memory, descriptors; the program's
// file is being written), NotFound if the program cannot be executed, Internal otherwise.
Result<pid_t> StartChild(const ChildSpec& spec);

// waitpid's status of a child of StartChild, after its end; else nullopt. Kills the rest of the
// child's own group: programs that the child had started and did not wait for.
std::optional<int> TakeEnded(pid_t pid);

// Runs the program to its end; stdout and stderr go to `output`, or to this process's streams if it
// is null.
Result<ChildEnd> RunChild(const ChildSpec& spec, std::string* output);

// Runs the program on this process's streams; its report of an error begins as this process's
// would. Returns its exit code, or reports a failed start. If a signal killed the program, reports
// that and returns the exit code of a crash; SIGPIPE (`kumo data FILE | head`) is not reported.
int RunProgram(const ExitReporter& exit_reporter, std::vector<std::string> command);

// The error of a program that failed: the signal that killed it (Internal), otherwise the last line
// of its output without the program's name, or its exit code if it printed nothing, with the status
// code behind its exit code. before: receives the other lines, unless null.
Status ErrorOf(const std::string& program, const ChildEnd& end, const std::string& output,
               std::vector<std::string>* before = nullptr);

// The reason of a process's end, in one line without its program's name: its termination log,
// otherwise the last line of its output file after the first `output_start` bytes, which earlier
// processes wrote (the line of a failed CHECK, if there is one). "" if neither exists.
std::string ExitReasonOf(const std::string& termination_log, const std::string& output_file,
                         uintmax_t output_start);

}  // namespace kumo
