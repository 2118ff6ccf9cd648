// kumo-data: makes and shows data sets.
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "data/program/commands.h"

namespace kumo {

int RunCommand(const char* program, std::span<const std::string> args, CommandLine* line,
               const std::function<Status()>& command) {
  const ExitReporter exit_reporter(program, ExitReporter::DefaultTerminationLog());
  const Status usage = line->Parse(args);
  if (!usage.ok()) return exit_reporter.Report(ExitCode::kUsage, usage.message());
  if (line->help_asked()) {
    std::fputs(line->Help().c_str(), stdout);
    return static_cast<int>(ExitCode::kDone);
  }
  const std::unique_ptr<Logging> logging = Logging::ForCommand("kumo-data");
  const Status status = command();
  return status.ok() ? static_cast<int>(ExitCode::kDone) : exit_reporter.Report(status);
}

int RunForProgram(const char* program, std::span<const std::string> args, CommandLine* line,
                  const std::function<Result<JsonFields>()>& report_of) {
  ExitCode code = ExitCode::kDone;
  const int usage = RunCommand(program, args, line, [&] {
    const Result<JsonFields> report = report_of();
    const JsonFields fields =
        report.ok() ? *report : JsonFields().Add("error", report.status().message());
    std::printf("%s\n", fields.object().c_str());
    if (!report.ok()) code = ExitCodeOf(report.status());
    return OkStatus();
  });
  return usage != static_cast<int>(ExitCode::kDone) ? usage : static_cast<int>(code);
}

namespace {

// Options about the program itself are handled by the command without another name.
bool IsQuestion(const std::string& word) {
  return word.starts_with("--help") || word == "-h" || word == "--version";
}

int Run(std::span<const std::string> args) {
  const ExitReporter exit_reporter("kumo-data", ExitReporter::DefaultTerminationLog());
  EndWhenOutOfResources(exit_reporter);
  const std::string command = args.empty() ? "" : args[0];
  if (command == "digits") return RunDigits(args.subspan(1));
  if (command == "scenes") return RunScenes(args.subspan(1));
  if (command == "show") return RunShow(args.subspan(1));
  if (command == "survey") return RunSurvey(args.subspan(1));
  if (command == "describe") return RunDescribe(args.subspan(1));
  if (IsQuestion(command)) {
    const int asked = RunDigits(args);
    // Words for completion come from all commands with a page of their own.
    return asked == 0 && command == "--help=words" ? RunScenes(args) : asked;
  }
  return exit_reporter.Report(
      ExitCode::kUsage,
      (command.empty() ? "the command is missing" : "unknown command " + command) +
          "; use kumo-data digits --out DIR or kumo-data scenes --out DIR to draw a data set, or "
          "kumo-data show FILE to show one (kumo-data --help, kumo data --help)");
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  kumo::RaiseSoftLimits();
  const std::vector<std::string> args(argv + 1, argv + argc);
  return kumo::Run(args);
}
