#include "common/base/nearest_float.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "common/base/text.h"

namespace kumo {
namespace {

// True if a number that is out of range is too large: its first digit other than 0 stands before
// the decimal point, once the exponent has moved the point. text: without a sign.
bool IsTooLarge(std::string_view text) {
  const size_t mark = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, mark);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t first = digits.find_first_not_of("0.");
  if (first == digits.npos) return false;
  auto before_point = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  if (first > point) ++before_point;
  if (mark == text.npos) return before_point > 0;
  std::string_view exponent = text.substr(mark + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  const std::optional<int64_t> number = ParseNumber<int64_t>(exponent);
  // An exponent of more than 18 digits outweighs all digits.
  if (!number) return !exponent.starts_with('-');
  return *number > -before_point;
}

}  // namespace

std::optional<float> NearestFloat(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  // Otherwise "inf" and "nan" would be numbers.
  if (digits.find_first_of("0123456789") > 1) return std::nullopt;
  float number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return number;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  const float nearest = IsTooLarge(digits) ? std::numeric_limits<float>::infinity() : 0.0f;
  return negative ? -nearest : nearest;
}

}  // namespace kumo
