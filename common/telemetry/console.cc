#include "common/telemetry/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace kumo {

int FdConsole::Width() const {
  winsize size{};
  if (::isatty(fd_) == 0) return 0;
  // A terminal that does not know its width (a serial line) is as wide as they used to be.
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void FdConsole::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void ProgressView::Show(const RoundProgress& progress) {
  const int width = console_->Width();
  if (width == 0) {
    console_->Write(FormatProgressLine(progress) + "\n");
  } else {
    // One column less: some terminals wrap when the last one is written to.
    DrawBar(FormatProgressBar(progress, width - 1));
  }
}

void ProgressView::Show(const EpochResult& result) {
  if (!header_shown_) ShowLine(FormatEpochTableHeader());
  header_shown_ = true;
  ShowLine(FormatEpochTableRow(result));
}

void ProgressView::ShowLine(std::string_view line) {
  const std::string bar = bar_;
  if (!bar.empty()) DrawBar("");
  if (!bar.empty()) console_->Write("\r");
  console_->Write(std::string(line) + "\n");
  if (!bar.empty()) DrawBar(bar);
}

void ProgressView::EndBar() {
  if (!bar_.empty()) console_->Write("\n");
  bar_.clear();
}

void ProgressView::DrawBar(const std::string& bar) {
  // Blanks cover what is left of a longer one.
  std::string text = bar;
  if (text.size() < bar_.size()) text.resize(bar_.size(), ' ');
  console_->Write("\r" + text);
  bar_ = bar;
}

}  // namespace kumo
