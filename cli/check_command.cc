// kumo check: reports every fault that can be found before a start.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "cli/arguments/problems.h"
#include "cli/command.h"
#include "cli/launch/data_check.h"
#include "cli/launch/job_arguments.h"
#include "cli/launch/preflight.h"
#include "cli/launch/server_addresses.h"
#include "cli/launch/worker_check.h"
#include "common/base/memory_budget.h"
#include "common/base/process/exit_report.h"
#include "common/base/shell_word.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_pages.h"
#include "common/settings/settings_json.h"

namespace kumo {
namespace {

struct CheckArguments {
  JobArguments job;
  bool data = false;  // read all samples
};

CommandLine MakeCommandLine(CheckArguments* args) {
  CommandLine line("kumo check",
                   "Checks everything that kumo launch needs, without starting anything: the file, "
                   "the network,\nthe data, the devices, the programs, the servers' ports, the "
                   "output folder, disk, memory and the\nlimits of the system. Prints the settings "
                   "and all problems.");
  args->job.AddTo(&line);
  line.AddFlag("data", "Also read all samples, and list every damaged image at once", &args->data);
  line.AddFlag("json", "Print one JSON object", &args->job.json);
  line.AddNote(
      "Exit codes: 0 no problems, 64 wrong command line, 75 temporary failure: a port is in use or "
      "a disk\nis full, 78 other problems.");
  return line;
}

// Performs the checks of kumo launch and those that only a worker can do. Damaged samples, which
// end a worker too, are reported once.
void CheckJob(const JobArguments& args, const PlannedJob& job, Preflight* result) {
  JobSize size;
  if (result->problems.empty()) size = CheckByWorker(args, job, result);
  PosixFileSystem files;
  CheckStart(args, job, size, &files, result);
  const Status one_machine = IsForOneMachine(job.loaded.experiment);
  if (!one_machine.ok()) {
    result->notes.push_back(one_machine.message());
    return;
  }
  const Result<MemoryRoom> room = RoomOnMachine();
  if (room.ok()) CheckMemory(job, size, *room, result);
}

// args: the arguments of this command, which kumo launch takes as well.
void PrintReport(const CliEnvironment& environment, std::span<const std::string> args,
                 const PlannedJob& job, const std::vector<std::string>& damaged,
                 const Preflight& result) {
  const auto print = [&](const char* mark, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      // A row of a table belongs to the line above, and fits.
      const bool is_row = line.starts_with("  ");
      Print(environment, (is_row ? line : mark + line) + "\n", kMarkColumns);
    }
  };
  print("damaged ", damaged);
  print("        ", result.told);
  print("ok      ", result.passed);
  print("note    ", result.notes);
  if (!result.problems.empty()) return;
  if (!IsForOneMachine(job.loaded.experiment).ok()) {
    return Print(environment, "no problems: start kumo-server and kumo-worker on each host\n");
  }
  std::string launch = "no problems: kumo launch";
  for (const std::string& word : args) {
    if (word != "--data") launch += " " + ShellWord(word);
  }
  Print(environment, launch + "\n", kMarkColumns);
}

// damaged: null without --data.
void PrintJson(const PlannedJob& job, const std::vector<std::string>* damaged,
               const Preflight& result) {
  JsonFields report;
  report.Add("outcome", result.problems.empty() ? "ok" : "wrong");
  report.Add("exit_code", static_cast<int>(CodeOf(result.problems)));
  report.Add("problems", ToJsonArray(MessagesOf(result.problems)));
  report.Add("notes", ToJsonArray(result.notes));
  report.Add("passed", ToJsonArray(result.passed));
  if (damaged != nullptr) report.Add("damaged", ToJsonArray(*damaged));
  if (job.loaded.problems.empty()) {
    report.Add("experiment_hash", HashText(job.loaded.experiment));
    report.Add("settings", SettingsJson(job.loaded.experiment, job.loaded.origins));
  }
  std::printf("%s\n", report.object().c_str());
}

}  // namespace

int RunCheck(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo check");
  CheckArguments check{JobArguments(environment)};
  JobArguments& arguments = check.job;
  CommandLine line = MakeCommandLine(&check);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  if (const Status passed = arguments.PassOn(); !passed.ok()) {
    return exit_reporter.Report(ExitCode::kUsage, passed.message());
  }
  const PlannedJob job = PlanJob(environment, arguments);
  Preflight result = PreflightOf(job.loaded);
  std::vector<std::string> damaged;
  if (result.problems.empty()) {
    if (!arguments.json) {
      Print(environment, ResolvedTable(job.loaded.experiment, job.loaded.origins,
                                       {arguments.verbose, environment.columns}));
      std::fflush(stdout);  // before the bar of --data
    }
    if (check.data) damaged = CheckData(arguments, job, &result);
    CheckJob(arguments, job, &result);
  }
  if (arguments.json) {
    PrintJson(job, check.data ? &damaged : nullptr, result);
  } else {
    PrintReport(environment, args, job, damaged, result);
  }
  return SayProblems(environment, exit_reporter, result.problems);
}

}  // namespace kumo
