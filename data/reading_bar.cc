#include "data/reading_bar.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr TimeUs kInterval = kSecond / 5;
constexpr int kCells = 30;

}  // namespace

std::string ReadingBarText(int64_t read, int64_t samples, TimeUs elapsed) {
  const double share = static_cast<double>(read) / static_cast<double>(samples);
  const auto cells = static_cast<size_t>(share * kCells);
  std::string bar = "reading [" + std::string(cells, '=') + std::string(kCells - cells, ' ') +
                    "] " + std::to_string(read) + " of " + std::to_string(samples) + " samples";
  if (read > 0 && elapsed >= kSecond) {
    bar += ", ETA " + HumanDuration(ToSeconds(elapsed) * (1 - share) / share);
  }
  return bar;
}

ReadingBar::ReadingBar() : console_(STDERR_FILENO), view_(&console_), began_(clock_.NowUs()) {}

void ReadingBar::Show(int64_t read, int64_t samples) {
  const TimeUs now = clock_.NowUs();
  if (now - shown_ < kInterval) return;
  shown_ = now;
  const int columns = console_.Width();
  if (columns == 0 || samples == 0) return;
  view_.ShowBar(ReadingBarText(read, samples, now - began_).substr(0, std::max(0, columns - 1)));
}

}  // namespace kumo
