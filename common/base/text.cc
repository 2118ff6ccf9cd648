#include "common/base/text.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

namespace kumo {

std::string HexDigits(uint32_t number) {
  char digits[9];
  std::snprintf(digits, sizeof(digits), "%08" PRIx32, number);
  return digits;
}

std::string HexDigits(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, number);
  return digits;
}

std::string Indented(std::string_view lines, int blanks) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size() - 1);
    text.append(blanks, ' ').append(lines.substr(0, end + 1));
    lines.remove_prefix(end + 1);
  }
  return text;
}

std::string Counted(int64_t number, std::string_view one, std::string_view more) {
  std::string text = std::to_string(number) + " ";
  if (number == 1) return text.append(one);
  return more.empty() ? text.append(one) + "s" : text.append(more);
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace kumo
