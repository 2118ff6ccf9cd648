// Text: numbers read from it and written to it, and lists of words. No function depends on the
// locale.
//
// Pure functions; thread-safe.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace kumo {

// Removes the number at the start of *text and returns it. Returns none, and leaves *text as it is,
// if there is no number or Number cannot hold it. Unsigned numbers have no sign, others only '-'.
template <typename Number>
std::optional<Number> TakeNumber(std::string_view* text, int base = 10) {
  Number number{};
  const char* const end = text->data() + text->size();
  std::from_chars_result taken{};
  if constexpr (std::is_integral_v<Number>) {
    taken = std::from_chars(text->data(), end, number, base);
  } else {
    taken = std::from_chars(text->data(), end, number);
  }
  if (taken.ec != std::errc()) return std::nullopt;
  text->remove_prefix(taken.ptr - text->data());
  return number;
}

// The number that is the whole text; none under the same conditions.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  const std::optional<Number> number = TakeNumber<Number>(&text);
  return text.empty() ? number : std::nullopt;
}

// The shortest decimal text that reads back as the same number.
template <typename Number>
std::string ShortestText(Number number) {
  char buffer[64];  // longer than any number
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), number).ptr);
}

// 8 or 16 lowercase hexadecimal digits.
std::string HexDigits(uint32_t number);
std::string HexDigits(uint64_t number);

// The lines of a text that ends with a line end, each behind `blanks` blanks.
std::string Indented(std::string_view lines, int blanks);

// "1 server", "3 servers"; the plural is `more`, or `one` with an s if that is empty.
std::string Counted(int64_t number, std::string_view one, std::string_view more = "");

// The text without the byte order mark of UTF-8, with which some programs begin a text.
std::string_view WithoutByteOrderMark(std::string_view text);

// The text without blanks and ends of lines around it.
std::string_view Trimmed(std::string_view text);

// Removes the first line of *text, with its end, and returns it without that.
std::string_view TakeLine(std::string_view* text);

// ASCII letters become small ones; other bytes stay.
std::string LowerCase(std::string_view text);

// The words with ", " between them.
std::string Join(std::span<const std::string> words);

}  // namespace kumo
