#include "common/base/printable.h"

#include <algorithm>

namespace kumo {
namespace {

bool IsControl(unsigned char c) { return c < 0x20 || c == 0x7f; }

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string Printable(std::string_view text, size_t longest) {
  const bool cut = text.size() > longest;
  if (cut) {
    size_t end = longest - 3;
    while (end > 0 && ContinuesCharacter(text[end])) --end;
    text = text.substr(0, end);
  }
  std::string printable(text);
  std::ranges::replace_if(printable, IsControl, '?');
  return cut ? printable + "..." : printable;
}

std::string CutInTheMiddle(std::string_view text, size_t longest) {
  if (text.size() <= longest) return std::string(text);
  const std::string between = "... (" + std::to_string(text.size()) + " bytes) ...";
  const size_t half = (longest - between.size()) / 2;
  size_t end = half;
  while (end > 0 && ContinuesCharacter(text[end])) --end;
  size_t begin = text.size() - half;
  while (begin < text.size() && ContinuesCharacter(text[begin])) ++begin;
  return std::string(text.substr(0, end)) + between + std::string(text.substr(begin));
}

bool IsName(std::string_view text) {
  constexpr size_t kLongestName = 255;
  return text.size() <= kLongestName && std::ranges::none_of(text, IsControl);
}

}  // namespace kumo
