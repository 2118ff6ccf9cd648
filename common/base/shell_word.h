// Shell words: texts quoted for a POSIX shell. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

// `text` in single quotes for a POSIX shell.
inline std::string InSingleQuotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// `text` as a word for a POSIX shell, in single quotes only if necessary.
inline std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  return !text.empty() && text.find_first_not_of(kPlain) == text.npos ? text : InSingleQuotes(text);
}

}  // namespace kumo
