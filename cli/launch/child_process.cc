#include "cli/launch/child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/process/process_start.h"
#include "common/base/process/signals.h"

extern char** environ;

namespace kumo {

namespace {

constexpr std::streamoff kTailBytes = 16384;

// The child's needs, allocated before the fork.
struct Prepared {
  std::vector<std::string> environment;
  std::vector<char*> argv, envp;
  int output_fd = -1;  // -1: inherit
  int error_fd = -1;
  int input_fd = -1;  // -1: empty
  bool own_group = true;
  StopSignalsOfChild stop_signals = StopSignalsOfChild::kAsHere;
};

Prepared Prepare(const ChildSpec& spec) {
  Prepared prepared;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool replaced =
        std::any_of(spec.environment.begin(), spec.environment.end(),
                    [&](const auto& added) { return text.starts_with(added.first + "="); });
    if (!replaced) prepared.environment.emplace_back(text);
  }
  for (const auto& [name, value] : spec.environment) {
    prepared.environment.push_back(name + "=" + value);
  }
  for (const std::string& arg : spec.command)
    prepared.argv.push_back(const_cast<char*>(arg.c_str()));
  for (std::string& entry : prepared.environment) prepared.envp.push_back(entry.data());
  prepared.argv.push_back(nullptr);
  prepared.envp.push_back(nullptr);
  return prepared;
}

// Our handlers must not run in the child: they would write to the shared pipe.
void RestoreSignals(StopSignalsOfChild stop_signals, const sigset_t& mask) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    const bool ignored = sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN;
    if (stop_signals == StopSignalsOfChild::kIgnored) {
      std::signal(signal, SIG_IGN);
    } else if (stop_signals == StopSignalsOfChild::kDefault || !ignored) {
      std::signal(signal, SIG_DFL);
    }
  }
  std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

// Runs in the child after the fork, so it makes only async-signal-safe calls. Writes an errno to
// `error_fd` if the program cannot be executed; a successful exec closes it.
[[noreturn]] void BecomeProgram(const Prepared& prepared, pid_t parent, int error_fd,
                                const sigset_t& mask) {
  if (prepared.own_group) setpgid(0, 0);
  if (!DieWithParent(parent, SIGKILL).ok()) _exit(1);
  RestoreSignals(prepared.stop_signals, mask);
  const int input_fd =
      prepared.input_fd >= 0 ? prepared.input_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input_fd >= 0) dup2(input_fd, STDIN_FILENO);
  if (prepared.output_fd >= 0) dup2(prepared.output_fd, STDOUT_FILENO);
  if (prepared.error_fd >= 0) dup2(prepared.error_fd, STDERR_FILENO);
  execve(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  const int error = errno;
  const ssize_t written = write(error_fd, &error, sizeof(error));
  (void)written;
  _exit(127);
}

// The error of a start: Unavailable if a later one may succeed.
Status StartError(const std::string& words, int error, StatusCode otherwise) {
  constexpr int kForTheMoment[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY, ESTALE};
  const bool again = std::ranges::find(kForTheMoment, error) != std::end(kForTheMoment);
  return Status(again ? StatusCode::kUnavailable : otherwise, words + ": " + std::strerror(error));
}

// Makes descriptors that are not -1 the stdout and stderr.
Result<pid_t> Start(const ChildSpec& spec, int output_fd, int error_fd) {
  Prepared prepared = Prepare(spec);
  prepared.output_fd = output_fd;
  prepared.error_fd = error_fd;
  prepared.input_fd = spec.input_fd;
  prepared.own_group = spec.own_group;
  prepared.stop_signals = spec.stop_signals;
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    return StartError("cannot make a pipe", errno, StatusCode::kInternal);
  }
  const pid_t parent = getpid();
  sigset_t all, mask;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &mask);
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(prepared, parent, error_pipe[1], mask);
  const int fork_error = errno;
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  close(error_pipe[1]);
  int error = 0;
  ssize_t n = 0;
  if (pid > 0) {
    if (spec.own_group) setpgid(pid, pid);  // in parent and child, as their order is unknown
    do {
      n = read(error_pipe[0], &error, sizeof(error));
    } while (n < 0 && errno == EINTR);
  }
  close(error_pipe[0]);
  if (pid < 0) {
    return StartError("cannot start " + spec.command[0], fork_error, StatusCode::kInternal);
  }
  if (n == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return StartError("cannot start " + spec.command[0], error, StatusCode::kNotFound);
  }
  return pid;
}

// -1 for the path "".
Result<int> OpenForAppending(const std::string& path) {
  if (path.empty()) return -1;
  return OpenRegularFile(path, O_WRONLY | O_CREAT | O_APPEND);
}

std::string LastLine(const std::string& path, std::streamoff start) {
  // A FIFO would never end.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  file.seekg(0, std::ios::end);
  file.seekg(std::max<std::streamoff>(start, file.tellg() - kTailBytes));
  std::string line, last;
  while (std::getline(file, line)) {
    // glog prints a stack trace after a failed CHECK, which is not the reason.
    if (line.find("Check failed: ") != std::string::npos) return line;
    // A warning is not the reason of the end.
    if (!WarningIn(line).empty()) continue;
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace

int ExitStatus(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<pid_t> StartChild(const ChildSpec& spec) {
  KUMO_ASSIGN_OR_RETURN(const int output_fd, OpenForAppending(spec.output_file));
  const bool apart = !spec.error_file.empty();
  const Result<int> error_fd = apart ? OpenForAppending(spec.error_file) : Result<int>(output_fd);
  const auto pid = error_fd.ok() ? Start(spec, output_fd, *error_fd) : error_fd.status();
  if (output_fd >= 0) close(output_fd);
  if (apart && error_fd.ok()) close(*error_fd);
  return pid;
}

Result<ChildEnd> RunChild(const ChildSpec& spec, std::string* output) {
  std::array<int, 2> fds = {-1, -1};
  if (output != nullptr && pipe2(fds.data(), O_CLOEXEC) != 0) {
    return StartError("cannot make a pipe", errno, StatusCode::kInternal);
  }
  Result<pid_t> pid = Start(spec, fds[1], spec.shows_errors ? -1 : fds[1]);
  if (fds[1] >= 0) close(fds[1]);
  if (pid.ok() && output != nullptr) {
    char buffer[4096];
    ssize_t n;
    while ((n = read(fds[0], buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR)) {
      if (n > 0) output->append(buffer, n);
    }
  }
  if (fds[0] >= 0) close(fds[0]);
  if (!pid.ok()) return pid.status();
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0) {
    if (errno != EINTR) return Internal(std::string("waitpid: ") + std::strerror(errno));
  }
  return ChildEnd{ExitStatus(status), WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

// While the child is not waited for, no other group can have its number.
std::optional<int> TakeEnded(pid_t pid) {
  siginfo_t ended = {};
  if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid) {
    return std::nullopt;
  }
  kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

namespace {

// Internal: "kumo-worker was killed by SIGKILL; most often ...".
Status KilledBy(int signal, const std::string& program) {
  return Internal(program + " was killed by " + SignalName(signal) +
                  (signal == SIGKILL
                       ? "; usually the machine's memory, or the memory limit of this "
                         "command, was exhausted"
                       : ""));
}

}  // namespace

int RunProgram(const ExitReporter& exit_reporter, std::vector<std::string> command) {
  ChildSpec spec;
  spec.command = std::move(command);
  spec.environment = {{"KUMO_STARTED_AS", exit_reporter.program()}};
  std::fflush(stdout);  // this process's output comes first
  const Result<ChildEnd> end = RunChild(spec, nullptr);
  if (!end.ok()) return exit_reporter.Report(end.status());
  if (end->signal == 0 || end->signal == SIGPIPE) return end->code;
  const std::filesystem::path program = spec.command[0];
  return exit_reporter.Report(KilledBy(end->signal, program.filename().string()));
}

namespace {

// "kumo-worker worker-3: no network", "kumo remote: no host" -> "no network", "no host".
std::string WithoutProgram(const std::string& words) {
  const bool named = words.starts_with("kumo-") || words.starts_with("kumo ");
  const size_t colon = words.find(": ");
  return named && colon != std::string::npos ? words.substr(colon + 2) : words;
}

}  // namespace

Status ErrorOf(const std::string& program, const ChildEnd& end, const std::string& output,
               std::vector<std::string>* before) {
  std::istringstream stream(output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (end.signal != 0) {
    if (before != nullptr) *before = lines;
    return KilledBy(end.signal, program);
  }
  std::string last = program + " ended with exit code " + ExitCodeText(end.code);
  if (!lines.empty()) {
    last = WithoutProgram(lines.back());
    lines.pop_back();
  }
  if (before != nullptr) before->insert(before->end(), lines.begin(), lines.end());
  const bool again =
      end.code == static_cast<int>(ExitCode::kUnavailable) || end.code == kConnectionLost;
  return Status(again ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition, last);
}

std::string ExitReasonOf(const std::string& termination_log, const std::string& output_file,
                         uintmax_t output_start) {
  std::string words = LastLine(termination_log, 0);
  if (words.empty() && !output_file.empty()) {
    words = LastLine(output_file, static_cast<std::streamoff>(output_start));
  }
  return WithoutProgram(words).substr(0, 1000);
}

namespace {

constexpr size_t kMost = 20;
constexpr size_t kLongestLine = 4096;

}  // namespace

WarningTail::WarningTail(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path_, error);
  if (!error) offset_ = static_cast<long long>(bytes);
}

std::vector<std::string> WarningTail::Next() {
  std::vector<std::string> warnings;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path_, error)) return warnings;
  std::ifstream file(path_, std::ios::binary);
  file.seekg(offset_);
  char bytes[4096];
  while (file.read(bytes, sizeof(bytes)) || file.gcount() > 0) {
    offset_ += file.gcount();
    for (const char c : std::string_view(bytes, static_cast<size_t>(file.gcount()))) {
      if (c != '\n') {
        if (line_.size() < kLongestLine) line_ += c;
        continue;
      }
      const std::string warning = WarningIn(std::exchange(line_, ""));
      if (!warning.empty()) warnings.push_back(warning);
    }
  }
  if (warnings.size() > kMost) warnings.erase(warnings.begin(), warnings.end() - kMost);
  return warnings;
}

// "W20261122 05:40:29.155170 26773 server_service.cc:107] worker-1 is lost".
std::string WarningIn(const std::string& line) {
  const bool severe = line.size() > 1 && (line[0] == 'W' || line[0] == 'E') &&
                      std::isdigit(static_cast<unsigned char>(line[1])) != 0;
  const size_t end = line.find("] ");
  if (!severe || end == std::string::npos) return "";
  return line.substr(end + 2);
}

}  // namespace kumo
