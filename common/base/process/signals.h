// Signals that ask a process to stop, as readable bytes on a pipe that a loop thread polls.
//
// A signal handler can reach nothing but a global, so this is the one place with a static variable:
// the write end of the newest StopSignals' pipe. At most one StopSignals may live at a time
// (CHECK). Make it in main before any thread, so that all threads inherit the handlers. fd() may be
// polled from any thread; the other methods belong to one.
#pragma once

#include <csignal>

#include <vector>

#include "common/base/process/stop_source.h"

namespace kumo {

class StopSignals : public StopSource {
 public:
  // Takes SIGINT, SIGTERM and SIGHUP (and `also`: the launcher adds SIGCHLD) over and ignores
  // SIGPIPE and SIGXFSZ: a peer that goes away, or a file that may not become longer (ulimit -f),
  // is an error code, not our death. A SIGINT or SIGHUP that was ignored when the process started
  // (a shell's background job, nohup) stays ignored.
  explicit StopSignals(std::vector<int> also = {});
  // From here on they do nothing: the process is ending, with the exit code that it has decided on.
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
