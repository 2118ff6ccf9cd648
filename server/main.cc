// kumo-server: holds one shard of a job's weights; server 0 also coordinates.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/installation.h"
#include "common/base/memory_budget.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"
#include "common/base/process/output_lock.h"
#include "common/base/process/process_limits.h"
#include "common/base/process/process_start.h"
#include "common/base/process/signals.h"
#include "common/base/shell_word.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/checkpoint/final_model.h"
#include "common/checkpoint/health.h"
#include "common/checkpoint/resume_point.h"
#include "common/http/process_view.h"
#include "common/job/process_need.h"
#include "common/settings/command_line.h"
#include "common/settings/experiment_text.h"
#include "common/settings/installed_experiments.h"
#include "common/settings/option_value.h"
#include "common/settings/parser.h"
#include "common/telemetry/console.h"
#include "server/disks/earlier_runs.h"
#include "server/disks/generation_file.h"
#include "server/service/server_service.h"
#include "server/service/survey_service.h"

namespace kumo {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> sets;
  int index = 0;
  std::string bind;
  std::string http;
  std::string disk;
  std::string run;
};

Status CheckArguments(const Arguments& arguments, const Experiment& experiment) {
  if (!arguments.disk.empty() &&
      (arguments.index == 0 || !experiment.checkpoint.HasPrivateDisks())) {
    return FailedPrecondition("--disk " + arguments.disk +
                              (arguments.index == 0
                                   ? ": server 0's disk is output.directory"
                                   : ": servers share output.directory, unless the experiment says "
                                     "checkpoint.disks = private"));
  }
  const size_t servers = experiment.cluster.servers.size();
  if (servers == 0) {
    return FailedPrecondition(
        "cluster.servers is not set: name the servers' addresses in the experiment file or with "
        "--set cluster.servers=tcp://HOST:PORT,...");
  }
  if (arguments.index < 0 || static_cast<size_t>(arguments.index) >= servers) {
    return FailedPrecondition("--index " + std::to_string(arguments.index) +
                              ": cluster.servers names " + std::to_string(servers) +
                              " servers, so it must be 0 .. " + std::to_string(servers - 1));
  }
  return OkStatus();
}

// Records and prints the settings that have changed since the checkpoint was taken.
void SayContinuation(const checkpoint::Continuation& continuation, RunRecorder* recorder) {
  ContinuedRun run;
  run.round = continuation.version();
  run.samples = continuation.samples();
  run.epoch = continuation.epoch();
  for (const auto& change : continuation.changes()) {
    run.changes.push_back({change.setting(), change.then(), change.now()});
  }
  run.notes = {continuation.notes().begin(), continuation.notes().end()};
  recorder->Record(run);
  for (const std::string& line : LinesOf(continuation)) recorder->Say("from now on: " + line);
}

// The command that goes on from before the divergence of a job, at a tenth of the learning rate.
std::string AfterDivergence(FileSystem& files, const Arguments& arguments,
                            const Experiment& experiment) {
  std::string command = "kumo launch " + ShellWord(arguments.file);
  for (const std::string& set : arguments.sets) {
    // The launcher picks free addresses anew; the others are given again below.
    const std::string key = set.substr(0, set.find('='));
    if (key == "cluster.servers" || key == "schedule.learning_rate" || key == "checkpoint.resume" ||
        key == "checkpoint.continue") {
      continue;
    }
    command += " --set " + ShellWord(set);
  }
  command += " --set schedule.learning_rate=" + WriteValue(experiment.schedule.learning_rate / 10);
  const Result<checkpoint::Manifest> sound =
      NewestSound(files, JoinPath(experiment.output.directory, "checkpoints"));
  if (!sound.ok()) {
    return "; no checkpoint is from before that: start anew with a lower rate: " + command +
           " --set checkpoint.resume=never";
  }
  const std::string round = std::to_string(sound->version());
  return "; the newest checkpoint from before that is of round " + round +
         ": go back to it with a lower rate: " + command +
         " --continue --set checkpoint.resume=" + round;
}

// Runs the server. Returns the last line of output if the job is done; "" on servers other than 0.
Result<std::string> Run(const Arguments& arguments, Experiment experiment, const char* program) {
  KUMO_RETURN_IF_ERROR(CheckArguments(arguments, experiment));
  KUMO_RETURN_IF_ERROR(
      CheckLimits(NeedOfServer(experiment, static_cast<int>(experiment.cluster.servers.size()))));
  RunningClock clock;
  StopSignals signals;
  PosixFileSystem files;
  LogSettings log;
  log.program = program;
  log.directory = JoinPath(experiment.output.directory, "logs");
  log.role = "server";
  log.rank = std::to_string(arguments.index);
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<Logging> logging, Logging::Start(log));

  ServerNodeSettings settings;
  settings.index = arguments.index;
  settings.experiment = experiment;
  if (!arguments.disk.empty()) {
    settings.experiment.output.directory = arguments.disk;
    KUMO_RETURN_IF_ERROR(files.CreateDirectories(arguments.disk));
  }
  settings.run = arguments.run;
  settings.identity = IdentityOf(experiment);
  settings.process = ThisProcess(HostName());
  if (Result<MemoryRoom> room = RoomInProcess(); room.ok()) settings.memory = *std::move(room);

  ProcessTitle title{"kumo-server", "server-" + std::to_string(arguments.index),
                     std::string(kVersion), std::string(kCommit), arguments.index == 0};
  const bool as_set = arguments.http.empty() && arguments.index == 0;
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ShownProcess> shown,
                        ShownProcess::Start(as_set ? experiment.http.address : arguments.http,
                                            as_set ? "http.address" : "--http", std::move(title)));

  FdConsole console(STDOUT_FILENO);
  std::unique_ptr<OutputLock> lock;
  std::unique_ptr<RunRecorder> recorder;
  const std::string address =
      arguments.bind.empty() ? experiment.cluster.servers[arguments.index] : arguments.bind;
  if (arguments.index == 0) {
    KUMO_ASSIGN_OR_RETURN(
        lock, OutputLock::Take(experiment.output.directory,
                               {settings.process.incarnation, experiment.cluster.servers.front()},
                               experiment.output.lock));
    if (HasBegun(files, experiment.output.directory, arguments.run)) {
      experiment.checkpoint.resume = ResumeFrom();
      settings.experiment.checkpoint.resume = ResumeFrom();
    }
    settings.folder = settings.process.incarnation;
    if (const std::string& to = experiment.output.final_model; !to.empty()) {
      KUMO_RETURN_IF_ERROR(CheckFinalModelFolder(files, to, experiment.job.name)
                               .WithContext("output.final_model = " + to));
    }
    KUMO_ASSIGN_OR_RETURN(const SurveyedDisks surveyed,
                          SurveyDisks(settings, address, &files, &clock, &signals, &console));
    KUMO_ASSIGN_OR_RETURN(ResumePoint resume, FindCheckpointToResume(files, experiment));
    settings.restored = std::move(resume.manifest);
    settings.finished = resume.finished;
    RunRecorderSettings record;
    record.directory = experiment.output.directory;
    record.host = settings.process.host;
    record.wall_time_s = TimeOfDay();
    record.tensorboard = experiment.output.tensorboard;
    record.jsonl = experiment.output.jsonl;
    for (ResultSetting& setting : ResultSettings(experiment)) {
      record.hyperparameters.push_back({std::move(setting.key), std::move(setting.value)});
    }
    // If versions are kept twice, the other servers may have later versions in memory.
    const bool may_be_further = experiment.cluster.KeepsVersionsTwice() && !resume.finished;
    if (may_be_further) {
      record.resumed_round = record.resumed_samples = RunRecorderSettings::kKeepAll;
    } else if (settings.restored) {
      record.resumed_round = settings.restored->version();
      record.resumed_samples = settings.restored->progress().samples();
    }
    recorder = std::make_unique<RunRecorder>(record, files, &clock, &console);
    if (shown) recorder->Say("page    " + shown->Url(settings.process.host));
    for (const std::string& skipped : surveyed.skipped) recorder->Say("skips " + skipped);
    for (const std::string& skipped : resume.skipped) recorder->Say("skips " + skipped);
    if (resume.finished) {
      recorder->Say("the job is done already: its last checkpoint is " + settings.restored->name());
    } else if (settings.restored && !may_be_further) {
      recorder->Say("goes on from checkpoint " + settings.restored->name());
    }
    if (resume.continuation) SayContinuation(*resume.continuation, recorder.get());
    if (settings.restored && !experiment.network.initial_weights.empty()) {
      recorder->Say(
          "network.initial_weights (--from) is for a job's beginning: this one goes on "
          "from its own checkpoint");
    }
    KUMO_ASSIGN_OR_RETURN(
        settings.generation,
        ReserveGeneration(files, experiment,
                          std::max(settings.restored ? settings.restored->generation() : 0,
                                   surveyed.generation)));
  }
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<ServerService> service,
                        ServerService::Make(std::move(settings), address, &files, &clock, &signals,
                                            std::move(recorder), shown ? shown->view() : nullptr));
  const Status end = service->Run();
  // A thread that waits for a disk still uses it.
  if (!service->threads_ended()) (void)service.release();
  if (end.code() == StatusCode::kOutOfRange && arguments.index == 0) {
    return OutOfRange(end.message() + AfterDivergence(files, arguments, experiment));
  }
  KUMO_RETURN_IF_ERROR(end);
  return service->model().empty() ? "" : "the model is " + service->model();
}

int Main(const char* program, const std::vector<std::string>& args) {
  TuneMallocForLargeMessages();
  Arguments arguments;
  CommandLine line("kumo-server",
                   "Holds one shard of a job's weights. Server 0 also coordinates: it leases "
                   "partitions to\nworkers, commits checkpoints and shows the progress.");
  line.AddPositional("FILE", "Experiment file, or the name of an installed experiment", true,
                     [&](const std::string& text) {
                       arguments.file = FindExperiment(text, FindInstallation().share);
                     });
  line.AddOption("index", "N", Allowed{.min = 0},
                 "Index of this server in cluster.servers, from 0 on", &arguments.index);
  line.AddOption("bind", "ADDRESS", Allowed(), "Address to listen at, for example tcp://*:7700",
                 &arguments.bind, "its address in cluster.servers");
  line.AddOption("http", "HOST:PORT", Allowed(),
                 "Address of the metrics and, on server 0, of the job's page", &arguments.http,
                 "http.address on server 0, none on the others");
  line.AddOption("disk", "DIR", Allowed(),
                 "Folder of this server's checkpoints; requires checkpoint.disks = private",
                 &arguments.disk, "output.directory");
  line.AddOption("run", "NAME", Allowed(),
                 "Name of this run: a server 0 that is started again for a run that has begun goes "
                 "on from the\nnewest checkpoint, independent of checkpoint.resume",
                 &arguments.run, "none");
  line.AddSettings(&arguments.sets);
  line.AddVersion();
  const Status usage = line.Parse(args);
  if (line.version_asked()) {
    std::fputs(VersionText("kumo-server").c_str(), stdout);
    return 0;
  }
  if (line.help_asked() && usage.ok()) {
    std::fputs(line.Help().c_str(), stdout);
    return 0;
  }
  const ExitReporter exit_reporter("kumo-server " + std::to_string(arguments.index),
                                   ExitReporter::DefaultTerminationLog());
  EndWhenOutOfResources(exit_reporter);
  if (!usage.ok()) return exit_reporter.Report(ExitCode::kUsage, usage.message());
  const Result<Experiment> experiment =
      ParseExperiment(arguments.file, arguments.sets, VariablesOf(environ));
  if (!experiment.ok()) {
    return exit_reporter.Report(ExitCode::kBadConfiguration, experiment.status().message());
  }
  const Result<std::string> done = Run(arguments, *experiment, program);
  return done.ok() ? exit_reporter.ReportDone(*done) : exit_reporter.Report(done.status());
}

}  // namespace
}  // namespace kumo

int main(int argc, char** argv) {
  kumo::OpenStandardStreams();
  kumo::RaiseSoftLimits();
  return kumo::Main(argv[0], std::vector<std::string>(argv + 1, argv + argc));
}
