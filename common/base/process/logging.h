// Logging of a process through glog: one file per process, `<directory>/<role>-<rank>.<host>.log`;
// warnings and errors also go to stderr. A command for people has no log file and prints its
// warnings to stderr.
//
// glog keeps process-wide state; this class owns its start and end. Created once by main, before
// other threads; LOG is thread-safe while it exists.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"

namespace google {
class LogSink;
}  // namespace google

namespace kumo {

struct LogSettings {
  std::string program;    // argv[0]
  std::string directory;  // "<output>/logs", created if necessary; "": stderr only
  std::string role;       // "server", "worker", "launch"
  std::string rank;       // distinguishes processes of one role: "0", "worker-3"; may be ""
  bool warnings_to_stderr = true;
};

class Logging {
 public:
  // The prefix of a command's warnings.
  static constexpr char kWarning[] = "warning: ";

  // Appends to an existing file (of a restarted process). FailedPrecondition or ResourceExhausted,
  // with the path, if it cannot be written; glog is then not started.
  static Result<std::unique_ptr<Logging>> Start(const LogSettings& settings);
  // Logging of a command: to stderr, as lines "warning: ..." (kWarning) and "error: ...".
  static std::unique_ptr<Logging> ForCommand(const std::string& program);
  ~Logging();  // flushes and ends
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

  // The path of the log file; "" if there is none.
  const std::string& file() const { return file_; }

 private:
  class FileSink;
  class CommandSink;
  Logging(std::unique_ptr<google::LogSink> sink, std::string program, std::string file);
  void Begin(int stderr_threshold);

  std::unique_ptr<google::LogSink> sink_;
  const std::string program_;  // glog keeps a pointer to it
  const std::string file_;
};

// The machine's name without its domain; characters that are invalid in file names are replaced.
std::string HostName();

}  // namespace kumo
