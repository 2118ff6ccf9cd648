// kumo-data: makes and shows data sets.
#include <span>
#include <string>
#include <vector>

#include "common/base/process/exit_report.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "data/commands.h"

namespace kumo {
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
  if (command == "show") return RunShow(args.subspan(1));
  if (command == "survey") return RunSurvey(args.subspan(1));
  if (command == "describe") return RunDescribe(args.subspan(1));
  if (IsQuestion(command)) return RunDigits(args);
  return exit_reporter.Report(
      ExitCode::kUsage,
      (command.empty() ? "the command is missing" : "unknown command " + command) +
          "; use kumo-data digits --out DIR to draw a data set, or "
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
