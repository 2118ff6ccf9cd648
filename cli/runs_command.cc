// kumo runs: lists the runs in a folder and the settings in which they differ.
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/command.h"
#include "cli/runs/run_summary.h"
#include "cli/runs/run_table.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"

namespace kumo {
namespace {

// "b" for "a/b/" and, in the folder b, for ".".
std::string NameOfFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = NormalPath(std::filesystem::absolute(folder, error).string());
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

}  // namespace

int RunRuns(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo runs");
  std::string folder = "out";
  std::string metric;
  bool by_best = false, json = false;
  CommandLine line("kumo runs",
                   "Lists the runs in a folder: the settings in which they differ, their best "
                   "figures, time and\nsize. The figures come from log.jsonl.");
  line.AddPositional("FOLDER",
                     "Folder with output folders of jobs, up to three levels deep (default: out)",
                     /*required=*/false, &folder);
  line.AddOption("metric", "NAME", Allowed(), "Metric of the best epoch: loss, accuracy, ...",
                 &metric, "the first that is better if larger, or else the first");
  line.AddFlag("best", "Sort by the best figure instead of the name", &by_best);
  line.AddFlag("json", "Print a JSON array", &json);
  line.AddNote("Exit codes: 0 done, 64 wrong command line, 78 no such folder.");
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  const Result<std::vector<std::string>> folders = FindRuns(folder);
  if (!folders.ok()) return exit_reporter.Report(folders.status());
  PosixFileSystem files;
  std::vector<RunSummary> runs;
  for (const std::string& one : *folders) {
    RunSummary& run = runs.emplace_back(SummariseRun(files, one, metric));
    run.name = std::filesystem::path(one).lexically_relative(folder).string();
    if (run.name == ".") run.name = NameOfFolder(one);
  }
  if (const Status known = CheckMetric(runs, metric); !known.ok()) {
    return exit_reporter.Report(ExitCode::kUsage, known.message());
  }
  if (by_best) SortByBest(&runs);
  if (json) {
    std::printf("%s\n", RunsJson(runs).array().c_str());
  } else if (runs.empty()) {
    Print(environment, "no runs in " + folder + "\n");
  } else {
    std::fputs(RunTable(runs, environment.columns).c_str(), stdout);
  }
  return 0;
}

}  // namespace kumo
