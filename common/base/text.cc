#include "common/base/text.h"

#include <cinttypes>
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

std::string Join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace kumo
