// kumo manifests: writes the input of kubectl apply -k for one run of an experiment.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/arguments/problems.h"
#include "cli/command.h"
#include "cli/launch/preflight.h"
#include "cli/manifests/run_manifests.h"
#include "cli/new_experiment.h"
#include "common/base/did_you_mean.h"
#include "common/base/file.h"
#include "common/base/process/exit_report.h"
#include "common/base/text.h"
#include "common/job/shard_map.h"
#include "common/settings/installed_experiments.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

// Limit of a ConfigMap is 1 MiB, including the experiment's text.
constexpr uint64_t kMostNetworkBytes = 900 << 10;

struct ManifestsArguments {
  std::string file;
  std::vector<std::string> sets;
  ClusterRun run{.name = "", .workers = 0, .servers = 0, .components = {}, .image = "kumo:latest"};
  std::vector<std::string> with;  // as given: names separated by commas
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
                 &args->run.name, "the job's, with '-' for '_'");
  line.AddOption("workers", "N", {.min = 1, .max = 4096}, "Number of worker pods",
                 &args->run.workers, "cluster.workers");
  line.AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Number of server pods",
                 &args->run.servers, "from cluster.servers, or 1");
  line.AddRepeated("with", "COMPONENT",
                   "Component, or several separated by commas: gpu, spot, ... (docs/kubernetes.md)",
                   &args->with);
  line.AddOption("image", "REFERENCE", Allowed(), "Container image, built from k8s/Dockerfile",
                 &args->run.image);
  line.AddOption("out", "DIR", Allowed(), "Folder to create; it must not exist", &args->out,
                 "the run's name");
  line.AddNote(
      "Exit codes: 0 done, 64 wrong command line, 75 the disk is full, 78 the experiment is "
      "invalid "
      "or cannot\nrun in pods, or DIR exists (nothing is overwritten).");
  return line;
}

std::vector<std::string> ComponentsIn(const fs::path& base) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base / "components", error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The requested components and those of every run, without doubles, in the order of application:
// components that others change come first.
Status TakeComponents(const std::vector<std::string>& with, const std::vector<std::string>& known,
                      ClusterRun* run) {
  run->components = {"networkpolicy"};
  for (const std::string& words : with) {
    std::vector<std::string> names;
    KUMO_RETURN_IF_ERROR(ReadValue(words, Allowed(), &names));
    for (const std::string& name : names) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::string all;
        for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
        return InvalidArgument("--with: unknown component " + name + DidYouMean(name, known) +
                               " (available: " + all + ")");
      }
      if (!run->Has(name)) run->components.push_back(name);
    }
  }
  std::stable_partition(run->components.begin(), run->components.end(),
                        [](const std::string& name) { return name == "workers-statefulset"; });
  return OkStatus();
}

Status CheckImage(const std::string& image) {
  constexpr char kAllowed[] = "-_./:@";
  std::string ignored;
  const Status status = ReadValue(
      image, {.characters = kAllowed, .text = "as docker pull takes it: registry/name:tag"},
      &ignored);
  return status.WithContext("--image " + image);
}

Status CopyFolder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (!error) fs::copy(from, to, fs::copy_options::recursive, error);
  if (!error) return OkStatus();
  return FailedPrecondition("cannot copy " + from.string() + " to " + to.string() + ": " +
                            error.message());
}

// Writes to a temporary folder beside `out` first, so that a run's folder is complete or absent.
Status Write(const fs::path& source, const LoadedExperiment& loaded, const std::string& about,
             const ClusterRun& run, const std::string& out) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string network,
                        ReadWholeFile(files, loaded.experiment.network.file, kMostNetworkBytes));
  const std::string unfinished = TemporaryName(out);
  std::error_code error;
  fs::remove_all(unfinished, error);
  const auto write = [&]() -> Status {
    KUMO_RETURN_IF_ERROR(files.CreateDirectories(unfinished));
    KUMO_RETURN_IF_ERROR(CopyFolder(source / "base", fs::path(unfinished) / "base"));
    for (const std::string& component : run.components) {
      KUMO_RETURN_IF_ERROR(CopyFolder(source / "components" / component,
                                      fs::path(unfinished) / "components" / component));
    }
    const std::string network_file = fs::path(loaded.experiment.network.file).filename().string();
    KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(unfinished, network_file), network));
    KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(unfinished, "experiment.conf"),
                                             PodExperimentText(loaded, run, about)));
    KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(unfinished, "kustomization.yaml"),
                                             KustomizationText(loaded, run)));
    return files.Rename(unfinished, out);
  };
  const Status written = write();
  if (!written.ok()) fs::remove_all(unfinished, error);
  return written;
}

void PrintNext(const ManifestsArguments& args, const LoadedExperiment& loaded) {
  const std::string& run = args.run.name;
  std::printf("%s  the run %s: %s, %s\n\n", args.out.c_str(), run.c_str(),
              Counted(args.run.servers, "server").c_str(),
              Counted(args.run.workers, "worker").c_str());
  if (loaded.experiment.checkpoint.resume != ResumeFrom()) {
    std::printf("checkpoint.resume=%s is left out: a restarted pod always resumes\n\n",
                loaded.experiment.checkpoint.resume.ToString().c_str());
  }
  std::printf("kubectl apply -k %s\nkubectl logs -f job/%s-run\n", args.out.c_str(), run.c_str());
}

}  // namespace

int RunManifests(const CliEnvironment& environment, std::span<const std::string> args) {
  const ExitReporter exit_reporter = environment.ExitReporterOf("kumo manifests");
  ManifestsArguments arguments;
  CommandLine line = MakeCommandLine(&arguments, environment.share);
  const fs::path source = fs::path(environment.share) / "k8s";
  const std::vector<std::string> known = ComponentsIn(source);
  ClusterRun& run = arguments.run;
  if (const auto end = ParseOrEnd(environment, exit_reporter, args, &line)) return *end;
  if (known.empty()) {
    return exit_reporter.Report(
        FailedPrecondition("no manifests in " + source.string() + "; install Kumo completely"));
  }
  Status usage = TakeComponents(arguments.with, known, &run);
  if (usage.ok()) usage = CheckImage(run.image);
  if (usage.ok() && !run.name.empty()) {
    usage = CheckRunName(run.name).WithContext("--run " + run.name);
  }
  if (!usage.ok()) return exit_reporter.Report(ExitCode::kUsage, usage.message());
  const LoadedExperiment loaded =
      LoadExperiment(arguments.file, arguments.sets, environment.variables);
  std::vector<Status> problems = PreflightOf(loaded).problems;
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  const Experiment& experiment = loaded.experiment;
  if (run.name.empty()) {
    run.name = RunNameOf(experiment.job.name);
    usage = CheckRunName(run.name).WithContext("the run's name " + run.name + " (--run NAME)");
    if (!usage.ok()) return exit_reporter.Report(ExitCode::kUsage, usage.message());
  }
  if (run.workers == 0) run.workers = experiment.cluster.workers;
  if (run.servers == 0) {
    run.servers = std::max(1, static_cast<int>(experiment.cluster.servers.size()));
  }
  if (arguments.out.empty()) arguments.out = run.name;
  while (arguments.out.size() > 1 && arguments.out.ends_with('/')) arguments.out.pop_back();
  std::error_code error;
  if (fs::symlink_status(arguments.out, error).type() != fs::file_type::not_found) {
    problems.push_back(FailedPrecondition(
        arguments.out + " exists; nothing is overwritten: choose another folder with --out"));
  }
  for (Status& problem : ProblemsInPods(loaded, run)) problems.push_back(std::move(problem));
  if (!problems.empty()) return SayProblems(environment, exit_reporter, problems);
  const Result<std::string> original = ReadExperimentFile(arguments.file);
  if (!original.ok()) return exit_reporter.Report(original.status());
  const Status status = Write(source, loaded, LeadingComment(*original), run, arguments.out);
  if (!status.ok()) return exit_reporter.Report(status);
  PrintNext(arguments, loaded);
  return 0;
}

}  // namespace kumo
