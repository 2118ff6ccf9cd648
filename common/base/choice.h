// Choice: one value of an enumeration, the word that people write for it, and its meaning.
//
// An enumeration has words when a function `ChoicesOf(E)` beside it returns the table of its
// values, in the order in which people are shown them:
//
//   enum class Mode { kFast, kExact };
//   inline constexpr Choice<Mode> kModes[] = {{Mode::kFast, "fast", "rounds to 16 bits"}, ...};
//   constexpr std::span<const Choice<Mode>> ChoicesOf(Mode) { return kModes; }
//
// Pure functions; thread-safe.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kumo {

template <typename E>
struct Choice {
  E value;
  std::string_view word;
  std::string_view help = "";  // the meaning in a few words; "" if the word says it all
};

template <typename E>
concept HasChoices = std::is_enum_v<E> && requires(E value) {
  { ChoicesOf(value) } -> std::convertible_to<std::span<const Choice<E>>>;
};

// "" for a number that is no value of the enumeration.
template <HasChoices E>
constexpr std::string_view WordOf(E value) {
  for (const Choice<E>& choice : ChoicesOf(value)) {
    if (choice.value == value) return choice.word;
  }
  return "";
}

template <HasChoices E>
constexpr std::optional<E> FindChoice(std::string_view word) {
  for (const Choice<E>& choice : ChoicesOf(E())) {
    if (choice.word == word) return choice.value;
  }
  return std::nullopt;
}

// "fast, exact".
template <HasChoices E>
std::string ChoiceWords() {
  std::string words;
  for (const Choice<E>& choice : ChoicesOf(E())) {
    words += (words.empty() ? "" : ", ") + std::string(choice.word);
  }
  return words;
}

}  // namespace kumo
