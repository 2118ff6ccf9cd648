// An experiment as text: what processes compare, and the documentation of its settings.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/settings/experiment.h"
#include "common/settings/option_table.h"

namespace kumo {

// The settings that the result depends on, one `key = value` a line, in the option table's order.
// Equal exactly when two processes compute the same job; paths are cut to what hosts agree on.
std::string ExperimentText(const Experiment& experiment);

// The same settings as values: bool, a number, or text.
struct ResultSetting {
  std::string key;
  std::variant<bool, double, std::string> value;
};
std::vector<ResultSetting> ResultSettings(const Experiment& experiment);

// FNV-1a (64 bits, Fowler, Noll, Vo) of ExperimentText.
uint64_t ExperimentHash(const Experiment& experiment);
// As people are shown it: 16 hexadecimal digits.
std::string HashText(const Experiment& experiment);

// The first difference of two texts of ExperimentText in words, "sync.minibatch is 64 here and 32
// there", or "" when there is none. `there` may come from a peer: whatever it holds, the answer is
// one short printable line.
std::string FirstDifference(std::string_view here, std::string_view there);

// docs/experiments.md.
std::string OptionsMarkdown();
// The same as plain text for `kumo options`.
std::string OptionsHelp();
// A line for each setting, with the values that it may have where they are listed:
// "sync.mode gradient block".
std::string OptionsKeys();
// "[samples] (1 .. 4096)", "" where there is neither unit nor limit; and the default, in words
// where it is worked out.
std::string UnitAndAllowed(const Option& option);
std::string DefaultText(const Option& option, const Experiment& defaults);

}  // namespace kumo
