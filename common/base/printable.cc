#include "common/base/printable.h"

#include <algorithm>

namespace kumo {
namespace {

bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

}  // namespace

std::string Printable(std::string_view text, size_t longest) {
  const bool cut = text.size() > longest;
  if (cut) {
    size_t end = longest - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string printable(text);
  std::ranges::replace_if(printable, IsControl, '?');
  return cut ? printable + "..." : printable;
}

bool IsName(std::string_view text) {
  constexpr size_t kLongestName = 255;
  return text.size() <= kLongestName && std::ranges::none_of(text, IsControl);
}

}  // namespace kumo
