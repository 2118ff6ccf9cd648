// Words for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

inline std::string InSingleQuotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// As it is where a shell takes it so, else in single quotes.
inline std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  return !text.empty() && text.find_first_not_of(kPlain) == text.npos ? text : InSingleQuotes(text);
}

}  // namespace kumo
