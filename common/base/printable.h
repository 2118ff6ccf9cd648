// Text for logs, tables and messages: foreign text made safe to print, and numbers with units. Pure
// functions; no program parses the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kumo {

// Returns `text` with each control character, which could forge a line or a terminal colour,
// replaced by '?', and truncated with "..." after `longest` bytes (at least 3). UTF-8 characters
// stay whole.
std::string Printable(std::string_view text, size_t longest = 200);

// Returns the name with this number, printable, or the number itself if there is no name.
std::string NameOrNumber(std::span<const std::string> names, int64_t number, size_t longest = 200);

// Returns `text`; if it exceeds `longest` bytes (at least 100), its start and end with the length
// between them: "key = aaa... (1048582 bytes) ...aaa: must be ...". UTF-8 characters stay whole.
std::string CutInTheMiddle(std::string_view text, size_t longest = 600);

// True if the text is a valid name: no control characters, at most 255 bytes.
bool IsName(std::string_view text);

// "0 B", "1023 B", "12.3 MiB".
std::string HumanBytes(uint64_t bytes);
// A count or a rate with a decimal prefix: "12", "12.3 k", "4.56 M"; "-" when it is not finite.
std::string HumanCount(double count);
// "850 ms", "12.3 s", "3 min 20 s", "1 h 02 min", "3 d 04 h"; "-" when negative or not finite.
std::string HumanDuration(double seconds);

}  // namespace kumo
