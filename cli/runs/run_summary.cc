#include "cli/runs/run_summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "common/base/json.h"
#include "common/base/process/output_lock.h"
#include "common/base/text.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/resume_point.h"
#include "common/settings/experiment_text.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 3;
// Folder of runs that later ones in the same output folder have set aside.
constexpr char kEarlier[] = "earlier";

// A checkpoint's settings in the form of log.jsonl's.
std::map<std::string, std::string> SettingsOf(const Experiment& experiment) {
  std::map<std::string, std::string> settings;
  for (const ResultSetting& setting : ResultSettings(experiment)) {
    const bool* const flag = std::get_if<bool>(&setting.value);
    const double* const number = std::get_if<double>(&setting.value);
    settings[setting.key] = flag != nullptr     ? *flag ? "true" : "false"
                            : number != nullptr ? ToJson(*number)
                                                : std::get<std::string>(setting.value);
  }
  return settings;
}

std::vector<RankedMetric> RankedOf(const MetricList& metrics) {
  std::vector<RankedMetric> ranked;
  for (const Metric& one : metrics.metrics()) ranked.push_back({one.name, one.more_is_better});
  return ranked;
}

// The metrics in the log of a run without a checkpoint. In a log that does not declare them (of
// an earlier release) those of Kumo's losses are known by the ends of their names; the others, of
// programs, are left out.
std::vector<RankedMetric> RankedOf(const RunLog& log) {
  if (!log.metrics.empty()) return log.metrics;
  constexpr std::string_view kMore[] = {"accuracy", "exact_match", "iou",
                                        "map",      "map_11",      "map_coco"};
  constexpr std::string_view kLess[] = {"loss", "perplexity", "error"};
  const std::string prefix = ValidationFigure("");
  std::vector<RankedMetric> ranked;
  if (log.epochs.empty()) return ranked;
  for (const auto& [figure, value] : log.epochs.back()) {
    if (!figure.starts_with(prefix)) continue;
    const std::string name = figure.substr(prefix.size());
    const auto ends = [&](std::string_view word) { return name.ends_with(word); };
    const bool more = std::ranges::any_of(kMore, ends);
    if (more || std::ranges::any_of(kLess, ends)) ranked.push_back({name, more});
  }
  return ranked;
}

// The metric to show; null if the list is empty or lacks `name`.
const RankedMetric* MetricToShow(std::span<const RankedMetric> metrics, const std::string& name) {
  const auto shown = std::ranges::find_if(metrics, [&](const RankedMetric& one) {
    return name.empty() ? one.more_is_better : one.name == name;
  });
  if (shown != metrics.end()) return &*shown;
  return metrics.empty() || !name.empty() ? nullptr : &metrics.front();
}

std::optional<BestEpoch> BestOf(const RunLog& log, std::span<const RankedMetric> metrics,
                                const std::string& name) {
  const RankedMetric* const metric = MetricToShow(metrics, name);
  if (metric == nullptr) return std::nullopt;
  std::optional<BestEpoch> best;
  const std::string figure = ValidationFigure(metric->name);
  for (const RunLog::Figures& epoch : log.epochs) {
    const auto value = epoch.find(figure);
    const auto number = epoch.find(std::string(figure::kEpoch));
    if (value == epoch.end() || number == epoch.end() || !std::isfinite(value->second)) continue;
    const bool better = !best || (metric->more_is_better ? value->second > best->value
                                                         : value->second < best->value);
    if (!better) continue;
    best = {metric->name, value->second, number->second, metric->more_is_better};
  }
  return best;
}

uint64_t BytesBelow(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder, options, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    // Earlier runs count for themselves.
    if (at.depth() == 0 && at->path().filename() == kEarlier) at.disable_recursion_pending();
    if (!fs::is_regular_file(at->symlink_status(ignored))) continue;
    const uintmax_t size = at->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

bool IsRun(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "log.jsonl", error) ||
         fs::is_directory(folder / "checkpoints", error);
}

void FindBelow(const fs::path& folder, int depth, std::vector<std::string>* runs) {
  if (IsRun(folder)) {
    runs->push_back(folder.string());
    const fs::path earlier = folder / kEarlier;
    std::error_code none;
    if (fs::is_directory(earlier, none)) FindBelow(earlier, kDeepest - 1, runs);
    return;
  }
  if (depth == kDeepest) return;
  std::error_code error;
  std::vector<fs::path> below;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const bool hidden = at->path().filename().string().starts_with(".");
    // Links are not followed, so that no folder is listed twice.
    if (!hidden && fs::is_directory(at->symlink_status(ignored))) below.push_back(at->path());
  }
  std::sort(below.begin(), below.end());
  for (const fs::path& one : below) FindBelow(one, depth + 1, runs);
}

}  // namespace

const char* WordOf(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kDone:
      return "done";
    case RunState::kStopped:
      return "stopped";
    case RunState::kEnded:
      return "ended";
  }
  return "";
}

RunSummary SummariseRun(FileSystem& files, const std::string& folder, const std::string& metric) {
  RunSummary run;
  run.name = run.folder = folder;
  if (Result<RunLog> log = ReadRunLog(files, JoinPath(folder, "log.jsonl")); log.ok()) {
    run.log = *std::move(log);
  }
  run.settings = run.log.settings;
  run.best = BestOf(run.log, RankedOf(run.log), metric);
  run.bytes = BytesBelow(folder);
  const std::string checkpoints = JoinPath(folder, "checkpoints");
  if (const Result<std::string> latest = FindLatest(files, checkpoints); latest.ok()) {
    run.state = RunState::kStopped;
    const Result<checkpoint::Manifest> manifest = ReadManifest(files, checkpoints, *latest);
    if (manifest.ok()) {
      const MetricList metrics = MetricsOf(*manifest);
      for (const Metric& one : metrics.metrics()) run.metrics.push_back(one.name);
      run.best = BestOf(run.log, RankedOf(metrics), metric);
      if (HasEndedEarly(*manifest)) run.state = RunState::kDone;
      const Result<Experiment> experiment = ExperimentOfText(manifest->experiment_text());
      if (experiment.ok()) {
        if (IsFinished(*manifest, *experiment)) run.state = RunState::kDone;
        if (run.settings.empty()) run.settings = SettingsOf(*experiment);
      }
    }
  }
  // Without a kernel lock the file alone tells: server 0 removes it at its end, unless it is
  // killed.
  if (OutputLock::Probe(folder).code() == StatusCode::kUnavailable ||
      OutputLock::ReadHolder(files, folder).unlocked) {
    run.state = RunState::kRunning;
  }
  return run;
}

bool IsDone(FileSystem& files, const std::string& folder, const Experiment& experiment) {
  const std::string checkpoints = JoinPath(folder, "checkpoints");
  const Result<std::string> latest = FindLatest(files, checkpoints);
  if (!latest.ok()) return false;
  const Result<checkpoint::Manifest> manifest = ReadManifest(files, checkpoints, *latest);
  return manifest.ok() && manifest->experiment_hash() == ExperimentHash(experiment) &&
         IsFinished(*manifest, experiment);
}

Status CheckMetric(std::span<const RunSummary> runs, const std::string& metric) {
  const auto has = [&](const RunSummary& run) {
    return std::ranges::count(run.metrics, metric) > 0;
  };
  const auto knows = [](const RunSummary& run) { return !run.metrics.empty(); };
  const auto known = std::ranges::find_if(runs, knows);
  if (metric.empty() || known == runs.end() || std::ranges::any_of(runs, has)) return OkStatus();
  return InvalidArgument("--metric " + metric + ": the metrics of " + known->name + " are " +
                         Join(known->metrics));
}

Result<std::vector<std::string>> FindRuns(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return NotFound("there is no folder " + folder);
  std::vector<std::string> runs;
  FindBelow(fs::path(folder), 0, &runs);
  return runs;
}

}  // namespace kumo
