// kumo launch: starts and supervises a job.
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/launch/host_check.h"
#include "cli/launch/hosts.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/launch_report.h"
#include "cli/launch/launcher.h"
#include "cli/launch/preflight.h"
#include "cli/launch/server_addresses.h"
#include "cli/launch/worker_check.h"
#include "common/base/file.h"
#include "common/base/memory_budget.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"
#include "common/base/process/output_lock.h"
#include "common/base/text.h"
#include "common/job/process_identity.h"
#include "common/telemetry/console.h"

namespace kumo {
namespace {

CommandLine MakeCommandLine(LaunchArguments* args) {
  CommandLine line("kumo launch",
                   "Trains: starts the servers and workers of an experiment on this machine or on "
                   "--hosts, shows their\nprogress, supervises them, and ends when they end. "
                   "Ctrl-C or SIGTERM saves a checkpoint and\nstops the job; a second one kills "
                   "it. No process is ever left running.");
  args->job.AddTo(&line);
  line.AddOption(
      "max-restarts", "N", {.min = 0, .max = 1000000},
      "Restarts of a process that crashed, was preempted or lost its servers; they count "
      "anew when the job has saved a later checkpoint than at the failure before",
      &args->max_restarts);
  line.AddOption("grace", "SECONDS", {.min = 0, .max = 86400, .min_excluded = true},
                 "Time from the request to stop to SIGKILL", &args->grace_s, "checkpoint.grace_s");
  line.AddOption("hosts", "LIST", Allowed(),
                 "Train on these hosts, through ssh: a,b:2 places one worker on a before b gets a "
                 "second one; node[01-04] means four hosts, as in $SLURM_JOB_NODELIST. All hosts "
                 "need the same programs, files and working directory",
                 &args->host_list, "this machine");
  line.AddOption("host-file", "FILE", Allowed(), "Hosts in a file like mpirun's: b slots=2",
                 &args->host_file, "none");
  line.AddOption(
      "port", "PORT", {.min = 1, .max = 65000},
      "Port of each host's first server, or of the first server on this machine; the next "
      "servers have the following ports. Excludes cluster.servers",
      &args->port, "7700 with --hosts, otherwise any free ports");
  line.AddOption("ssh", "COMMAND", Allowed(), "With --hosts: ssh with options, separated by blanks",
                 &args->ssh);
  line.AddFlag("no-page", "Serve no status page, even if http.address is set", &args->no_page);
  line.AddFlag("quiet", "Print only problems and the last line", &args->quiet);
  line.AddFlag("json", "Print only problems and, at the end, one JSON object", &args->job.json);
  line.AddNote(
      "Exit codes: 0 done; otherwise the code of the first failure: 1 crashed, 64 wrong command\n"
      "line, 75 stopped or unavailable (the same command resumes from the last checkpoint),\n"
      "78 bad configuration.\n"
      "Logs: <output.directory>/logs; launch.<host>.log has the process ids.");
  return line;
}

// Reads --hosts or --host-file.
Status FindHosts(const CommandLine& line, LaunchArguments* args) {
  const bool listed = !args->host_list.empty(), in_file = !args->host_file.empty();
  if (listed && in_file) return InvalidArgument("--hosts and --host-file exclude each other");
  if (!listed && !in_file) return line.RefuseGiven({"ssh"}, "requires --hosts or --host-file");
  Result<std::vector<Host>> hosts =
      in_file ? ReadHostFile(args->host_file) : ParseHosts(args->host_list);
  KUMO_RETURN_IF_ERROR(hosts.status().WithContext(in_file ? "--host-file" : "--hosts"));
  args->hosts = std::move(*hosts);
  return OkStatus();
}

// Plans the job, with addresses for its servers if it has none and is on several hosts or --port is
// given.
PlannedJob Plan(const CliEnvironment& environment, LaunchArguments* args) {
  constexpr int kFirstPort = 7700;
  PlannedJob job = PlanJob(environment, args->job);
  if (!job.loaded.experiment.cluster.servers.empty()) {
    if (args->port == 0) return job;
    job.loaded.problems.push_back(
        "--port " + std::to_string(args->port) +
        ", but cluster.servers has the addresses; remove one of the two, for example with --set "
        "cluster.servers=");
    return job;
  }
  if (args->hosts.empty() && args->port == 0) return job;
  const std::vector<Host> here = {{"127.0.0.1"}};
  const auto servers = ServerAddresses(args->hosts.empty() ? here : args->hosts, job.servers,
                                       args->port > 0 ? args->port : kFirstPort);
  args->job.experiment.sets.push_back("cluster.servers=" + WriteValue(servers));
  return PlanJob(environment, args->job);
}

// Performs the fast checks before anything starts.
Preflight LookAhead(const LaunchArguments& args, const PlannedJob& job) {
  Preflight preflight = PreflightOf(job.loaded);
  if (!preflight.problems.empty()) return preflight;
  if (!args.hosts.empty()) {
    CheckHosts(args, &preflight);
    PosixFileSystem files;
    CheckInitialWeights(job.loaded.experiment, &files, &preflight);
    // This machine may lack the files that the hosts have: then the hosts tell what is wrong.
    Preflight here;
    MemoryByWorker(args.job, job, &here);
    preflight.notes.insert(preflight.notes.end(), here.notes.begin(), here.notes.end());
    return preflight;
  }
  const Status here = IsForOneMachine(job.loaded.experiment);
  if (!here.ok()) preflight.problems.push_back(here);
  PosixFileSystem files;
  CheckStart(args.job, job, /*size=*/{}, &files, &preflight);
  if (!preflight.problems.empty()) return preflight;
  const JobSize size = MemoryByWorker(args.job, job, &preflight);
  if (size.parameters > 0) {
    CheckDisk(job, size.parameters, &files, &preflight);
    CheckFinalModel(job.loaded.experiment, size.parameters, &files, &preflight);
  }
  if (const Result<MemoryRoom> room = RoomOnMachine(); room.ok()) {
    CheckMemory(job, size, *room, &preflight);
  }
  return preflight;
}

// Server 0 takes the lock for good; a second launch fails here before it touches any file.
Status LockOutput(const Experiment::Output& output) {
  const std::string& directory = output.directory;
  const Status made = PosixFileSystem().CreateDirectories(directory);
  KUMO_RETURN_IF_ERROR(made.WithContext("output.directory = " + directory));
  return OutputLock::Take(directory, {}, output.lock).status();
}

// Runs the job; returns an error only if the job could not be started.
Result<Outcome> Launch(const CliEnvironment& environment, const LaunchArguments& args,
                       const PlannedJob& job, const std::vector<std::string>& notes) {
  const Experiment& experiment = job.loaded.experiment;
  // Created before any process is started, so that no signal is missed.
  StopSignals signals({SIGCHLD});
  KUMO_RETURN_IF_ERROR(LockOutput(experiment.output));
  const std::string log_directory = JoinPath(experiment.output.directory, "logs");
  KUMO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Logging> logging,
      Logging::Start({"kumo", log_directory, "launch", "", /*warnings_to_stderr=*/false}));
  std::vector<std::string> servers = experiment.cluster.servers;
  const int picked = servers.empty() ? job.servers : 0;
  const bool shows = experiment.http.address.empty() && !args.no_page && args.hosts.empty();
  // Held until the job ends: a server that is restarted finds its port free.
  KUMO_ASSIGN_OR_RETURN(const std::vector<ReservedPort> ports,
                        ReservePorts(picked + (shows ? 1 : 0)));
  for (int i = 0; i < picked; ++i) servers.push_back("tcp://" + ports[i].host_and_port());
  const std::string http = shows ? ports.back().host_and_port() : "";
  SayStart(environment, args, job.loaded, notes, servers, log_directory);
  const RunningClock clock;
  KUMO_ASSIGN_OR_RETURN(LaunchPlan plan,
                        MakeLaunchPlan(args, experiment, servers, http, log_directory));
  // A paused reader of stderr must not stop the supervision.
  FdConsole errors(STDERR_FILENO);
  plan.tell = [&](const std::string& line) { SayBeside(environment, line, &errors); };
  Launcher launcher(std::move(plan), &clock, &signals);
  return launcher.Run();
}

}  // namespace

int RunLaunch(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo launch");
  LaunchArguments arguments(environment);
  CommandLine line = MakeCommandLine(&arguments);
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line,
                                  [&] { return FindHosts(line, &arguments); }))
    return *end;
  arguments.quiet |= arguments.job.json;
  arguments.run = HexDigits(ThisProcess("").incarnation);
  if (const Status passed = arguments.job.PassOn(); !passed.ok()) {
    return exit_reporter.Report(ExitCode::kUsage, passed.message());
  }
  if (arguments.no_page) arguments.job.experiment.sets.emplace_back("http.address=");
  const PlannedJob job = Plan(environment, &arguments);
  Preflight preflight = LookAhead(arguments, job);
  if (preflight.problems.empty()) {
    const Result<Outcome> outcome = Launch(environment, arguments, job, preflight.notes);
    if (outcome.ok()) {
      return SayEnd(environment, exit_reporter, arguments, job.loaded, *outcome, preflight.notes);
    }
    preflight.problems.push_back(outcome.status());
  }
  return SayRefusal(environment, exit_reporter, arguments, preflight.problems);
}

}  // namespace kumo
