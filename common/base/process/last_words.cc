#include "common/base/process/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/base/printable.h"
#include "common/base/terminal.h"

namespace kumo {
namespace {

constexpr char kKubernetesLog[] = "/dev/termination-log";

// Kubernetes keeps 4096 bytes of a termination log; a longer line would lose its end.
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

LastWords::LastWords(std::string program, std::string termination_log, int columns)
    : program_(std::move(program)),
      termination_log_(std::move(termination_log)),
      columns_(columns) {}

std::string LastWords::DefaultTerminationLog() {
  const char* named = std::getenv("KUMO_TERMINATION_LOG");
  if (named != nullptr) return named;
  return access(kKubernetesLog, W_OK) == 0 ? kKubernetesLog : "";
}

std::string LastWords::LineOf(const std::string& words) const {
  return program_ + ": " + OneLine(words) + "\n";
}

void LastWords::WriteLog(const std::string& line) const {
  if (termination_log_.empty()) return;
  const int fd =
      open(termination_log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return;
  WriteAll(fd, line);
  close(fd);
}

int LastWords::Say(ExitCode code, const std::string& words) const {
  if (code != ExitCode::kDone || !words.empty()) {
    const std::string line = LineOf(words);
    std::fflush(stdout);
    std::fflush(stderr);
    WriteAll(STDERR_FILENO, Folded(line, columns_, kHanging));
    WriteLog(line);
  }
  return static_cast<int>(code);
}

int LastWords::Say(const Status& status) const {
  if (status.ok()) return 0;
  return Say(ExitCodeOf(status), status.message());
}

int LastWords::Leave(const std::string& words) const {
  if (!words.empty()) WriteLog(LineOf(words));
  return 0;
}

}  // namespace kumo
