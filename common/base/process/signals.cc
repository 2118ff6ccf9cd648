#include "common/base/process/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

// Async-signal-safe. A full pipe drops the signal: 64 KiB of unread signals say no more than one.
void Forward(int signal) {
  const int saved_errno = errno;
  const unsigned char byte = static_cast<unsigned char>(signal);
  const ssize_t written = write(write_end.load(), &byte, 1);
  (void)written;
  errno = saved_errno;
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  PCHECK(sigaction(signal, &action, nullptr) == 0) << "signal " << signal;
}

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals(std::vector<int> also) {
  int fds[2];
  PCHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) << "a pipe for signals";
  read_fd_ = fds[0];
  write_fd_ = fds[1];
  int none = -1;
  CHECK(write_end.compare_exchange_strong(none, write_fd_)) << "two StopSignals at a time";
  also.push_back(SIGTERM);
  for (const int signal : also) Handle(signal, Forward);
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!IsIgnored(signal)) Handle(signal, Forward);
  }
  Handle(SIGPIPE, SIG_IGN);
  Handle(SIGXFSZ, SIG_IGN);
}

StopSignals::~StopSignals() {
  write_end.store(-1);
  close(write_fd_);
  close(read_fd_);
}

std::vector<int> StopSignals::Take() {
  std::vector<int> signals;
  unsigned char bytes[64];
  ssize_t n;
  while ((n = read(read_fd_, bytes, sizeof(bytes))) > 0) {
    signals.insert(signals.end(), bytes, bytes + n);
  }
  return signals;
}

const char* SignalName(int signal) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
      {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
      {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
      {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
      {SIGSYS, "SIGSYS"},
  };
  for (const auto& [number, name] : kNames) {
    if (number == signal) return name;
  }
  return "unknown signal";
}

}  // namespace kumo
