// Run summary: state, settings and figures of a run, read from its output folder, for `kumo runs`
// and `kumo sweep`.
//
// Read-only functions; thread-safe. Unreadable parts are left empty: a list of runs does not fail
// because of one of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"
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
  double epoch = 0;
  bool more_is_better = false;
};

struct RunSummary {
  std::string name;    // path of the folder below the listed one
  std::string folder;  // the output folder
  RunState state = RunState::kEnded;
  std::map<std::string, std::string> settings;  // that the result depends on, by key
  std::vector<std::string> metrics;             // of the network; empty without a checkpoint
  RunLog log;
  std::optional<BestEpoch> best;
  uint64_t bytes = 0;  // of all files
};

// metric: ranks the epochs; "": the network's first metric that is better if larger, or else its
// first. Without a checkpoint the log declares the metrics; in logs of earlier releases those of
// Kumo's losses are known by their names.
RunSummary SummariseRun(FileSystem& files, const std::string& folder, const std::string& metric);

// True if the newest checkpoint in `folder` is the last one of this experiment.
bool IsDone(FileSystem& files, const std::string& folder, const Experiment& experiment);

// InvalidArgument if the metrics of all runs, as far as they are known, lack `metric` ("": none is
// asked for).
Status CheckMetric(std::span<const RunSummary> runs, const std::string& metric);

// The output folders of jobs at `folder` and up to three levels below, in the order of their
// names. NotFound if there is no such folder.
Result<std::vector<std::string>> FindRuns(const std::string& folder);

}  // namespace kumo
