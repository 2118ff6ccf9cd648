// The settings of an experiment as a person reads them before a start: value, unit, and where the
// value comes from.
//
// Pure function; thread-safe.
#pragma once

#include <string>

#include "common/settings/experiment.h"
#include "common/settings/parser.h"

namespace kumo {

struct TableStyle {
  bool all = false;  // false: only settings that differ from their defaults
  int columns = 0;   // no line is wider; 0: no limit
};

// By sections; ends with the experiment hash.
std::string ResolvedTable(const Experiment& experiment, const Origins& origins, TableStyle style);

}  // namespace kumo
