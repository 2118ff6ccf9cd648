// kumo launch: from an experiment to a running job on this machine.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/launcher.h"
#include "common/file.h"
#include "common/options/experiment_text.h"
#include "common/options/option_table.h"
#include "common/process/exit_code.h"
#include "common/process/logging.h"
#include "common/process/output_lock.h"
#include "common/shard_map.h"
#include "common/transport/address.h"

namespace kumo {
namespace {

struct LaunchArguments {
  int workers = 0;  // 0: cluster.workers
  int servers = 0;  // 0: as many as cluster.servers names, or 1
  int max_restarts = 3;
  double grace_s = 0;                // 0: checkpoint.grace_s
  std::vector<std::string> devices;  // of the workers, in turn; empty: network.device
};

CommandLine MakeCommandLine(ExperimentArguments* experiment, LaunchArguments* args) {
  CommandLine line(
      "kumo launch",
      "Trains: starts the servers and workers of an experiment on this machine, shows their\n"
      "progress, supervises them, and ends when they end. Ctrl-C or SIGTERM saves a checkpoint "
      "and\n"
      "stops; a second one kills. Nothing is left running, whatever happens.");
  experiment->AddTo(&line);
  line.AddOption("workers", "N", {.min = 1, .max = 4096}, "Worker processes", &args->workers,
                 "cluster.workers");
  line.AddOption("servers", "M", {.min = 1, .max = ShardMap::kMaxServers}, "Server processes",
                 &args->servers, "as many as cluster.servers names, else 1");
  line.AddOption("devices", "LIST", OptionTable().Find("network.device")->allowed,
                 "What worker 0, 1, ... computes on, from the start again when the list ends",
                 &args->devices, "network.device");
  line.AddOption(
      "max-restarts", "N", {.min = 0, .max = 1000000},
      "How often one process that crashed, was preempted or lost its servers is started again",
      &args->max_restarts);
  line.AddOption("grace", "SECONDS", {.min = 0, .max = 86400, .min_excluded = true},
                 "From the request to stop to SIGKILL", &args->grace_s, "checkpoint.grace_s");
  line.AddNote(
      "Exit codes: 0 done; else the first cause's: 1 crashed, 64 wrong command line, 75 stopped "
      "or\n"
      "unavailable (the same command goes on from the last checkpoint), 78 bad configuration.\n"
      "Logs: <output.directory>/logs; the pids are in its launch.<host>.log.");
  return line;
}

// Free loopback ports. All are held until all are known, so they differ.
Result<std::vector<std::string>> PickServers(int servers) {
  std::vector<Listener> listeners;
  std::vector<std::string> addresses;
  Status status;
  for (int i = 0; i < servers && status.ok(); ++i) {
    Result<Listener> listener = ListenTcp({Address::Kind::kTcp, "127.0.0.1", 0, ""}, false);
    status = listener.status();
    if (!listener.ok()) break;
    addresses.push_back(listener->address.ToString());
    listeners.push_back(*listener);
  }
  for (const Listener& listener : listeners) close(listener.fd);
  if (!status.ok()) return status.WithContext("picking ports for the servers");
  return addresses;
}

// The servers' addresses: the experiment's, which must be this machine's, or picked ones.
Result<std::vector<std::string>> Servers(const Experiment& experiment, int asked) {
  const std::vector<std::string>& given = experiment.cluster.servers;
  if (given.empty()) return PickServers(asked == 0 ? 1 : asked);
  if (asked != 0 && asked != static_cast<int>(given.size())) {
    return FailedPrecondition("--servers " + std::to_string(asked) +
                              ", but cluster.servers names " + std::to_string(given.size()) +
                              "; leave one of them out, or --set cluster.servers=");
  }
  for (const std::string& text : given) {
    KUMO_ASSIGN_OR_RETURN(const Address address, ParseAddress(text));
    if (address.kind == Address::Kind::kTcp && !IsLoopbackHost(address.host)) {
      return FailedPrecondition("cluster.servers names " + text +
                                ", but kumo launch starts the processes of one machine: start "
                                "kumo-server and kumo-worker on each host by hand, or "
                                "--set cluster.servers= to train on this machine alone");
    }
  }
  return given;
}

LaunchPlan MakePlan(const ExperimentArguments& args, const Experiment& experiment,
                    const LaunchArguments& launch, const std::vector<std::string>& servers,
                    const std::string& log_directory) {
  LaunchPlan plan;
  plan.supervisor.servers = static_cast<int>(servers.size());
  plan.supervisor.workers = experiment.cluster.workers;
  plan.supervisor.max_restarts = launch.max_restarts;
  const double grace_s = launch.grace_s > 0 ? launch.grace_s : experiment.checkpoint.grace_s;
  plan.supervisor.grace_us = static_cast<TimeUs>(grace_s * kSecond);
  plan.log_directory = log_directory;
  std::vector<std::string> common = args.Forward();
  const auto set = [&](const std::string& key, const std::string& value) {
    common.push_back("--set");
    common.push_back(key + "=" + value);
  };
  set("cluster.servers", WriteValue(servers));
  set("cluster.workers", std::to_string(experiment.cluster.workers));
  const auto add = [&](ProcessId id, const char* binary, const char* option, std::string value) {
    std::vector<std::string>& command = plan.commands[id];
    command = {args.Binary(binary)};
    command.insert(command.end(), common.begin(), common.end());
    command.insert(command.end(), {option, std::move(value)});
  };
  for (int i = 0; i < plan.supervisor.servers; ++i) {
    add({ProcessId::Role::kServer, i}, "kumo-server", "--index", std::to_string(i));
  }
  // Whatever the run began with, it goes on from the newest checkpoint: its own, as soon as it has
  // one.
  plan.again[{ProcessId::Role::kServer, 0}] = {"--set", "checkpoint.resume=auto"};
  for (int i = 0; i < plan.supervisor.workers; ++i) {
    const ProcessId id{ProcessId::Role::kWorker, i};
    add(id, "kumo-worker", "--name", id.Name());
    if (launch.devices.empty()) continue;
    const std::string& device = launch.devices[i % launch.devices.size()];
    plan.commands[id].insert(plan.commands[id].end(), {"--set", "network.device=" + device});
  }
  return plan;
}

void PrintStart(const LoadedExperiment& loaded, const std::vector<std::string>& servers,
                const std::string& log_directory) {
  std::fputs(ResolvedTable(loaded.experiment, loaded.origins).c_str(), stdout);
  for (const std::string& note : loaded.notes) std::printf("note: %s\n", note.c_str());
  for (size_t i = 0; i < servers.size(); ++i) {
    std::printf("server %zu at %s%s\n", i, servers[i].c_str(),
                i == 0 ? ("   (kumo status " + servers[i] + ")").c_str() : "");
  }
  std::printf("workers %d, logs in %s\n", loaded.experiment.cluster.workers, log_directory.c_str());
  std::fflush(stdout);
}

Status CheckBinaries(const ExperimentArguments& args) {
  for (const char* name : {"kumo-server", "kumo-worker"}) {
    const std::string path = args.Binary(name);
    if (access(path.c_str(), X_OK) != 0) {
      return FailedPrecondition(path +
                                " is not there or cannot be executed; build it, or say "
                                "--bin-dir DIR");
    }
  }
  return OkStatus();
}

// Runs the job; an error is one that kept it from starting.
Result<Outcome> Launch(const ExperimentArguments& args, const LaunchArguments& launch,
                       LoadedExperiment loaded) {
  if (launch.workers > 0) {
    loaded.experiment.cluster.workers = launch.workers;
    loaded.origins["cluster.workers"] = "--workers";
  }
  KUMO_RETURN_IF_ERROR(CheckBinaries(args));
  // Before any process is started, so that no signal is missed.
  StopSignals signals({SIGCHLD});
  {
    // Server 0 takes the lock for good; a second launch is told before it touches any file.
    const std::string& directory = loaded.experiment.output.directory;
    const Status made = PosixFileSystem().CreateDirectories(directory);
    KUMO_RETURN_IF_ERROR(made.WithContext("output.directory = " + directory));
    KUMO_RETURN_IF_ERROR(OutputLock::Take(directory).status());
  }
  const std::string log_directory = loaded.experiment.output.directory + "/logs";
  KUMO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Logging> logging,
      Logging::Start({"kumo", log_directory, "launch", "", /*warnings_to_stderr=*/true}));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> servers,
                        Servers(loaded.experiment, launch.servers));
  if (loaded.experiment.cluster.servers.empty()) {
    loaded.experiment.cluster.servers = servers;
    loaded.origins["cluster.servers"] = "free ports";
  }
  PrintStart(loaded, servers, log_directory);
  const SteadyClock clock;
  Launcher launcher(MakePlan(args, loaded.experiment, launch, servers, log_directory), &clock,
                    &signals);
  return launcher.Run();
}

}  // namespace

int RunLaunch(const CliEnvironment& environment, std::span<const std::string> args) {
  const LastWords last_words("kumo launch", environment.termination_log);
  ExperimentArguments experiment(environment);
  LaunchArguments launch;
  CommandLine line = MakeCommandLine(&experiment, &launch);
  const Status usage = line.Parse(args);
  if (!usage.ok()) return last_words.Say(ExitCode::kUsage, usage.message());
  if (line.help_asked()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  LoadedExperiment loaded =
      LoadExperiment(experiment.file, experiment.sets, environment.data_directory);
  if (!loaded.problems.empty()) {
    for (size_t i = 1; i < loaded.problems.size(); ++i) {
      std::fprintf(stderr, "%s\n", loaded.problems[i].c_str());
    }
    return last_words.Say(ExitCode::kBadConfiguration, loaded.problems.front());
  }
  const Result<Outcome> outcome = Launch(experiment, launch, std::move(loaded));
  if (!outcome.ok()) return last_words.Say(outcome.status());
  for (const std::string& warning : outcome->warnings) {
    std::fprintf(stderr, "kumo launch: %s\n", warning.c_str());
  }
  return last_words.Say(static_cast<ExitCode>(outcome->code), outcome->words);
}

}  // namespace kumo
