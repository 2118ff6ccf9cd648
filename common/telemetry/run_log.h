// Run log: the contents of a run's log.jsonl, for programs that show and compare runs.
//
// A value; ReadRunLog is stateless.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

// A metric by which epochs are ranked.
struct RankedMetric {
  std::string name;
  bool more_is_better = false;

  bool operator==(const RankedMetric&) const = default;
};

struct RunLog {
  // Figures by name (figures.h).
  using Figures = std::map<std::string, double>;

  // Settings that the result depends on, as of the last start; empty in logs of release 0.2.
  std::map<std::string, std::string> settings;
  std::vector<RankedMetric> metrics;  // in the job's order; empty in logs of earlier releases
  std::vector<Figures> epochs;        // evaluated epochs, in order
  Figures newest;                     // newest value of each figure
  std::string last_epoch;             // line of the last epoch, a JSON object; "" if there is none
};

// Damaged lines and unknown kinds are ignored. The errors of OpenForReading and Read.
Result<RunLog> ReadRunLog(FileSystem& files, const std::string& path);

}  // namespace kumo
