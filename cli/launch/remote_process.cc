#include "cli/launch/remote_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/launch/child_process.h"
#include "common/base/file.h"
#include "common/base/shell_word.h"
#include "common/settings/worker_program.h"

namespace kumo {
namespace {

constexpr size_t kLongestStart = 1 << 20;  // longer than any command line
constexpr size_t kLengthBytes = 4;
constexpr TimeUs kStartWithin = 20 * kSecond;
// Tolerated delay of a few bytes.
constexpr double kAlivePerSilence = 8;

// Interval of heartbeats, and of checks for them.
int AliveIntervalMs(const remote::Start& start) {
  return std::max(1, static_cast<int>(start.silence_s() * 1000 / kAlivePerSilence));
}

// An empty file in the folder for temporary files, removed at the end.
class TemporaryFile {
 public:
  // `name` ends in XXXXXX.
  explicit TemporaryFile(const std::string& name) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    if (error || !folder.is_absolute()) return;
    std::string file = folder / name;
    const int fd = mkstemp(file.data());
    if (fd < 0) return;
    close(fd);
    path_ = file;
  }
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  // "" if there is none.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// log: for ssh's own messages, which would be lost in the program's output. Without it they go to
// the launcher's log, but not into our error.
std::vector<std::string> SshCommand(const RemoteHost& host, const std::string& log) {
  std::vector<std::string> command = host.ssh;
  // No interactive questions, and an end if the other host is silent.
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5",
                             "ServerAliveCountMax=3", "LogLevel=ERROR"}) {
    command.insert(command.end(), {"-o", option});
  }
  command.insert(command.end(), {"-E", log.empty() ? "/dev/stderr" : log, "-T", host.host, "--",
                                 "exec " + InSingleQuotes(host.kumo) + " remote --serve"});
  return command;
}

// A full pipe means that the reader has stopped; ssh detects that itself.
void Tell(int fd, uint8_t byte) {
  const ssize_t written = write(fd, &byte, 1);
  (void)written;
}

Status TellAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Unavailable(std::string("ssh does not read: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

std::string Encode(const remote::Start& start) {
  const std::string body = start.SerializeAsString();
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(body.size() >> (8 * i));
  return bytes + body;
}

// Fills `bytes`; returns false if the other end is gone or silent for too long.
bool ReadAll(int fd, std::string* bytes) {
  for (size_t at = 0; at < bytes->size();) {
    pollfd readable{fd, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(kStartWithin / kMillisecond)) == 0) return false;
    const ssize_t n = read(fd, bytes->data() + at, bytes->size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

Result<remote::Start> ReadStart(int fd) {
  const Status gone = Unavailable("the connection to the launching host was lost");
  std::string length(kLengthBytes, '\0');
  if (!ReadAll(fd, &length)) return gone;
  size_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    size |= size_t{static_cast<uint8_t>(length[i])} << (8 * i);
  if (size > kLongestStart) return InvalidArgument("stdin is not another kumo remote");
  std::string body(size, '\0');
  if (!ReadAll(fd, &body)) return gone;
  remote::Start start;
  if (!start.ParseFromString(body) || start.command().empty() ||
      !(start.silence_s() > 0 && start.silence_s() <= kLongestSilenceS)) {
    return InvalidArgument("stdin is not another kumo remote");
  }
  return start;
}

// The idle mark that the Start's environment names, a file on the near side's host; "": none.
std::string IdleMarkOf(const remote::Start& start) {
  const std::string name = std::string(kIdleMark) + "=";
  for (const std::string& entry : start.environment()) {
    if (entry.starts_with(name)) return entry.substr(name.size());
  }
  return "";
}

// The far side's exit code for a program's; idle_mark: that it was given, "": none. Codes that have
// a meaning to the near side are a crash if they are the program's own.
int CodeFor(int code, const std::string& idle_mark) {
  const bool may_be_idle = !idle_mark.empty();
  if (code == kConnectionLost || code == kNobodyThere || (may_be_idle && code == kTookNoPart)) {
    return static_cast<int>(ExitCode::kCrashed);
  }
  const bool idle = may_be_idle && access(idle_mark.c_str(), F_OK) == 0;
  return code == 0 && idle ? kTookNoPart : code;
}

// idle_mark: the program's on this host; "": none.
Result<pid_t> StartHere(const remote::Start& start, const std::string& idle_mark) {
  if (chdir(start.directory().c_str()) != 0) {
    return FailedPrecondition("the folder " + start.directory() + ": " + std::strerror(errno) +
                              "; every host needs the same folders as the launching host");
  }
  ChildSpec spec;
  spec.command.assign(start.command().begin(), start.command().end());
  for (const std::string& entry : start.environment()) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || entry.substr(0, equals) == kIdleMark) continue;
    spec.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  spec.environment.emplace_back(kIdleMark, idle_mark);
  spec.stop_signals = StopSignalsOfChild::kDefault;
  const Result<pid_t> pid = StartChild(spec);
  if (pid.ok() || pid.status().code() == StatusCode::kUnavailable) return pid;
  return FailedPrecondition(pid.status().message());
}

// Signals that the launcher sends.
bool IsPassedOn(uint8_t signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGKILL;
}

}  // namespace

Result<int> RunOnHost(const RemoteHost& host, const remote::Start& start, StopSource* signals) {
  const TemporaryFile log("kumo-ssh-XXXXXX");
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Internal(std::string("pipe: ") + std::strerror(errno));
  ChildSpec spec;
  spec.command = SshCommand(host, log.path());
  spec.input_fd = fds[0];
  spec.own_group = false;
  // A signal to this process and to ssh alike (a group's, a service's) reaches the program over the
  // connection, which must still be there.
  spec.stop_signals = StopSignalsOfChild::kIgnored;
  const Result<pid_t> pid = StartChild(spec);
  close(fds[0]);
  if (!pid.ok()) {
    close(fds[1]);
    return pid.status();
  }
  const Status told = TellAll(fds[1], Encode(start));
  fcntl(fds[1], F_SETFL, O_NONBLOCK);
  std::optional<int> status;
  while (!(status = TakeEnded(*pid))) {
    pollfd readable{signals->fd(), POLLIN, 0};
    if (poll(&readable, 1, AliveIntervalMs(start)) == 0) Tell(fds[1], 0);
    for (const int signal : signals->Take()) {
      if (signal != SIGCHLD) Tell(fds[1], static_cast<uint8_t>(signal));
    }
  }
  close(fds[1]);
  const int code = ExitStatus(*status);
  const std::string idle_mark = IdleMarkOf(start);
  if (!idle_mark.empty() && code == kTookNoPart) return 0;
  RemoveIdleMark(idle_mark);
  if (code != kNobodyThere) return code;
  const std::string words = log.path().empty() ? "" : ExitReasonOf(log.path(), "", 0);
  return Unavailable("the host " + host.host + " cannot be reached, or the connection was lost: " +
                     (!words.empty() ? words
                      : told.ok()    ? "ssh ended with 255"
                                     : told.message()));
}

Result<int> ServeRemote(int input_fd, StopSource* signals) {
  KUMO_ASSIGN_OR_RETURN(const remote::Start start, ReadStart(input_fd));
  // Without a file for it the program counts as taking part.
  std::optional<TemporaryFile> mark_file;
  if (!IdleMarkOf(start).empty()) mark_file.emplace("kumo-idle-XXXXXX");
  const std::string idle_mark = mark_file ? mark_file->path() : "";
  KUMO_ASSIGN_OR_RETURN(const pid_t pid, StartHere(start, idle_mark));
  // Silence while this machine slept, or was paused, says nothing.
  const RunningClock clock;
  constexpr int kLongestWaitMs = 1000;  // less than RunningClock::kLongestGap
  TimeUs heard = clock.NowUs();
  const auto silence = static_cast<TimeUs>(start.silence_s() * kSecond);
  for (;;) {
    pollfd readable[2] = {{input_fd, POLLIN, 0}, {signals->fd(), POLLIN, 0}};
    poll(readable, 2, std::min(AliveIntervalMs(start), kLongestWaitMs));
    if (const std::optional<int> status = TakeEnded(pid)) {
      return CodeFor(ExitStatus(*status), idle_mark);
    }
    bool gone = clock.NowUs() - heard > silence;
    uint8_t byte = 0;
    if (readable[0].revents != 0) {
      const ssize_t n = read(input_fd, &byte, 1);
      gone |= n == 0 || (n < 0 && errno != EINTR);
      if (n > 0) heard = clock.NowUs();
      if (n > 0 && IsPassedOn(byte)) kill(pid, byte);
    }
    for (const int signal : signals->Take()) gone |= signal != SIGCHLD;
    if (!gone) continue;
    kill(-pid, SIGKILL);  // with its children
    waitpid(pid, nullptr, 0);
    return Unavailable("the connection to the launching host was lost");
  }
}

}  // namespace kumo
