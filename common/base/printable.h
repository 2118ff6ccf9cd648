// Texts of others, as they may stand in a log, a table or a message. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kumo {

// `text` with '?' for each control character, which could forge a line or a terminal's colours, and
// cut, with "..." behind it, where it is longer than `longest` bytes, of which there are at
// least 3. No character of UTF-8 is cut through.
std::string Printable(std::string_view text, size_t longest = 200);

// `text`; or, where it is longer than `longest` bytes, of which there are at least 100, its
// beginning and its end with how long it is in between: "key = aaa... (1048582 bytes) ...aaa: must
// be ...". No character of UTF-8 is cut through.
std::string CutInTheMiddle(std::string_view text, size_t longest = 600);

// Whether a text is a name: no control character in it, and at most 255 bytes long.
bool IsName(std::string_view text);

}  // namespace kumo
