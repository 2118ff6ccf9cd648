#include "common/base/process/exit_report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "common/base/printable.h"
#include "common/base/process/process_limits.h"
#include "common/base/terminal.h"
#include "common/base/thread.h"

namespace kumo {

ExitCode ExitCodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kDone;
    case StatusCode::kUnavailable:
    case StatusCode::kAborted:
    case StatusCode::kResourceExhausted:
      return ExitCode::kUnavailable;
    case StatusCode::kInternal:
      return ExitCode::kCrashed;
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kNotFound:
    case StatusCode::kDataLoss:
    case StatusCode::kOutOfRange:
      return ExitCode::kBadConfiguration;
  }
  return ExitCode::kCrashed;
}

std::string ExitCodeText(int code) {
  const std::string number = std::to_string(code);
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::kDone:
      return number + " (done)";
    case ExitCode::kCrashed:
      return number + " (crashed)";
    case ExitCode::kUsage:
      return number + " (usage)";
    case ExitCode::kUnavailable:
      return number + " (unavailable: start it again)";
    case ExitCode::kBadConfiguration:
      return number + " (bad configuration)";
  }
  return number;
}

namespace {

constexpr char kKubernetesLog[] = "/dev/termination-log";

// Kubernetes keeps 4096 bytes of a termination log and drops the end of a longer line.
constexpr size_t kLongestLine = 4000;

constexpr int kHanging = 4;

std::string OneLine(const std::string& words) {
  std::string line;
  for (const char c : words) {
    if (c == '\n') {
      line += "; ";
    } else {
      line += c;
    }
  }
  return CutInTheMiddle(line, kLongestLine);
}

void WriteAll(int fd, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += n;
  }
}

}  // namespace

ExitReporter::ExitReporter(std::string program, std::string termination_log, int columns)
    : program_(std::move(program)),
      termination_log_(std::move(termination_log)),
      columns_(columns) {}

std::string ExitReporter::DefaultTerminationLog() {
  const char* named = std::getenv("KUMO_TERMINATION_LOG");
  if (named != nullptr) return named;
  return access(kKubernetesLog, W_OK) == 0 ? kKubernetesLog : "";
}

std::string ExitReporter::StartedAs(const std::string& program) {
  const char* named = std::getenv("KUMO_STARTED_AS");
  return named != nullptr ? named : program;
}

std::string ExitReporter::LineOf(const std::string& words) const {
  return program_ + ": " + OneLine(words) + "\n";
}

void ExitReporter::WriteLog(const std::string& line) const {
  if (termination_log_.empty()) return;
  const int fd =
      open(termination_log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return;
  WriteAll(fd, line);
  close(fd);
}

int ExitReporter::Report(ExitCode code, const std::string& words) const {
  if (code != ExitCode::kDone || !words.empty()) {
    const std::string line = LineOf(words);
    std::fflush(stdout);
    std::fflush(stderr);
    WriteAll(STDERR_FILENO, Folded(line, columns_, kHanging));
    WriteLog(line);
  }
  return static_cast<int>(code);
}

int ExitReporter::Report(const Status& status) const {
  if (status.ok()) return 0;
  return Report(ExitCodeOf(status), status.message());
}

int ExitReporter::ReportPrinted(int code) const {
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  struct stat out = {};
  const bool pipe =
      fstat(STDOUT_FILENO, &out) == 0 && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode));
  if (code != 0 || !failed || pipe) return code;
  return Report(ExitCode::kUnavailable,
                "not all of the output could be written to stdout: is its disk full?");
}

int ExitReporter::ReportDone(const std::string& words) const {
  if (!words.empty()) WriteLog(LineOf(words));
  return 0;
}

namespace {

// Reserve for the exit report itself.
constexpr size_t kReserveBytes = 256 * 1024;

const ExitReporter* exit_words = nullptr;
char* reserve = nullptr;
std::atomic_flag ending = ATOMIC_FLAG_INIT;

// Returns in the first thread that ends the process; stops the others. Frees memory for the report.
void BeginToEnd() {
  if (ending.test_and_set()) {
    while (true) pause();  // another thread is reporting
  }
  std::free(reserve);
}

void EndWithoutMemory() {
  BeginToEnd();
  _exit(exit_words->Report(
      ExitCode::kUnavailable,
      "out of memory: an allocation failed; give this process more memory (container limits, "
      "ulimit -v), or lower the settings that `kumo check` names as the largest consumers"));
}

void EndWithoutThread(const std::string& reason) {
  BeginToEnd();
  const ThreadRoom room = RoomForThreads();
  _exit(exit_words->Report(
      ExitCode::kUnavailable,
      "cannot start a thread: " + reason + (room.limit.empty() ? "" : "; " + room.limit) +
          "; raise the limit of processes (ulimit -u; pids.max of a container) or of address space "
          "(ulimit -v), or start fewer processes"));
}

}  // namespace

void EndWhenOutOfResources(const ExitReporter& exit_reporter) {
  exit_words = &exit_reporter;
  reserve = static_cast<char*>(std::malloc(kReserveBytes));
  std::set_new_handler(EndWithoutMemory);
  SetThreadFailureHandler(EndWithoutThread);
}

}  // namespace kumo
