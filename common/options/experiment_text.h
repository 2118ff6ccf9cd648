// An experiment as text: what processes compare, what a person reads, and the documentation.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/options/experiment.h"
#include "common/options/parser.h"

namespace kumo {

// The settings that the result depends on, one `key = value` a line, in the option table's order.
// Equal exactly when two processes compute the same job; paths are cut to what hosts agree on.
std::string ExperimentText(const Experiment& experiment);

// FNV-1a (64 bits, Fowler, Noll, Vo) of ExperimentText.
uint64_t ExperimentHash(const Experiment& experiment);

// The first difference of two texts of ExperimentText in words, "sync.minibatch is 64 here and 32
// there", or "" when there is none. `there` may come from a peer: whatever it holds, the answer is
// one short printable line.
std::string FirstDifference(std::string_view here, std::string_view there);

// All settings by sections: value, unit, and where the value comes from. Ends with the hash.
std::string ResolvedTable(const Experiment& experiment, const Origins& origins);

// docs/experiments.md.
std::string OptionsMarkdown();
// The same as plain text for `kumo options`.
std::string OptionsHelp();

}  // namespace kumo
