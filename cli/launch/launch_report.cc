#include "cli/launch/launch_report.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "cli/arguments/problems.h"
#include "cli/launch/preflight.h"
#include "common/base/process/exit_report.h"
#include "common/base/terminal.h"
#include "common/checkpoint/checkpoint.h"
#include "common/job/metric_list.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_pages.h"
#include "common/settings/settings_json.h"
#include "common/telemetry/figures.h"

namespace kumo {

namespace {

// Returns to the start of the line and clears it, because a progress bar may be there.
constexpr char kOverBar[] = "\r\033[K";
constexpr int kHanging = 6;  // width of "note  "

// The saved state, if server 0 could not report it.
std::string HowToGoOn(const std::string& checkpoint, const Experiment& experiment) {
  if (checkpoint.empty()) return "; nothing is saved: the same command starts anew";
  const ResumeFrom::Kind resume = experiment.checkpoint.resume.kind;
  if (resume != ResumeFrom::Kind::kAuto && resume != ResumeFrom::Kind::kMust) {
    return "; the last checkpoint is " + checkpoint;
  }
  return "; the same command resumes from " + checkpoint;
}

void PrintJson(const Outcome& outcome, const LoadedExperiment& loaded, const JobResult& result,
               const std::vector<std::string>& notes) {
  const char* word = outcome.code == 0 ? "done" : outcome.stopped ? "stopped" : "failed";
  JsonFields report;
  report.Add("outcome", word).Add("exit_code", outcome.code).Add("reason", outcome.words);
  report.Add("notes", ToJsonArray(notes));
  report.Add("warnings", ToJsonArray(outcome.warnings))
      .Add("output", loaded.experiment.output.directory);
  const RawJson null{"null"};
  report.Add("checkpoint", result.checkpoint.empty() ? null : RawJson{ToJson(result.checkpoint)});
  const std::string& epoch = result.log.last_epoch;
  report.Add("epoch", epoch.empty() ? null : RawJson{epoch});
  JsonFields figures;
  for (const auto& [name, value] : result.log.newest) figures.Add(name, value);
  report.Add("figures", figures);
  report.Add("experiment_hash", HashText(loaded.experiment));
  report.Add("settings", SettingsJson(loaded.experiment, loaded.origins));
  std::printf("%s\n", report.object().c_str());
}

std::string DoneLine(const JobResult& result) {
  std::string line = "done";
  if (!result.description.empty()) line += ": " + result.description;
  if (!result.checkpoint.empty()) line += "; model " + result.checkpoint;
  return line + "\n";
}

}  // namespace

void SayStart(const CliEnvironment& environment, const LaunchArguments& args,
              const LoadedExperiment& loaded, const std::vector<std::string>& notes,
              const std::vector<std::string>& servers, const std::string& log_directory) {
  if (args.quiet) return;
  Print(environment,
        ResolvedTable(loaded.experiment, loaded.origins, {args.job.verbose, environment.columns}));
  for (const std::string& note : notes) Print(environment, "note  " + note + "\n", kHanging);
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string status = i == 0 ? "   (kumo status " + servers[i] + ")" : "";
    Print(environment, "server " + std::to_string(i) + " at " + servers[i] + status + "\n",
          kHanging);
  }
  Print(environment, "workers " + std::to_string(loaded.experiment.cluster.workers) + ", logs in " +
                         log_directory + "\n");
  std::fflush(stdout);
}

void SayBeside(const CliEnvironment& environment, const std::string& line, Console* errors) {
  const std::string text = Folded("kumo launch: " + line, environment.error_columns, kHanging);
  errors->Write((environment.error_columns > 0 ? kOverBar : "") + text + "\n");
}

int SayRefusal(const CliEnvironment& environment, const ExitReporter& exit_reporter,
               const LaunchArguments& args, const std::vector<Status>& problems) {
  if (args.job.json) {
    JsonFields report;
    report.Add("outcome", "refused").Add("exit_code", static_cast<int>(CodeOf(problems)));
    report.Add("reason", problems.front().message());
    report.Add("problems", ToJsonArray(MessagesOf(problems)));
    std::printf("%s\n", report.object().c_str());
  }
  return SayProblems(environment, exit_reporter, problems);
}

int SayEnd(const CliEnvironment& environment, const ExitReporter& exit_reporter,
           const LaunchArguments& args, const LoadedExperiment& loaded, Outcome outcome,
           const std::vector<std::string>& notes) {
  const Experiment& experiment = loaded.experiment;
  PosixFileSystem files;
  const JobResult result = ReadJobResult(files, experiment.output.directory);
  // A crash or a lost machine: nothing that a person must mend first.
  const bool failed = outcome.code == static_cast<int>(ExitCode::kCrashed) ||
                      outcome.code == static_cast<int>(ExitCode::kUnavailable);
  const bool says =
      outcome.stopped ? !outcome.explained : failed && !outcome.done && !result.checkpoint.empty();
  if (says) outcome.words += HowToGoOn(result.checkpoint, experiment);
  if (args.job.json) {
    PrintJson(outcome, loaded, result, notes);
  } else if (args.quiet && outcome.code == 0) {
    Print(environment, DoneLine(result));
  }
  if (outcome.code != 0 && environment.error_columns > 0) std::fputs(kOverBar, stderr);
  return exit_reporter.Report(static_cast<ExitCode>(outcome.code), outcome.words);
}

namespace {

std::string Described(const RunLog::Figures& figures) {
  const auto number = [&](const Figure& figure) -> std::optional<double> {
    const auto found = figures.find(std::string(figure.name));
    return found == figures.end() ? std::nullopt : std::optional(found->second);
  };
  std::string text = "epoch ";
  if (const auto epoch = number(figure::kEpoch)) {
    text += std::to_string(static_cast<int64_t>(*epoch));
  }
  const std::pair<const Figure&, const char*> told[] = {
      {figure::kValidationAccuracy, ", validation accuracy "},
      {figure::kAccuracy, ", training accuracy "},
      {figure::kValidationLoss, ", validation loss "},  // for networks without accuracy
      {figure::kLoss, ", training loss "}};
  for (const auto& [figure, words] : told) {
    if (const auto value = number(figure)) return text + words + FigureText(*value);
  }
  return text;
}

}  // namespace

JobResult ReadJobResult(FileSystem& files, const std::string& output_directory) {
  JobResult result;
  const std::string folder = JoinPath(output_directory, "checkpoints");
  const Result<std::string> latest = FindLatest(files, folder);
  if (latest.ok()) result.checkpoint = JoinPath(folder, *latest);
  Result<RunLog> log = ReadRunLog(files, JoinPath(output_directory, "log.jsonl"));
  if (!log.ok()) return result;
  if (!log->epochs.empty()) result.description = Described(log->epochs.back());
  result.log = std::move(*log);
  return result;
}

}  // namespace kumo
