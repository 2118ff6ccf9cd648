// kumo check: everything that can be known to be wrong before a start.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <utility>

#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/preflight.h"
#include "common/options/experiment_text.h"
#include "common/process/exit_code.h"

namespace kumo {
namespace {

// The number in front of the word "parameters" in what kumo-worker --check prints, or 0.
int64_t ParametersIn(const std::string& output) {
  std::istringstream words(output);
  std::string before, word;
  while (words >> word) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(before.data(), before.data() + before.size(), number);
    if (word.starts_with("parameters") && error == std::errc() && !before.empty() &&
        end == before.data() + before.size()) {
      return number;
    }
    before = std::exchange(word, "");
  }
  return 0;
}

// Network, data and device, which only a worker knows how to open. Returns the parameters.
int64_t CheckByWorker(const ExperimentArguments& args, Preflight* result) {
  ChildSpec spec;
  spec.command = args.Forward();
  spec.command.insert(spec.command.begin(), args.Binary("kumo-worker"));
  spec.command.push_back("--check");
  // The last words of the worker are this command's to say.
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  std::string output;
  const Result<int> code = RunChild(spec, &output);
  if (!code.ok()) {
    result->problems.push_back(code.status().message());
    return 0;
  }
  std::istringstream lines(output);
  std::string line, last;
  while (std::getline(lines, line)) {
    if (*code != 0 && !last.empty()) result->told.push_back(last);
    if (*code == 0) result->passed.push_back(line);
    last = line;
  }
  if (*code != 0) {
    result->problems.push_back(
        last.empty() ? "kumo-worker --check ended with exit code " + ExitCodeText(*code) : last);
  }
  return ParametersIn(output);
}

}  // namespace

int RunCheck(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words("kumo check", environment.termination_log);
  ExperimentArguments experiment(environment);
  CommandLine line(
      "kumo check",
      "Validates an experiment before anything starts: the file, the network, the data,\n"
      "the device, the servers' ports on this machine, the output folder and the free\n"
      "disk. Prints the resolved settings and everything that is wrong.");
  experiment.AddTo(&line);
  line.AddNote("Exit codes: 0 all is well, 64 wrong command line, 78 something is wrong.");
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  const LoadedExperiment loaded =
      LoadExperiment(experiment.file, experiment.sets, environment.data_directory);
  Preflight result;
  result.problems = loaded.problems;
  if (loaded.problems.empty()) {
    std::fputs(ResolvedTable(loaded.experiment, loaded.origins).c_str(), stdout);
    const int64_t parameters = CheckByWorker(experiment, &result);
    CheckAddresses(loaded.experiment, &result);
    PosixFileSystem files;
    CheckOutput(loaded.experiment, parameters, &files, &result);
  }
  for (const std::string& told : result.told) std::printf("      %s\n", told.c_str());
  for (const std::string& passed : result.passed) std::printf("ok    %s\n", passed.c_str());
  for (const std::string& note : loaded.notes) std::printf("note  %s\n", note.c_str());
  if (result.problems.empty()) {
    std::printf("all is well: kumo launch %s\n", experiment.file.c_str());
    return 0;
  }
  std::fflush(stdout);
  for (const std::string& problem : result.problems) {
    std::fprintf(stderr, "wrong %s\n", problem.c_str());
  }
  const size_t count = result.problems.size();
  return last_words.Say(
      ExitCode::kBadConfiguration,
      count == 1
          ? result.problems.front()
          : std::to_string(count) + " things are wrong, the first: " + result.problems.front());
}

}  // namespace kumo
