// kumo manifests: writes the input of kubectl apply -k for one run of an experiment.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/arguments/problems.h"
#include "cli/command.h"
#include "cli/launch/preflight.h"
#include "cli/manifests/run_folder.h"
#include "cli/new_experiment.h"
#include "common/base/process/exit_report.h"
#include "common/base/text.h"
#include "common/job/shard_map.h"
#include "common/settings/installed_experiments.h"

namespace kumo {
namespace {

struct ManifestsArguments {
  std::string file;
  std::vector<std::string> sets;
  std::string name;
  int workers = 0;
  int servers = 0;
  RunFolderOptions folder;
  std::string out;
};

CommandLine MakeCommandLine(ManifestsArguments* args, const std::string& share) {
  CommandLine line(
      "kumo manifests",
      "Writes the Kubernetes manifests of one run of an experiment into a folder, for "
      "`kubectl apply -k`:\nthe experiment, the run's name in all objects, the numbers of "
      "workers and servers, and the base and\ncomponents of this installation "
      "(docs/kubernetes.md).");
  line.AddPositional("FILE", "Experiment file, or the name of an installed experiment",
                     /*required=*/true, [args, share](const std::string& text) {
                       args->file = FindExperiment(text, share);
                     });
  line.AddSettings(&args->sets);
  line.AddOption("run", "NAME", Allowed(),
                 "Name of the run: lower-case letters, digits and '-'; unique in its namespace",
                 &args->name, "the job's, with '-' for '_'");
  line.AddOption("workers", "N", {.min = 1, .max = 4096}, "Number of worker pods", &args->workers,
                 "cluster.workers");
  line.AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Number of server pods",
                 &args->servers, "from cluster.servers, or 1");
  args->folder.AddTo(&line);
  line.AddOption("out", "DIR", Allowed(), "Folder to create; it must not exist", &args->out,
                 "the run's name");
  line.AddNote(
      "Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 the experiment is "
      "invalid "
      "or cannot\nrun in pods, or DIR exists (nothing is overwritten).");
  return line;
}

void PrintNext(const CliEnvironment& environment, const std::string& out, const ClusterRun& run,
               const LoadedExperiment& loaded) {
  std::printf("%s  the run %s: %s, %s\n\n", out.c_str(), run.name.c_str(),
              Counted(run.servers, "server").c_str(), Counted(run.workers, "worker").c_str());
  for (const std::string& note : NotesOfRunFolder(loaded, run)) {
    Print(environment, "note    " + note + "\n\n", kMarkColumns);
  }
  if (loaded.experiment.checkpoint.resume != ResumeFrom()) {
    std::printf("checkpoint.resume=%s is left out: a restarted pod always resumes\n\n",
                loaded.experiment.checkpoint.resume.ToString().c_str());
  }
  std::printf("kubectl apply -k %s\nkubectl logs -f job/%s-run\n", out.c_str(), run.name.c_str());
}

}  // namespace

int RunManifests(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo manifests");
  ManifestsArguments arguments;
  CommandLine line = MakeCommandLine(&arguments, environment.share);
  const auto check = [&] {
    return arguments.name.empty()
               ? OkStatus()
               : CheckRunName(arguments.name).WithContext("--run " + arguments.name);
  };
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line, check)) return *end;
  Result<ClusterRun> run = RunWith(arguments.folder, environment.k8s());
  if (!run.ok()) return SayRefusedRun(exit_reporter, run.status());
  const LoadedExperiment loaded =
      LoadExperiment(arguments.file, arguments.sets, environment.variables);
  std::vector<Status> problems = PreflightOf(loaded).problems;
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  run->name = arguments.name.empty() ? RunNameOf(loaded.experiment.job.name) : arguments.name;
  const Status named = CheckRunName(run->name);
  if (!named.ok()) {
    return SayRefusedRun(exit_reporter,
                         named.WithContext("the run's name " + run->name + " (--run NAME)"));
  }
  run->workers = arguments.workers;
  run->servers = arguments.servers;
  TakeProcesses(loaded.experiment, &*run);
  std::string out = arguments.out.empty() ? run->name : arguments.out;
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  problems = ProblemsOfRunFolder(loaded, *run, out);
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  const Result<std::string> original = ReadExperimentFile(arguments.file);
  if (!original.ok()) return exit_reporter.Report(original.status());
  const Status status =
      WriteRunFolder(environment.k8s(), loaded, LeadingComment(*original), *run, out);
  if (!status.ok()) return exit_reporter.Report(status);
  PrintNext(environment, out, *run, loaded);
  return 0;
}

}  // namespace kumo
