// kumo sweep: runs an experiment with several values of some settings, and compares the results.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/problems.h"
#include "cli/command.h"
#include "cli/launch/preflight.h"
#include "cli/manifests/run_folder.h"
#include "cli/new_experiment.h"
#include "cli/runs/run_summary.h"
#include "cli/runs/run_table.h"
#include "cli/sweep/device_pool.h"
#include "cli/sweep/sweep_manifests.h"
#include "cli/sweep/sweep_points.h"
#include "cli/sweep/sweep_runner.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"
#include "common/base/shell_word.h"
#include "common/base/terminal.h"
#include "common/base/text.h"
#include "common/job/shard_map.h"
#include "common/settings/config_file.h"
#include "common/settings/option_table.h"
#include "common/settings/option_value.h"
#include "common/settings/parser.h"
#include "common/telemetry/console.h"

namespace kumo {
namespace {

constexpr uint64_t kMostPointsMib = 16;

struct SweepArguments {
  ExperimentArguments experiment;
  std::vector<std::string> axes;
  std::string points_file;
  int random = 0;  // 0: the grid
  int seed = 1;
  int parallel = 1;
  int workers = 0;
  int servers = 0;
  std::vector<std::string> devices;
  std::string out;  // "": beside output.directory
  std::string manifests;
  RunFolderOptions folders;  // with manifests
  std::string metric;
  bool json = false;

  std::string kumo;  // path of this program

  explicit SweepArguments(const CliEnvironment& environment)
      : experiment(environment), kumo(environment.binary_directory + "/kumo") {}
};

CommandLine MakeCommandLine(SweepArguments* args) {
  CommandLine line("kumo sweep",
                   "Runs an experiment once for each combination of values of some settings, and "
                   "prints a table of\nthe results. The same command again skips runs that are "
                   "done and resumes the others. A run that\nfails does not end the sweep.");
  args->experiment.AddTo(&line);
  line.AddPositionals("KEY=VALUES",
                      "A setting with its values: schedule.learning_rate=.01,.03,.1. A setting "
                      "that is a list itself has ';' between values. With --random also a range: "
                      "schedule.learning_rate=1e-4..1e-1, uniform, or with :log behind it uniform "
                      "in the logarithm",
                      &args->axes);
  line.AddOption("random", "N", {.min = 1, .max = kMostPoints},
                 "Draw N random points instead of all combinations", &args->random,
                 "all combinations");
  line.AddOption("seed", "S", {.min = 0, .max = 2'000'000'000},
                 "With --random: sampling seed; more points with the same seed go on from fewer",
                 &args->seed);
  line.AddOption("points", "FILE", {.not_empty = true},
                 "File with a point on each line, instead of KEY=VALUES: key=value key=value",
                 &args->points_file, "none");
  line.AddOption("parallel", "N", {.min = 1, .max = 1024}, "Runs at the same time",
                 &args->parallel);
  line.AddOption("workers", "N", {.min = 1, .max = 4096}, "Workers of each run", &args->workers,
                 "cluster.workers");
  line.AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Servers of each run",
                 &args->servers, "from cluster.servers, or 1");
  line.AddOption("devices", "LIST", OptionTable::Shared().Find("network.device")->allowed,
                 "Devices of the workers: a run takes as many as it has workers, free ones first, "
                 "then those with the fewest workers of other runs",
                 &args->devices, "network.device");
  line.AlsoCalled("gpus gpu gpu_ids");
  line.AddOption("out", "DIR", Allowed(),
                 "Folder of the runs; each has a folder in it, named by its settings", &args->out,
                 "<output.directory>-sweep");
  line.AddOption("metric", "NAME", Allowed(), "Metric by which the table is sorted: loss, ...",
                 &args->metric, "the first that is better if larger, or else the first");
  line.AddOption("manifests", "DIR", {.not_empty = true},
                 "Run nothing: write Kubernetes manifests of each run into DIR, which must not "
                 "exist, and queue.sh, which applies them one after another",
                 &args->manifests, "none");
  args->folders.AddTo(&line);
  line.AddFlag("json", "Print only problems and, at the end, a JSON array as kumo runs",
               &args->json);
  line.AddNote(
      "Exit codes: 0 all runs are done, 64 wrong command line or unknown metric; otherwise the\n"
      "code of the first failed run, in the order of points: 1 crashed, 75 stopped or unavailable\n"
      "(repeat the command to resume), 78 bad configuration.\n"
      "Logs: DIR/<run>.log, and the logs of kumo launch in each run's folder.");
  return line;
}

Result<std::vector<SweepPoint>> PointsOf(const SweepArguments& args) {
  if (!args.points_file.empty()) {
    if (!args.axes.empty() || args.random > 0) {
      return InvalidArgument("--points excludes KEY=VALUES and --random");
    }
    const Result<std::string> text = ReadTextFile(args.points_file, kMostPointsMib);
    if (!text.ok()) return text.status().WithContext("--points " + args.points_file);
    Result<std::vector<SweepPoint>> points = ListedPoints(*text);
    if (!points.ok()) return points.status().WithContext(args.points_file);
    return points;
  }
  if (args.axes.empty()) {
    return InvalidArgument(
        "KEY=VALUES is missing: settings with values, such as schedule.learning_rate=.01,.03,.1");
  }
  std::vector<SweepAxis> axes;
  for (const std::string& text : args.axes) {
    KUMO_ASSIGN_OR_RETURN(SweepAxis axis, ParseAxis(text));
    axes.push_back(std::move(axis));
  }
  if (args.random == 0) return GridOf(axes);
  return RandomPoints(axes, args.random, static_cast<uint64_t>(args.seed));
}

Status CheckOptions(const SweepArguments& args, const CommandLine& line) {
  if (args.random == 0) KUMO_RETURN_IF_ERROR(line.RefuseGiven({"seed"}, "requires --random N"));
  if (args.manifests.empty()) {
    return line.RefuseGiven({"with", "image", "worker-image"}, "requires --manifests DIR");
  }
  return line.RefuseGiven({"bin-dir", "parallel", "devices", "out", "metric", "json"},
                          "--manifests starts no run here");
}

// A run to start, or one that is done.
struct SweepRun {
  SweepPoint point;
  std::string folder;
  Experiment experiment;
};

class Sweep {
 public:
  Sweep(const CliEnvironment& environment, SweepArguments args)
      : environment_(environment), args_(std::move(args)), devices_(args_.devices) {}

  // Reads the experiment of each point. Returns the problems.
  std::vector<Status> Plan(const std::vector<SweepPoint>& points) {
    std::vector<Status> problems;
    for (const SweepPoint& point : points) {
      const LoadedExperiment loaded = Load(point);
      for (const Status& problem : PreflightOf(loaded).problems) {
        problems.push_back(problem.WithContext("run " + point.name));
      }
      for (const Status& problem : SharedByRuns(point, loaded.experiment)) {
        problems.push_back(problem.WithContext("run " + point.name));
      }
      if (!problems.empty()) return problems;
      if (args_.out.empty()) args_.out = loaded.experiment.output.directory + "-sweep";
      runs_.push_back({point, JoinPath(args_.out, point.name), loaded.experiment});
      for (const Status& problem : ProblemsOfWeights(runs_.back())) {
        problems.push_back(problem.WithContext("run " + point.name));
      }
      if (!problems.empty()) return problems;
    }
    return problems;
  }

  // Runs what is not done. Returns the error of the sweep.
  Status Run() {
    StopSignals signals({SIGCHLD});
    KUMO_RETURN_IF_ERROR(PosixFileSystem().CreateDirectories(args_.out).WithContext(args_.out));
    std::vector<SweepJob> jobs;
    for (const SweepRun& run : runs_) {
      if (IsDone(files_, run.folder, run.experiment)) continue;
      jobs.push_back({run.point.name, [this, &run] { return LaunchOf(run); },
                      JoinPath(args_.out, run.point.name + ".log")});
    }
    Say("sweep of " + Counted(std::ssize(runs_), "run") + " in " + args_.out + ": " +
        std::to_string(runs_.size() - jobs.size()) + " done before, " +
        std::to_string(args_.parallel) + " at a time");
    const Device& device = runs_.front().experiment.network.device;
    if (args_.parallel > 1 && args_.devices.empty() && !device.is_cpu()) {
      Say("note    the runs at the same time share " + device.ToString() +
          "; with --devices cuda:0,cuda:1,... each has its own");
    }
    SweepRunner runner(jobs, args_.parallel, &signals);
    runner.on_start = [&](size_t job) { Say("starts  " + jobs[job].name); };
    runner.on_end = [&](size_t job, const SweepJobEnd& end) {
      devices_.GiveBack(jobs[job].name);
      Say((end.code == 0 ? "ends    " : "failed  ") + jobs[job].name + ": " + end.reason);
    };
    const std::vector<SweepJobEnd> ends = runner.Run();
    const auto failed =
        std::ranges::find_if(ends, [](const SweepJobEnd& end) { return end.code != 0; });
    if (runner.stopped()) {
      return Unavailable("stopped; repeat the command to resume the runs that are not done");
    }
    if (failed == ends.end()) return OkStatus();
    const auto count =
        std::ranges::count_if(ends, [](const SweepJobEnd& end) { return end.code != 0; });
    code_ = static_cast<ExitCode>(failed->code > 128 ? 1 : failed->code);
    return Unavailable(Counted(count, "run") + " failed, the first is " +
                       jobs[failed - ends.begin()].name + ": " + failed->reason);
  }

  // Returns an error if the metric is none of the runs'.
  Status PrintTable() {
    console_.Finish();
    std::vector<RunSummary> summaries;
    for (const SweepRun& run : runs_) {
      RunSummary& summary = summaries.emplace_back(SummariseRun(files_, run.folder, args_.metric));
      summary.name = run.point.name;
    }
    SortByBest(&summaries);
    if (args_.json) {
      std::printf("%s\n", RunsJson(summaries).array().c_str());
    } else {
      std::fputs(RunTable(summaries, environment_.columns).c_str(), stdout);
    }
    return CheckMetric(summaries, args_.metric);
  }

  // Writes a folder for each run, which has these components and this image. Returns the problems.
  std::vector<Status> WriteManifests(ClusterRun like);

  // Exit code of the first failed run; nullopt if none failed.
  std::optional<ExitCode> code() const { return code_; }

 private:
  // Problems of what each run must have for itself.
  std::vector<Status> SharedByRuns(const SweepPoint& point, const Experiment& experiment) const {
    std::vector<Status> problems;
    for (const auto& [key, value] : point.settings) {
      if (key == "output.directory") {
        problems.push_back(InvalidArgument("each run has a folder of its own; give --out DIR"));
      }
      if (key == "checkpoint.resume") {
        problems.push_back(InvalidArgument(
            "checkpoint.resume cannot differ: a run of a sweep resumes from its own checkpoint"));
      }
    }
    if (!args_.manifests.empty()) return problems;
    if (args_.parallel > 1 && !experiment.cluster.servers.empty()) {
      problems.push_back(InvalidArgument(
          "cluster.servers is set, but runs at the same time need addresses of their own; give "
          "--set cluster.servers= or --parallel 1"));
    }
    if (!experiment.output.final_model.empty()) {
      problems.push_back(InvalidArgument(
          "output.final_model is one folder for all runs; give --set output.final_model="));
    }
    return problems;
  }

  // Each path is read once, whatever the number of runs that start from it. An earlier run may yet
  // write weights below --out; with --manifests the pods have them.
  std::vector<Status> ProblemsOfWeights(const SweepRun& run) {
    Experiment experiment = run.experiment;
    const std::string& from = experiment.network.initial_weights;
    if (from.empty() || !args_.manifests.empty() || !weights_.insert(from).second) return {};
    if (CanonicalFolder(from).starts_with(CanonicalFolder(args_.out))) return {};
    experiment.output.directory = run.folder;
    experiment.checkpoint.resume = {};
    Preflight result;
    CheckInitialWeights(experiment, &files_, &result);
    return result.problems;
  }

  // The runs go on if the reader of stdout pauses.
  void Say(const std::string& line) {
    if (!args_.json) console_.Write(Folded(line + "\n", environment_.columns, kMarkColumns));
  }

  LoadedExperiment Load(const SweepPoint& point) const {
    std::vector<std::string> sets = args_.experiment.sets;
    for (const std::string& set : point.Sets()) sets.push_back(set);
    return LoadExperiment(args_.experiment.file, sets, environment_.variables);
  }

  // The command of a run, with devices for its workers.
  std::vector<std::string> LaunchOf(const SweepRun& run) {
    std::vector<std::string> command = {args_.kumo, "launch"};
    for (std::string& word : args_.experiment.Forward()) command.push_back(std::move(word));
    for (const std::string& set : run.point.Sets()) command.insert(command.end(), {"--set", set});
    command.insert(command.end(), {"--set", "output.directory=" + WithoutVariables(run.folder),
                                   "--set", "checkpoint.resume=auto", "--quiet", "--no-page",
                                   "--bin-dir", args_.experiment.binary_directory});
    const auto add = [&](const char* option, const std::string& value) {
      command.insert(command.end(), {option, value});
    };
    const int workers = args_.workers > 0 ? args_.workers : run.experiment.cluster.workers;
    const std::vector<std::string> devices = devices_.Take(run.point.name, workers);
    if (!devices.empty()) add("--devices", WriteValue(devices));
    if (args_.workers > 0) add("--workers", std::to_string(args_.workers));
    if (args_.servers > 0) add("--servers", std::to_string(args_.servers));
    return command;
  }

  const CliEnvironment& environment_;
  SweepArguments args_;
  PosixFileSystem files_;
  std::vector<SweepRun> runs_;
  FdConsole console_{STDOUT_FILENO};
  DevicePool devices_;             // --devices
  std::set<std::string> weights_;  // network.initial_weights of runs_
  std::optional<ExitCode> code_;
};

std::vector<Status> Sweep::WriteManifests(ClusterRun like) {
  const Result<std::string> original = ReadExperimentFile(args_.experiment.file);
  if (!original.ok()) return {original.status()};
  like.workers = args_.workers;
  like.servers = args_.servers;
  const SweepManifests sweep = {
      .folder = args_.manifests,
      .k8s = environment_.k8s(),
      .about = LeadingComment(*original),
      .like = std::move(like),
      .load = [this](const SweepPoint& point) { return Load(point); },
      .on_note = [this](const std::string& note) { Say("note    " + note); }};
  std::vector<SweepPoint> points;
  for (const SweepRun& run : runs_) points.push_back(run.point);
  WrittenSweep written = WriteSweepManifests(sweep, points);
  if (!written.problems.empty()) return std::move(written.problems);
  Say(sweep.folder + "  " + Counted(std::ssize(written.names), "run") + ": " +
      written.names.front() + " .. " + written.names.back() + "\n\nsh " +
      ShellWord(JoinPath(sweep.folder, "queue.sh")));
  return {};
}

}  // namespace

int RunSweep(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo sweep");
  SweepArguments arguments(environment);
  CommandLine line = MakeCommandLine(&arguments);
  std::vector<SweepPoint> points;
  const auto check = [&]() -> Status {
    KUMO_ASSIGN_OR_RETURN(points, PointsOf(arguments));
    return CheckOptions(arguments, line);
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  const bool writes = !arguments.manifests.empty();
  const Result<ClusterRun> like =
      writes ? RunWith(arguments.folders, environment.k8s()) : Result<ClusterRun>(ClusterRun());
  if (!like.ok()) return SayRefusedRun(exit_reporter, like.status());
  Sweep sweep(environment, std::move(arguments));
  const std::vector<Status> problems = sweep.Plan(points);
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  if (writes) return SayProblems(environment, exit_reporter, sweep.WriteManifests(*like));
  const Status status = sweep.Run();
  const Status printed = sweep.PrintTable();
  if (sweep.code()) return exit_reporter.Report(*sweep.code(), status.message());
  if (!status.ok()) return exit_reporter.Report(status);
  return printed.ok() ? 0 : exit_reporter.Report(ExitCode::kUsage, printed.message());
}

}  // namespace kumo
