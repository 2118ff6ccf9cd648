// Values of settings and options as text: the allowed values, reading, writing.
//
// Written values are canonical: equal settings give equal text on every machine (a number is the
// shortest decimal that reads back as the same bits). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/choice.h"
#include "common/base/status.h"
#include "common/settings/choices.h"

namespace kumo {

// Allowed values; of a list, of each element.
struct Allowed {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;
  std::vector<std::string> values{};  // not empty: exactly these
  std::string_view characters{};      // not empty: letters, digits and these, at least one
  std::string_view text{};            // not empty: stands in messages for all of the above
  bool not_empty = false;             // a text may not be empty
  bool lines = false;                 // a text may have several lines, and tabs
  std::string_view word_for_empty{};  // not empty: the empty text is written so, and only so

  // "1 .. 4096", "0 .. below 1", "one of gradient, block", or "" for anything.
  std::string Text() const;
};

// Each reads `text` into *value. InvalidArgument names the allowed values ("must be an integer,
// 1 .. 4096") but not the key; *value is then unchanged.
Status ReadValue(std::string_view text, const Allowed& allowed, bool* value);
Status ReadValue(std::string_view text, const Allowed& allowed, int* value);
Status ReadValue(std::string_view text, const Allowed& allowed, int64_t* value);
Status ReadValue(std::string_view text, const Allowed& allowed, uint64_t* value);
Status ReadValue(std::string_view text, const Allowed& allowed, float* value);
Status ReadValue(std::string_view text, const Allowed& allowed, double* value);
Status ReadValue(std::string_view text, const Allowed& allowed, std::string* value);
Status ReadValue(std::string_view text, const Allowed& allowed, Device* value);
Status ReadValue(std::string_view text, const Allowed& allowed, ResumeFrom* value);
// "equal", or a list of proportions.
Status ReadValue(std::string_view text, const Allowed& allowed, ClassShares* value);
// Lists are separated by commas; spaces around an element do not count; "" is the empty list.
Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<double>* value);
Status ReadValue(std::string_view text, const Allowed& allowed, std::vector<std::string>* value);

// One of the words of `allowed`.
Status CheckWord(std::string_view text, const Allowed& allowed);
// A choice; `allowed` may narrow its words.
template <HasChoices E>
Status ReadValue(std::string_view text, const Allowed& allowed, E* value) {
  KUMO_RETURN_IF_ERROR(CheckWord(text, allowed));
  const std::optional<E> choice = FindChoice<E>(text);
  if (!choice) return InvalidArgument("must be one of " + ChoiceWords<E>());
  *value = *choice;
  return OkStatus();
}

// A choice that may be left open: none until one is read.
template <HasChoices E>
Status ReadValue(std::string_view text, const Allowed& allowed, std::optional<E>* value) {
  E choice = E();
  KUMO_RETURN_IF_ERROR(ReadValue(text, allowed, &choice));
  *value = choice;
  return OkStatus();
}

std::string WriteValue(bool value);
std::string WriteValue(int value);
std::string WriteValue(int64_t value);
std::string WriteValue(uint64_t value);
std::string WriteValue(float value);
std::string WriteValue(double value);
std::string WriteValue(const std::string& value);
std::string WriteValue(const Device& value);
std::string WriteValue(const ResumeFrom& value);
std::string WriteValue(const ClassShares& value);
std::string WriteValue(const std::vector<double>& value);
std::string WriteValue(const std::vector<std::string>& value);
template <HasChoices E>
std::string WriteValue(E value) {
  return std::string(WordOf(value));
}
// "" for none.
template <HasChoices E>
std::string WriteValue(const std::optional<E>& value) {
  return value ? WriteValue(*value) : "";
}

// All words of a choice.
template <HasChoices E>
Allowed AllowedChoices() {
  Allowed allowed;
  for (const Choice<E>& choice : ChoicesOf(E())) allowed.values.emplace_back(choice.word);
  return allowed;
}

// "3x32x32" (channels x height x width) as numbers: one channel of grey or three of colour, sides
// of at most kMaxImageSide pixels. InvalidArgument as for ReadValue.
Result<std::vector<int64_t>> ParseImageExtents(std::string_view text);

}  // namespace kumo
