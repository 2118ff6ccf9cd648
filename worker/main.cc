// kumo-worker: computes partitions of a job on one device.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <glog/logging.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/installation.h"
#include "common/base/instruction_set.h"
#include "common/base/process/cpu_affinity.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "common/base/process/signals.h"
#include "common/base/terminal.h"
#include "common/base/version.h"
#include "common/http/process_view.h"
#include "common/job/job_identity.h"
#include "common/job/process_need.h"
#include "common/settings/command_line.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/parser.h"
#include "common/settings/worker_program.h"
#include "models/devices/devices.h"
#include "worker/inference/evaluation.h"
#include "worker/inference/model_task.h"
#include "worker/job_check.h"
#include "worker/training/job_memory.h"
#include "worker/training/job_speed.h"
#include "worker/training/trainer.h"
#include "worker/worker_service.h"

namespace kumo {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> sets;
  std::string name;
  std::string evaluate;
  bool classes = false;
  bool check = false;
  bool memory = false;
  double speed_s = 0;  // 0: the speed is not measured
  int servers = 0;
  int columns = 0;
  bool json = false;
  std::string http;
  ModelTask use;
};

Result<JobMemory> MemoryOf(const Arguments& arguments, const Experiment& experiment) {
  const size_t named = experiment.cluster.servers.size();
  return MemoryOfJob(
      experiment, arguments.servers > 0 ? arguments.servers : std::max(1, static_cast<int>(named)));
}

// view: the status page's data; may be null.
Status Train(Trainer* trainer, const Experiment& experiment, const std::string& name,
             const Clock* clock, StopSignals* signals, ProcessView* view) {
  if (experiment.cluster.servers.empty()) {
    return FailedPrecondition(
        "cluster.servers is not set; list the servers' addresses in the experiment file or with "
        "--set cluster.servers=tcp://HOST:PORT,...");
  }
  SessionSettings settings;
  settings.experiment = experiment;
  settings.identity = IdentityOf(experiment);
  settings.spec = trainer->spec();
  settings.name = name;
  settings.device = experiment.network.device.ToString();
  if (experiment.network.device.is_cpu()) {
    KUMO_ASSIGN_OR_RETURN(settings.isa, LevelFor(experiment.network.instruction_set));
  }
  settings.process = ThisProcess(HostName());
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<WorkerService> service,
                        WorkerService::Make(settings, clock, trainer, signals, view));
  return service->Run();
}

// Pins this process to the CPU cores near its GPU. Threads inherit the affinity, so it is called
// before any is started. Training does not depend on it: errors are only logged.
void PinNearDevice(const Device& device) {
  const Result<std::optional<std::string>> bus = PciBusIdOf(device);
  if (!bus.ok() || !bus->has_value()) return;  // no GPU, or an error that Trainer::Make reports
  const Result<std::string> said = PinNear(device.ToString(), **bus);
  const std::string where = device.ToString() + " at " + **bus + ": not pinned: ";
  if (said.ok()) {
    LOG(INFO) << *said;
  } else if (said.status().code() == StatusCode::kNotFound) {
    LOG(INFO) << where << said.status().message();
  } else {
    LOG(WARNING) << where << said.status().message();
  }
}

// Measures and prints the speed of the job's arithmetic.
Status PrintSpeed(const Arguments& arguments, const Experiment& experiment, const char* program) {
  const std::unique_ptr<Logging> logging = Logging::ForCommand(program);
  PinNearDevice(experiment.network.device);
  const SteadyClock clock;
  KUMO_ASSIGN_OR_RETURN(const JobMemory memory, MemoryOf(arguments, experiment));
  KUMO_RETURN_IF_ERROR(memory.CheckWorkerFits());
  KUMO_ASSIGN_OR_RETURN(const JobSpeed speed,
                        MeasureJobSpeed(experiment, arguments.speed_s, &clock));
  std::printf("%s\n", speed.Json().object().c_str());
  return OkStatus();
}

Status Run(const Arguments& arguments, const Experiment& experiment, const char* program) {
  if (arguments.speed_s > 0) return PrintSpeed(arguments, experiment, program);
  if (!arguments.check && !arguments.memory) {
    KUMO_RETURN_IF_ERROR(
        CheckLimits(NeedOfWorker(experiment, static_cast<int>(experiment.cluster.servers.size()))));
  }
  RunningClock clock;
  if (arguments.check || arguments.memory) {
    const std::unique_ptr<Logging> logging = Logging::ForCommand(program);
    const int columns = arguments.columns > 0 ? arguments.columns : TerminalColumns(STDOUT_FILENO);
    KUMO_ASSIGN_OR_RETURN(const JobMemory memory, MemoryOf(arguments, experiment));
    for (const std::string& note : memory.notes) LOG(WARNING) << note;
    if (arguments.memory) {
      PrintMemory(memory, columns, arguments.json);
      return OkStatus();
    }
    return CheckJob(memory, experiment, columns, arguments.json, &clock);
  }
  // Only training reads them; a check is ended by them.
  StopSignals signals;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Logging> logging,
                        Logging::Start(LogOfWorker(program, experiment, arguments.name)));
  // A program of worker.command may have become this one.
  RemoveIdleMark(ValueOf(VariablesOf(environ), kIdleMark));
  PinNearDevice(experiment.network.device);
  ProcessTitle title{"kumo-worker", arguments.name, std::string(kVersion), std::string(kCommit)};
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ShownProcess> shown,
                        ShownProcess::Start(arguments.http, "--http", std::move(title)));
  KUMO_ASSIGN_OR_RETURN(const JobMemory memory, MemoryOf(arguments, experiment));
  for (const std::string& note : memory.notes) LOG(INFO) << note;
  KUMO_RETURN_IF_ERROR(memory.CheckWorkerFits());
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::Make(experiment, &clock));
  return Train(trainer.get(), experiment, arguments.name, &clock, &signals,
               shown ? shown->view() : nullptr);
}

// Becomes the program of worker.command, which takes this worker's place in the job. Returns only
// an error.
Status BecomeProgram(const Arguments& arguments, const Experiment& experiment) {
  const Variables variables = VariablesOf(environ);
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> words, WorkerProgram(experiment, variables));
  const Device& device = experiment.network.device;
  const ProgramPlace place = {.share = FindInstallation().share,
                              .file = arguments.file,
                              .sets = arguments.sets,
                              .name = arguments.name,
                              .device = device.is_cpu() ? "" : device.ToString(),
                              .http = arguments.http};
  for (const auto& [name, value] : WorkerEnvironment(place, variables)) {
    setenv(name.c_str(), value.c_str(), /*replace=*/1);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return FailedPrecondition("worker.command = " + experiment.worker.command + ": " +
                            std::strerror(errno));
}

int Main(const char* program, const std::vector<std::string>& args) {
  TuneMallocForLargeMessages();
  Arguments arguments;
  arguments.name = HostName() + "-" + std::to_string(getpid());
  CommandLine line("kumo-worker",
                   "Trains partitions of a job on one device: pulls weights from the servers, "
                   "trains,\nand pushes contributions, until the job ends. With worker.command it "
                   "becomes that program.");
  line.AddPositional("FILE", "Experiment file, or the name of an installed experiment", true,
                     [&](const std::string& text) {
                       arguments.file = FindExperiment(text, FindInstallation().share);
                     });
  line.AddSettings(&arguments.sets);
  line.AddOption("name", "NAME", Allowed(),
                 "Name of this worker; a restarted worker of the same "
                 "name replaces the old one at once",
                 &arguments.name, "HOST-PID");
  line.AddOption("http", "HOST:PORT", Allowed(), "Address of the metrics", &arguments.http, "none");
  line.AddFlag("check", "Read and describe the network and the data, and exit", &arguments.check);
  line.AddOption("evaluate", "DIR", {.not_empty = true}, "Evaluate the checkpoint in DIR, and exit",
                 &arguments.evaluate);
  line.AddFlag(
      "classes",
      "With --evaluate: figures of each class too, and with --json the confusion matrix; of a "
      "detector precisions",
      &arguments.classes);
  line.AddFlag("memory", "Print the memory that a worker and a server need, and exit",
               &arguments.memory);
  line.AddOption("speed", "SECONDS", {.min = 0, .max = 3600, .min_excluded = true},
                 "Training time of a measurement without servers, in seconds: then measure codecs, "
                 "print the durations as JSON, and exit",
                 &arguments.speed_s, "not measured");
  line.AddOption("servers", "N", {.min = 1, .max = kMaxServers},
                 "With --check and --memory: number of servers", &arguments.servers,
                 "from cluster.servers");
  line.AddOption("columns", "N", {.min = 20, .max = 10000},
                 "With --check and --memory: width of tables", &arguments.columns,
                 "the terminal's, or no limit");
  line.AddFlag("json", "With --evaluate and --memory: print JSON; with --check: as the last line",
               &arguments.json);
  arguments.use.AddTo(&line);
  line.AddVersion();
  Status usage = line.Parse(args);
  if (usage.ok() && arguments.json && arguments.evaluate.empty() && !arguments.check &&
      !arguments.memory) {
    usage = InvalidArgument("--json requires --evaluate DIR, --check or --memory");
  }
  if (usage.ok() && arguments.classes && arguments.evaluate.empty()) {
    usage = InvalidArgument("--classes requires --evaluate DIR");
  }
  if (usage.ok()) usage = arguments.use.Check();
  if (line.version_asked()) {
    std::fputs(VersionText("kumo-worker").c_str(), stdout);
    return 0;
  }
  if (line.help_asked() && usage.ok()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  // A process that only uses or inspects a model has no worker name.
  const bool takes_part = !arguments.use.asked() && arguments.evaluate.empty() &&
                          !arguments.check && !arguments.memory && arguments.speed_s <= 0;
  const ExitReporter exit_reporter(
      takes_part ? "kumo-worker " + arguments.name : ExitReporter::StartedAs("kumo-worker"),
      ExitReporter::DefaultTerminationLog());
  EndWhenOutOfResources(exit_reporter);
  if (!usage.ok()) return exit_reporter.Report(ExitCode::kUsage, usage.message());
  if (arguments.use.asked()) {
    const std::unique_ptr<Logging> logging = Logging::ForCommand(program);
    return exit_reporter.ReportPrinted(exit_reporter.Report(
        arguments.use.Run(arguments.file, arguments.sets, VariablesOf(environ))));
  }
  if (!arguments.evaluate.empty()) {
    const std::unique_ptr<Logging> logging = Logging::ForCommand(program);
    const Result<std::string> said = EvaluateCheckpoint(
        {arguments.file, arguments.sets, arguments.evaluate, VariablesOf(environ)},
        {arguments.json, arguments.classes});
    if (!said.ok()) return exit_reporter.Report(said.status());
    constexpr int kHanging = 2;
    const int columns = arguments.json ? 0 : TerminalColumns(STDOUT_FILENO);
    std::fputs(Folded(*said + "\n", columns, kHanging).c_str(), stdout);
    return exit_reporter.ReportPrinted(0);
  }
  const Result<Experiment> experiment =
      ParseExperiment(arguments.file, arguments.sets, VariablesOf(environ));
  if (!experiment.ok())
    return exit_reporter.Report(ExitCode::kBadConfiguration, experiment.status().message());
  if (takes_part && experiment->worker.OwnsModel()) {
    return exit_reporter.Report(BecomeProgram(arguments, *experiment));
  }
  const int code = exit_reporter.Report(Run(arguments, *experiment, program));
  return takes_part ? code : exit_reporter.ReportPrinted(code);
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  kumo::RaiseSoftLimits();
  return kumo::Main(argv[0], std::vector<std::string>(argv + 1, argv + argc));
}
