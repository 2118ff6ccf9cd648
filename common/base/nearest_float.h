// Nearest float: decimal text to float32, also if float32 cannot hold the number.
//
// Pure function; thread-safe, and independent of the locale.
#pragma once

#include <optional>
#include <string_view>

namespace kumo {

// The float32 that is nearest to the number that is the whole text: zero if the number is too
// small, infinite if it is too large. None if the text is no decimal number: at least one digit,
// with an optional sign, point and exponent ("-1.5e-48", "+.5", "3.").
std::optional<float> NearestFloat(std::string_view text);

}  // namespace kumo
