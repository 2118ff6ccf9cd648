#include "common/base/printable.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

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

std::string NameOrNumber(std::span<const std::string> names, int64_t number, size_t longest) {
  const bool named = number >= 0 && number < std::ssize(names) && !names[number].empty();
  return named ? Printable(names[number], longest) : std::to_string(number);
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

namespace {

[[gnu::format(printf, 1, 2)]] std::string Print(const char* format, ...) {
  char text[64];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

// Three digits, as far as they are worth something.
std::string ThreeDigits(double value) {
  if (std::abs(value) < 9.995) return Print("%.2f", value);
  if (std::abs(value) < 99.95) return Print("%.1f", value);
  return Print("%.0f", value);
}

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1023.5 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return ThreeDigits(value) + " " + kUnits[unit];
}

std::string HumanCount(double count) {
  if (!std::isfinite(count)) return "-";
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T"};
  int prefix = 0;
  while (std::abs(count) >= 999.5 && prefix < 4) {
    count /= 1000;
    ++prefix;
  }
  if (prefix == 0 && count == std::floor(count)) return Print("%.0f", count);
  return ThreeDigits(count) + kPrefixes[prefix];
}

std::string HumanDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 0.9995) return Print("%.0f ms", seconds * 1e3);
  if (seconds < 59.95) return Print("%.1f s", seconds);
  if (seconds > 1e15) return "-";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) {
    return Print("%d min %02d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  }
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) {
    return Print("%d h %02d min", static_cast<int>(minutes / 60), static_cast<int>(minutes % 60));
  }
  const int64_t hours = (minutes + 30) / 60;
  return Print("%lld d %02d h", static_cast<long long>(hours / 24), static_cast<int>(hours % 24));
}

}  // namespace kumo
