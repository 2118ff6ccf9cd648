#include "common/telemetry/console.h"

#include <unistd.h>

#include <cerrno>

#include <glog/logging.h>

#include "common/base/terminal.h"

namespace kumo {
namespace {

// Indentation of folded lines.
constexpr int kHanging = 2;

}  // namespace

int FdConsole::Width() const { return TerminalColumns(fd_); }

void FdConsole::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE && !told_) {
      told_ = true;
      LOG(WARNING) << "stdout is a closed pipe: the training continues without progress here; kumo "
                      "status shows it";
    }
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
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
