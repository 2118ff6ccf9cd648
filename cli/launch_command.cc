// kumo launch: from an experiment to a running job on this machine.
#include <csignal>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/launch_plan.h"
#include "cli/launch_report.h"
#include "cli/launcher.h"
#include "cli/preflight.h"
#include "cli/problems.h"
#include "cli/server_addresses.h"
#include "cli/worker_check.h"
#include "common/base/file.h"
#include "common/base/machine_memory.h"
#include "common/base/process/exit_code.h"
#include "common/base/process/logging.h"
#include "common/base/process/output_lock.h"

namespace kumo {
namespace {

CommandLine MakeCommandLine(LaunchArguments* args) {
  CommandLine line(
      "kumo launch",
      "Trains: starts the servers and workers of an experiment on this machine, shows their\n"
      "progress, supervises them, and ends when they end. Ctrl-C or SIGTERM saves a checkpoint "
      "and\n"
      "stops; a second one kills. Nothing is left running, whatever happens.");
  args->job.AddTo(&line);
  line.AddOption(
      "max-restarts", "N", {.min = 0, .max = 1000000},
      "How often one process that crashed, was preempted or lost its servers is started again",
      &args->max_restarts);
  line.AddOption("grace", "SECONDS", {.min = 0, .max = 86400, .min_excluded = true},
                 "From the request to stop to SIGKILL", &args->grace_s, "checkpoint.grace_s");
  line.AddFlag("quiet", "Print only problems and the last line", &args->quiet);
  line.AddFlag("json", "Print only problems and, at the end, one JSON object", &args->job.json);
  line.AddNote(
      "Exit codes: 0 done; else the first cause's: 1 crashed, 64 wrong command line, 75 stopped "
      "or\n"
      "unavailable (the same command goes on from the last checkpoint), 78 bad configuration.\n"
      "Logs: <output.directory>/logs; the pids are in its launch.<host>.log.");
  return line;
}

// What can be seen quickly before anything starts.
Preflight LookAhead(const LaunchArguments& args, const PlannedJob& job) {
  Preflight preflight = PreflightOf(job.loaded);
  if (!preflight.problems.empty()) return preflight;
  const Status here = IsForOneMachine(job.loaded.experiment);
  if (!here.ok()) preflight.problems.push_back(here);
  PosixFileSystem files;
  CheckStart(args.job, job, /*size=*/{}, &files, &preflight);
  const Result<MemoryRoom> room = RoomOnMachine();
  if (room.ok() && preflight.problems.empty()) {
    CheckMemory(job, MemoryByWorker(args.job, job), *room, &preflight);
  }
  return preflight;
}

// Server 0 takes the lock for good; a second launch is told before it touches any file.
Status LockOutput(const std::string& directory) {
  const Status made = PosixFileSystem().CreateDirectories(directory);
  KUMO_RETURN_IF_ERROR(made.WithContext("output.directory = " + directory));
  return OutputLock::Take(directory).status();
}

// Runs the job; an error is one that kept it from starting.
Result<Outcome> Launch(const CliEnvironment& environment, const LaunchArguments& args,
                       const PlannedJob& job, const std::vector<std::string>& notes) {
  const Experiment& experiment = job.loaded.experiment;
  // Before any process is started, so that no signal is missed.
  StopSignals signals({SIGCHLD});
  KUMO_RETURN_IF_ERROR(LockOutput(experiment.output.directory));
  const std::string log_directory = JoinPath(experiment.output.directory, "logs");
  KUMO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Logging> logging,
      Logging::Start({"kumo", log_directory, "launch", "", /*warnings_to_stderr=*/false}));
  std::vector<std::string> servers = experiment.cluster.servers;
  if (servers.empty()) {
    KUMO_ASSIGN_OR_RETURN(servers, PickServers(job.servers));
  }
  SayStart(environment, args, job.loaded, notes, servers, log_directory);
  const SteadyClock clock;
  LaunchPlan plan = MakeLaunchPlan(args, experiment, servers, log_directory);
  plan.tell = [&](const std::string& line) { SayBeside(environment, line); };
  Launcher launcher(std::move(plan), &clock, &signals);
  return launcher.Run();
}

}  // namespace

int RunLaunch(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words = environment.LastWordsOf("kumo launch");
  LaunchArguments arguments(environment);
  CommandLine line = MakeCommandLine(&arguments);
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    Print(environment, line.Help());
    return 0;
  }
  arguments.quiet |= arguments.job.json;
  arguments.job.PassOn();
  const PlannedJob job = PlanJob(environment, arguments.job);
  Preflight preflight = LookAhead(arguments, job);
  if (preflight.problems.empty()) {
    const Result<Outcome> outcome = Launch(environment, arguments, job, preflight.notes);
    if (outcome.ok()) {
      const std::string& output = job.loaded.experiment.output.directory;
      return SayEnd(environment, last_words, arguments, output, *outcome);
    }
    preflight.problems.push_back(outcome.status());
  }
  return SayRefusal(environment, last_words, arguments, preflight.problems);
}

}  // namespace kumo
