// Run summary: what the output folder of a job tells about its run, for `kumo runs` and
// `kumo sweep`.
//
// Read-only functions; thread-safe. Unreadable parts are left empty: a list of runs does not fail
// because of one of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/telemetry/run_log.h"

namespace kumo {

enum class RunState {
  kRunning,
  kDone,
  kStopped,  // it has a checkpoint to go on from
  kEnded,    // without a checkpoint
};
// "running", "done", "stopped", "ended"
const char* WordOf(RunState state);

// The best evaluated epoch by one metric.
struct BestEpoch {
  std::string metric;  // whose validation figure it is
  double value = 0;
  int epoch = 0;
  bool more_is_better = false;
};

struct RunSummary {
  std::string name;    // path of the folder below the listed one
  std::string folder;  // the output folder
  RunState state = RunState::kEnded;
  uint64_t experiment_hash = 0;                 // of the newest checkpoint; 0 without one
  std::map<std::string, std::string> settings;  // that the result depends on, by key
  RunLog log;
  std::optional<BestEpoch> best;
  uint64_t bytes = 0;  // of all files
};

// metric: ranks the epochs; "": the network's first metric that is better if larger, or else its
// first.
RunSummary SummariseRun(FileSystem& files, const std::string& folder, const std::string& metric);

// The output folders of jobs at `folder` and up to three levels below, in the order of their
// names. NotFound if there is no such folder.
Result<std::vector<std::string>> FindRuns(const std::string& folder);

}  // namespace kumo
