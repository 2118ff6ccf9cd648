// Exit of a process: its exit code, for people, `kumo launch` and Kubernetes, and the report of the
// reason.
//
//   0   done
//   1   crashed: a bug or a library failure; a restart may help
//   64  usage error: the command line is wrong; do not restart
//   75  temporary failure: unavailable or preempted; the job is fine: restart
//   78  configuration error: experiment, data or a mismatch; do not restart
//
// The numbers are from sysexits.h.
#pragma once

#include <string>

#include "common/base/status.h"

namespace kumo {

enum class ExitCode : int {
  kDone = 0,
  kCrashed = 1,
  kUsage = 64,
  kUnavailable = 75,
  kBadConfiguration = 78,
};

// The exit code for an error: kUnavailable if a later start may succeed (Unavailable, Aborted,
// ResourceExhausted), kCrashed for Internal, otherwise kBadConfiguration.
ExitCode ExitCodeOf(StatusCode code);
inline ExitCode ExitCodeOf(const Status& status) { return ExitCodeOf(status.code()); }

// "78 (bad configuration)"; unknown codes without explanation.
std::string ExitCodeText(int code);

// Exit reporter: writes the last line on stderr, which states why the process ends. It is also
// written to the termination log, if there is one: Kubernetes reads /dev/termination-log, `kumo
// launch` names a file of its own.
//
// Used only by main, once, after the other threads have ended.
class ExitReporter {
 public:
  // program: the prefix of the line, "kumo-worker worker-3". termination_log: a file that is
  // replaced, or that can be created; "" for none. columns: width of the terminal behind stderr,
  // where the line is folded; 0: not folded.
  ExitReporter(std::string program, std::string termination_log, int columns = 0);

  // The environment variable KUMO_TERMINATION_LOG (set by `kumo launch`), otherwise
  // /dev/termination-log if it exists, otherwise "". Called by main.
  static std::string DefaultTerminationLog();
  // The prefix for a program that a command may run in its place: the environment variable
  // KUMO_STARTED_AS ("kumo import"), otherwise `program`. Called by main.
  static std::string StartedAs(const std::string& program);

  const std::string& program() const { return program_; }

  // Writes `words` (line breaks become "; ") and returns the exit code for main. Writes nothing for
  // kDone with empty words. Errors of the termination log are ignored.
  int Report(ExitCode code, const std::string& words) const;
  // Reports a status; an ok status writes nothing and returns 0.
  int Report(const Status& status) const;
  // The exit code of a command whose result is what it has printed on stdout: `code`, or, if that
  // is 0 and not all was written, as on a full disk, kUnavailable with a line that says so. A
  // reader of a pipe that has gone is no error.
  int ReportPrinted(int code) const;
  // Writes `words`, unless empty, only to the termination log of a successful process. Returns 0.
  int ReportDone(const std::string& words) const;

 private:
  std::string LineOf(const std::string& words) const;
  void WriteLog(const std::string& line) const;

  const std::string program_;
  const std::string termination_log_;
  const int columns_;
};

// Installs handlers for failed allocations, of `new` and of the arrays of common/base/buffer.h, and
// for refused threads (common/base/thread.h), that end the process with an exit report and
// kUnavailable. Handlers can only reach globals, therefore the source has a static variable. Called
// once by main; exit_reporter must live as long as the process.
void EndWhenOutOfResources(const ExitReporter& exit_reporter);

}  // namespace kumo
