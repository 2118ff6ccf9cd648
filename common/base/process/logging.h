// Where a process's log goes: glog, one file per process, `<directory>/<role>-<rank>.<host>.log`;
// warnings and errors also to stderr. A command that answers a person has no log: what it warns of
// it says as it says other things.
//
// glog keeps process-wide state; this wraps its start and end. Made by main once, before other
// threads; LOG is thread-safe while it lives.
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
  std::string directory;  // "<output>/logs"; created; "" for stderr only
  std::string role;       // "server", "worker", "launch"
  std::string rank;       // "0", "worker-3": whatever tells processes of a role apart; may be ""
  bool warnings_to_stderr = true;
};

class Logging {
 public:
  // What a command's warnings begin with.
  static constexpr char kWarning[] = "warning: ";

  // Appends to the file when it exists (a restarted process goes on in it). FailedPrecondition or
  // ResourceExhausted, naming the path, when it cannot be written; glog is then not started.
  static Result<std::unique_ptr<Logging>> Start(const LogSettings& settings);
  // Of a command: to stderr, a line each, as "warning: ..." (kWarning) and "error: ...".
  static std::unique_ptr<Logging> ForCommand(const std::string& program);
  ~Logging();  // writes out and ends
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

  // "" when there is none.
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

// The machine's name without its domain, with characters that file names do not like replaced.
std::string HostName();

}  // namespace kumo
