#include "cli/launch/launch_report.h"

#include <cstdio>
#include <utility>

#include "cli/job_result.h"
#include "cli/problems.h"
#include "cli/settings_json.h"
#include "common/base/process/exit_report.h"
#include "common/base/terminal.h"
#include "common/settings/option_pages.h"

namespace kumo {
namespace {

// "Back to the line's start; clear it", where a progress bar may stand.
constexpr char kOverBar[] = "\r\033[K";
constexpr int kHanging = 6;  // as wide as "note  "

// What was saved, where server 0 did not come to say it.
std::string HowToGoOn(const std::string& checkpoint, const Experiment& experiment) {
  if (checkpoint.empty()) return "; nothing is saved: the same command starts anew";
  const ResumeFrom::Kind resume = experiment.checkpoint.resume.kind;
  if (resume != ResumeFrom::Kind::kAuto && resume != ResumeFrom::Kind::kMust)
    return "; the last checkpoint is " + checkpoint;
  return "; the same command goes on from " + checkpoint;
}

void PrintJson(const Outcome& outcome, const std::string& output, const JobResult& result) {
  const char* word = outcome.code == 0 ? "done" : outcome.stopped ? "stopped" : "failed";
  JsonFields report;
  report.Add("outcome", word).Add("exit_code", outcome.code).Add("reason", outcome.words);
  report.Add("warnings", ToJsonArray(outcome.warnings)).Add("output", output);
  const RawJson null{"null"};
  report.Add("checkpoint", result.checkpoint.empty() ? null : RawJson{ToJson(result.checkpoint)});
  report.Add("epoch", result.figures.empty() ? null : RawJson{result.figures});
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

void SayBeside(const CliEnvironment& environment, const std::string& line) {
  const std::string text = Folded("kumo launch: " + line, environment.error_columns, kHanging);
  std::fprintf(stderr, "%s%s\n", environment.error_columns > 0 ? kOverBar : "", text.c_str());
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
           const LaunchArguments& args, const Experiment& experiment, Outcome outcome) {
  const std::string& output_directory = experiment.output.directory;
  PosixFileSystem files;
  const JobResult result = ReadJobResult(files, output_directory);
  // A crash, a machine that is gone: nothing that a person must mend first.
  const bool failed = outcome.code == static_cast<int>(ExitCode::kCrashed) ||
                      outcome.code == static_cast<int>(ExitCode::kUnavailable);
  const bool says =
      outcome.stopped ? !outcome.explained : failed && !outcome.done && !result.checkpoint.empty();
  if (says) outcome.words += HowToGoOn(result.checkpoint, experiment);
  if (args.job.json) {
    PrintJson(outcome, output_directory, result);
  } else if (args.quiet && outcome.code == 0) {
    Print(environment, DoneLine(result));
  }
  if (outcome.code != 0 && environment.error_columns > 0) std::fputs(kOverBar, stderr);
  return exit_reporter.Report(static_cast<ExitCode>(outcome.code), outcome.words);
}

}  // namespace kumo
