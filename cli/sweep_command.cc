// kumo sweep: runs an experiment with several values of some settings, and compares the results.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/problems.h"
#include "cli/command.h"
#include "cli/launch/child_process.h"
#include "cli/launch/preflight.h"
#include "cli/runs/run_summary.h"
#include "cli/runs/run_table.h"
#include "cli/sweep/sweep_points.h"
#include "cli/sweep/sweep_runner.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/signals.h"
#include "common/base/shell_word.h"
#include "common/base/text.h"
#include "common/settings/config_file.h"
#include "common/settings/experiment_text.h"

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
  std::string devices;
  std::string out;  // "": beside output.directory
  std::string manifests;
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
  line.AddOption("servers", "M", {.min = 1, .max = 4096}, "Servers of each run", &args->servers,
                 "from cluster.servers, or 1");
  line.AddOption("devices", "LIST", Allowed(), "Devices of each run's workers, as kumo launch",
                 &args->devices, "network.device");
  line.AddOption("out", "DIR", Allowed(),
                 "Folder of the runs; each has a folder in it, named by its settings", &args->out,
                 "<output.directory>-sweep");
  line.AddOption("metric", "NAME", Allowed(), "Metric by which the table is sorted: loss, ...",
                 &args->metric, "the first that is better if larger, or else the first");
  line.AddOption("manifests", "DIR", {.not_empty = true},
                 "Run nothing: write Kubernetes manifests of each run into DIR, which must not "
                 "exist, and queue.sh, which applies them one after another",
                 &args->manifests, "none");
  line.AddFlag("json", "Print only problems and, at the end, a JSON array as kumo runs",
               &args->json);
  line.AddNote(
      "Exit codes: 0 all runs are done; otherwise that of the first failed run, in the order of "
      "points:\n1 crashed, 75 stopped or unavailable (repeat the command to resume), 78 bad "
      "configuration.\nLogs: DIR/<run>.log, and those of kumo launch in each run's folder.");
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

// A run to start, or one that is done.
struct SweepRun {
  SweepPoint point;
  std::string folder;
  uint64_t hash = 0;  // of its experiment
};

class Sweep {
 public:
  Sweep(const CliEnvironment& environment, SweepArguments args)
      : environment_(environment), args_(std::move(args)) {}

  // Reads the experiment of each point. Returns the problems.
  std::vector<Status> Plan(const std::vector<SweepPoint>& points) {
    std::vector<Status> problems;
    for (const SweepPoint& point : points) {
      std::vector<std::string> sets = args_.experiment.sets;
      for (const std::string& set : point.Sets()) sets.push_back(set);
      const LoadedExperiment loaded =
          LoadExperiment(args_.experiment.file, sets, environment_.variables);
      for (const Status& problem : PreflightOf(loaded).problems) {
        problems.push_back(problem.WithContext("run " + point.name));
      }
      for (const Status& problem : SharedByRuns(point, loaded.experiment)) {
        problems.push_back(problem.WithContext("run " + point.name));
      }
      if (!problems.empty()) return problems;
      if (args_.out.empty()) args_.out = loaded.experiment.output.directory + "-sweep";
      runs_.push_back({point, JoinPath(args_.out, point.name), ExperimentHash(loaded.experiment)});
    }
    return problems;
  }

  // Runs what is not done. Returns the error of the sweep.
  Status Run() {
    StopSignals signals({SIGCHLD});
    KUMO_RETURN_IF_ERROR(PosixFileSystem().CreateDirectories(args_.out).WithContext(args_.out));
    std::vector<SweepJob> jobs;
    for (const SweepRun& run : runs_) {
      const RunSummary before = SummariseRun(files_, run.folder, args_.metric);
      if (before.state == RunState::kDone && before.experiment_hash == run.hash) continue;
      jobs.push_back({run.point.name, LaunchOf(run), JoinPath(args_.out, run.point.name + ".log")});
    }
    Say("sweep of " + Counted(std::ssize(runs_), "run") + " in " + args_.out + ": " +
        std::to_string(runs_.size() - jobs.size()) + " done before, " +
        std::to_string(args_.parallel) + " at a time");
    SweepRunner runner(jobs, args_.parallel, &signals);
    runner.on_start = [&](size_t job) { Say("starts  " + jobs[job].name); };
    runner.on_end = [&](size_t job, const SweepJobEnd& end) {
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

  void PrintTable() {
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
  }

  Status WriteManifests();

  // Of a failed run; nullopt if none failed.
  std::optional<ExitCode> code() const { return code_; }

 private:
  // Problems of what each run must have for itself.
  std::vector<Status> SharedByRuns(const SweepPoint& point, const Experiment& experiment) const {
    std::vector<Status> problems;
    for (const auto& [key, value] : point.settings) {
      if (key == "output.directory") {
        problems.push_back(InvalidArgument("each run has a folder of its own; give --out DIR"));
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

  void Say(const std::string& line) const {
    if (args_.json) return;
    Print(environment_, line + "\n", kMarkColumns);
    std::fflush(stdout);
  }

  void AddProcesses(std::vector<std::string>* command) const {
    if (args_.workers > 0)
      command->insert(command->end(), {"--workers", std::to_string(args_.workers)});
    if (args_.servers > 0)
      command->insert(command->end(), {"--servers", std::to_string(args_.servers)});
  }

  std::vector<std::string> LaunchOf(const SweepRun& run) const {
    std::vector<std::string> command = {args_.kumo, "launch"};
    for (std::string& word : args_.experiment.Forward()) command.push_back(std::move(word));
    for (const std::string& set : run.point.Sets()) command.insert(command.end(), {"--set", set});
    command.insert(command.end(),
                   {"--set", "output.directory=" + WithoutVariables(run.folder), "--quiet",
                    "--no-page", "--bin-dir", args_.experiment.binary_directory});
    if (!args_.devices.empty()) command.insert(command.end(), {"--devices", args_.devices});
    AddProcesses(&command);
    return command;
  }

  const CliEnvironment& environment_;
  SweepArguments args_;
  PosixFileSystem files_;
  std::vector<SweepRun> runs_;
  std::optional<ExitCode> code_;
};

// The script that applies the runs one after another.
std::string QueueText(const std::vector<std::string>& names) {
  std::string text =
      "#!/bin/sh\n"
      "# Runs a sweep on Kubernetes, one run after another. Started again, it resumes. A run "
      "that\n"
      "# fails does not end the others; the exit code is then 1.\n"
      "set -eu\n"
      "cd \"$(dirname \"$0\")\"\n"
      "failed=0\n"
      "for run in";
  for (const std::string& name : names) text += " \\\n    " + name;
  return text +
         "\ndo\n"
         "  kubectl apply -k \"$run\"\n"
         "  until kubectl wait --for=condition=complete --timeout=30s \"job/$run-run\"; do\n"
         "    if kubectl wait --for=condition=failed --timeout=1s \"job/$run-run\"; then\n"
         "      failed=1\n"
         "      break\n"
         "    fi\n"
         "  done\n"
         "done\n"
         "exit $failed\n";
}

Status Sweep::WriteManifests() {
  const std::string& folder = args_.manifests;
  if (files_.Exists(folder)) {
    return FailedPrecondition(folder + " exists; nothing is overwritten: choose another folder");
  }
  KUMO_RETURN_IF_ERROR(files_.CreateDirectories(folder));
  const LoadedExperiment loaded =
      LoadExperiment(args_.experiment.file, args_.experiment.sets, environment_.variables);
  std::string base;
  for (const char c : loaded.experiment.job.name) base += c == '_' ? '-' : c;
  const size_t digits = std::to_string(runs_.size()).size();
  std::vector<std::string> names;
  std::string list;
  for (const SweepRun& run : runs_) {
    std::string number = std::to_string(names.size() + 1);
    number.insert(0, digits - number.size(), '0');
    const std::string name = base + "-" + number;
    std::vector<std::string> command = {args_.kumo, "manifests", args_.experiment.file};
    for (const std::string& set : args_.experiment.sets) {
      command.insert(command.end(), {"--set", set});
    }
    for (const std::string& set : run.point.Sets()) command.insert(command.end(), {"--set", set});
    command.insert(command.end(), {"--run", name, "--out", JoinPath(folder, name)});
    AddProcesses(&command);
    ChildSpec spec;
    spec.command = std::move(command);
    std::string output;
    const Result<ChildEnd> end = RunChild(spec, &output);
    if (!end.ok()) return end.status();
    if (end->code != 0) {
      return ErrorOf("kumo manifests", *end, output).WithContext("run " + run.point.name);
    }
    names.push_back(name);
    list += name;
    for (const std::string& set : run.point.Sets()) list += " " + ShellWord(set);
    list += "\n";
  }
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files_, JoinPath(folder, "points"), list));
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files_, JoinPath(folder, "queue.sh"), QueueText(names)));
  Say(folder + "  " + Counted(std::ssize(names), "run") + ": " + names.front() + " .. " +
      names.back() + "\n\nsh " + JoinPath(folder, "queue.sh"));
  return OkStatus();
}

}  // namespace

int RunSweep(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo sweep");
  SweepArguments arguments(environment);
  CommandLine line = MakeCommandLine(&arguments);
  std::vector<SweepPoint> points;
  const auto check = [&]() -> Status {
    KUMO_ASSIGN_OR_RETURN(points, PointsOf(arguments));
    return OkStatus();
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  const bool writes = !arguments.manifests.empty();
  Sweep sweep(environment, std::move(arguments));
  const std::vector<Status> problems = sweep.Plan(points);
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  if (writes) {
    const Status written = sweep.WriteManifests();
    return written.ok() ? 0 : exit_reporter.Report(written);
  }
  const Status status = sweep.Run();
  sweep.PrintTable();
  if (status.ok()) return 0;
  return sweep.code() ? exit_reporter.Report(*sweep.code(), status.message())
                      : exit_reporter.Report(status);
}

}  // namespace kumo
