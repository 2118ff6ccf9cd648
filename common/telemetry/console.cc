#include "common/telemetry/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include <glog/logging.h>

#include "common/base/clock.h"
#include "common/base/terminal.h"

namespace kumo {
namespace {

// Indentation of folded lines.
constexpr int kHanging = 2;

constexpr TimeUs kLastWait = kSecond;

// Opens the pipe or terminal of a descriptor a second time, as O_NONBLOCK set on the descriptor
// itself would hold for all programs that share it. -1 if it cannot be opened; a file is not
// opened, as its second position would overwrite.
int OpenWithoutWaiting(int fd) {
  struct stat status {};
  const bool pipe = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
  if (!pipe && isatty(fd) == 0) return -1;
  return open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
              O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool IsWritable(int fd, TimeUs within) {
  pollfd writable{fd, POLLOUT, 0};
  return poll(&writable, 1, static_cast<int>(within / kMillisecond)) > 0;
}

}  // namespace

FdConsole::FdConsole(int fd) : fd_(fd), own_fd_(OpenWithoutWaiting(fd)) {}

FdConsole::~FdConsole() {
  Finish();
  if (own_fd_ >= 0) close(own_fd_);
}

int FdConsole::Width() const { return TerminalColumns(fd_); }

void FdConsole::Write(std::string_view text) {
  WriteHeld();
  if (drops_ && held_.empty()) {
    if (dropped_lines_ > 0) {
      held_ = "(" + std::to_string(dropped_lines_) +
              " lines of progress were dropped, as the output was not read)\n";
    }
    drops_ = false;
    dropped_lines_ = 0;
  }
  drops_ |= !held_.empty() && held_.size() + text.size() > kMostHeld;
  if (drops_) {
    dropped_lines_ += std::count(text.begin(), text.end(), '\n');
    return;
  }
  held_ += text;
  WriteHeld();
}

void FdConsole::Finish() {
  const SteadyClock clock;
  const TimeUs until = clock.NowUs() + kLastWait;
  WriteHeld();
  for (TimeUs now = clock.NowUs(); !held_.empty() && now < until; now = clock.NowUs()) {
    if (IsWritable(output(), until - now)) WriteHeld();
  }
  if (drops_) Write("");  // says how many
}

void FdConsole::WriteHeld() {
  // Without a descriptor of its own, a pipe takes PIPE_BUF bytes at once if it is writable.
  while (!held_.empty() && IsWritable(output(), 0)) {
    const ssize_t written =
        ::write(output(), held_.data(), std::min<size_t>(held_.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0 && errno == EPIPE && !told_) {
      told_ = true;
      LOG(WARNING) << (fd_ == STDERR_FILENO ? "stderr" : "stdout")
                   << " is a closed pipe: the training continues without progress here; kumo "
                      "status shows it";
    }
    held_.erase(0, written <= 0 ? std::string::npos : static_cast<size_t>(written));
  }
}

void ProgressView::Show(const RoundProgress& progress) {
  const int width = console_->Width();
  if (width == 0) {
    console_->Write(FormatProgressLine(progress) + "\n");
  } else {
    // One column less, because some terminals wrap when the last column is written.
    ShowBar(FormatProgressBar(progress, width - 1));
  }
}

void ProgressView::Show(const EpochResult& result) {
  if (!table_width_) {
    table_width_ = console_->Width();
    ShowLine(FormatEpochTableHeader(result, *table_width_));
  }
  ShowLine(FormatEpochTableRow(result, *table_width_));
}

void ProgressView::ShowLine(std::string_view line) {
  const std::string bar = bar_;
  RemoveBar();
  console_->Write(Folded(line, console_->Width(), kHanging) + "\n");
  if (!bar.empty()) ShowBar(bar);
}

void ProgressView::RemoveBar() {
  if (!bar_.empty()) ShowBar("");
}

void ProgressView::ShowBar(const std::string& bar) {
  // Blanks erase the rest of a longer bar.
  std::string text = bar;
  if (text.size() < bar_.size()) text.resize(bar_.size(), ' ');
  // The cursor returns to the start, so that the terminal's "^C" there is overwritten too.
  console_->Write("\r" + text + "\r");
  bar_ = bar;
}

}  // namespace kumo
