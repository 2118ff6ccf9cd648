// Run table: runs beside each other, with the settings in which they differ.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/runs/run_summary.h"
#include "common/base/json.h"

namespace kumo {

// Keys of the settings in which the runs differ, in the option table's order. A run whose settings
// are not known differs in none.
std::vector<std::string> DifferentSettings(std::span<const RunSummary> runs);

// The best first, one metric after another; runs without a best figure last. Otherwise they stay in
// their order.
void SortByBest(std::vector<RunSummary>* runs);

// A line for each run: name, state, settings, epochs, best figure, time and bytes. columns: of a
// line at most; 0: no limit.
std::string RunTable(std::span<const RunSummary> runs, int columns);

// An object for each run: folder, state, all settings, newest figures, best epoch, bytes.
JsonArray RunsJson(std::span<const RunSummary> runs);

}  // namespace kumo
