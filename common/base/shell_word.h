// Shell words: texts quoted for a POSIX shell. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

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

// The words of a command, separated by blanks. A part in single or double quotes belongs to one
// word; nothing else is special. InvalidArgument if a quote is not closed or there is no word.
inline Result<std::vector<std::string>> WordsOfCommand(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : command) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      in_word = true;
    } else if (quote == 0 && blank) {
      if (in_word) words.push_back(std::exchange(word, ""));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return InvalidArgument(std::string("the quote ") + quote + " is not closed");
  if (in_word) words.push_back(word);
  if (words.empty() || words.front().empty()) return InvalidArgument("it names no program");
  return words;
}

}  // namespace kumo
