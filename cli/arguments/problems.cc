#include "cli/arguments/problems.h"

#include <cstdio>

#include "common/base/terminal.h"

namespace kumo {

ExitCode CodeOf(const std::vector<Status>& problems) {
  ExitCode code = ExitCode::kDone;
  for (const Status& problem : problems) {
    code = ExitCodeOf(problem);
    if (code != ExitCode::kUnavailable) return code;
  }
  return code;
}

int SayProblems(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                const std::vector<Status>& problems) {
  if (problems.empty()) return 0;
  const std::string first = problems.front().message();
  if (problems.size() == 1) return exit_reporter.Report(CodeOf(problems), first);
  std::fflush(stdout);
  for (const Status& problem : problems) {
    const std::string line = "problem " + problem.message();
    std::fprintf(stderr, "%s\n", Folded(line, environment.error_columns, kMarkColumns).c_str());
  }
  return exit_reporter.Report(CodeOf(problems),
                              std::to_string(problems.size()) + " problems; the first: " + first);
}

std::vector<std::string> MessagesOf(const std::vector<Status>& problems) {
  std::vector<std::string> messages;
  for (const Status& problem : problems) messages.push_back(problem.message());
  return messages;
}

}  // namespace kumo
