#include "common/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr int kUsualColumns = 80;
// Below this width, lines would consist of indentation only.
constexpr int kLeastColumns = 20;

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Bytes of the first `columns` characters, or of the whole text.
size_t BytesOf(std::string_view text, int columns) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (BeginsCharacter(text[at]) && columns-- == 0) break;
  }
  return at;
}

// Length of the first part of `line`, which exceeds `columns`: up to the last blank that fits after
// the leading blanks.
size_t BreakAt(std::string_view line, int columns) {
  const size_t most = BytesOf(line, columns);
  const size_t blank = line.rfind(' ', most);
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return blank == std::string_view::npos || blank <= begin ? most : blank;
}

void FoldLine(std::string_view line, int columns, int hanging, std::string* folded) {
  const size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const std::string indent(std::min<size_t>(blanks + hanging, columns / 2), ' ');
  std::string rest(line);
  while (ColumnsOf(rest) > columns) {
    const size_t end = BreakAt(rest, columns);
    *folded += rest.substr(0, rest.find_last_not_of(' ', end - 1) + 1) + "\n";
    const size_t next = std::min(rest.find_first_not_of(' ', end), rest.size());
    rest = indent + rest.substr(next);
  }
  *folded += rest;
}

}  // namespace

int TerminalColumns(int fd, std::string_view wanted) {
  if (::isatty(fd) == 0) return 0;
  int columns = TakeNumber<int>(&wanted).value_or(0);
  winsize size{};
  if (columns <= 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns <= 0 ? kUsualColumns : std::max(columns, kLeastColumns);
}

int ColumnsOf(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string Folded(std::string_view text, int columns, int hanging) {
  if (columns <= 0) return std::string(text);
  std::string folded;
  while (true) {
    const size_t end = text.find('\n');
    FoldLine(text.substr(0, end), std::max(columns, kLeastColumns), hanging, &folded);
    if (end == std::string_view::npos) return folded;
    folded += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string Shortened(std::string_view text, int columns) {
  const int length = ColumnsOf(text);
  if (length <= columns) return std::string(text);
  const int kept = std::max(columns - 3, 0);
  // The end of a path is more informative than its start.
  const int head = kept / 3;
  const std::string_view tail = text.substr(BytesOf(text, length - (kept - head)));
  return std::string(text.substr(0, BytesOf(text, head))) + "..." + std::string(tail);
}

}  // namespace kumo
