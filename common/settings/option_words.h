// What else the field calls the settings and sections of experiment files: the option table's
// column `also`. For advice only; none of these words is accepted.
//
// Constant data and a pure function; thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace kumo {

struct OptionWords {
  std::string_view name;  // a key, "schedule.learning_rate", or a section, "schedule"
  std::string_view also;  // separated by blanks
};

// In the order of the table.
std::span<const OptionWords> AllOptionWords();

// "" for a name without such words.
std::string_view WordsFor(std::string_view name);

}  // namespace kumo
