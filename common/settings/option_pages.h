// Pages of settings for people: docs/experiments.md, `kumo options`, and the resolved settings of
// an experiment before a start.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "common/settings/experiment.h"
#include "common/settings/option_table.h"
#include "common/settings/parser.h"

namespace kumo {

// docs/experiments.md.
std::string OptionsMarkdown();
// The same as plain text for `kumo options`.
std::string OptionsHelp();
// A line for each setting, with its allowed words if there are any: "sync.mode gradient block".
std::string OptionsKeys();
// "[samples] (1 .. 4096)", "" without unit and limit.
std::string UnitAndAllowed(const Option& option);
// The default value, or how it is worked out.
std::string DefaultText(const Option& option, const Experiment& defaults);

struct TableStyle {
  bool all = false;  // false: only settings that differ from their defaults
  int columns = 0;   // of a line at most; 0: no limit
};

// The settings of an experiment by sections: value, unit, origin; ends with the experiment hash.
std::string ResolvedTable(const Experiment& experiment, const Origins& origins, TableStyle style);

}  // namespace kumo
