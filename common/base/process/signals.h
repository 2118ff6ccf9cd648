// Stop signals: signals that ask a process to stop, as readable bytes on a pipe that a loop thread
// polls.
//
// A signal handler can only reach globals, therefore the source has a static variable: the write
// end of the newest StopSignals' pipe. At most one StopSignals may exist at a time (CHECK). Create
// it in main before any thread, so that all threads inherit the handlers. fd() may be polled from
// any thread; the other methods belong to one.
#pragma once

#include <vector>

namespace kumo {

// Stop source: delivers stop requests to a service, from the process's signals (StopSignals) or
// from a test or host process.
class StopSource {
 public:
  virtual ~StopSource() = default;
  // Readable while signals are pending for Take. May be polled from any thread.
  virtual int fd() const = 0;
  // The signals since the last call in order, 0 for a request of the process itself; empty if there
  // were none. Never waits.
  virtual std::vector<int> Take() = 0;
};

class StopSignals : public StopSource {
 public:
  // Handles SIGINT, SIGTERM and SIGHUP (and `also`: the launcher adds SIGCHLD), and ignores SIGPIPE
  // and SIGXFSZ, so that a vanished peer or a file size limit (ulimit -f) is an error code and does
  // not kill the process. A SIGINT or SIGHUP that was ignored at the start (background job, nohup)
  // stays ignored.
  explicit StopSignals(std::vector<int> also = {});
  // Ignores the signals from then on: the process ends with the exit code that it has chosen.
  ~StopSignals() override;
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int fd() const override { return read_fd_; }
  std::vector<int> Take() override;

 private:
  int read_fd_ = -1;
  int write_fd_ = -1;
};

// "SIGTERM", "SIGSEGV", ...
const char* SignalName(int signal);

}  // namespace kumo
