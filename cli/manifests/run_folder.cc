#include "cli/manifests/run_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/launch/preflight.h"
#include "common/base/did_you_mean.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;

// Limit of a ConfigMap is 1 MiB, including the experiment's text.
constexpr uint64_t kMostNetworkBytes = 900 << 10;

std::vector<std::string> ComponentsIn(const fs::path& k8s) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(k8s / "components", error)) {
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
        return InvalidArgument("--with: unknown component " + name + DidYouMean(name, known) +
                               " (available: " + Join(known) + ")");
      }
      if (!run->Has(name)) run->components.push_back(name);
    }
  }
  std::stable_partition(run->components.begin(), run->components.end(),
                        [](const std::string& name) { return name == "workers-statefulset"; });
  return OkStatus();
}

Status CheckImage(const std::string& option, const std::string& image) {
  constexpr char kAllowed[] = "-_./:@";
  std::string ignored;
  const Status status = ReadValue(
      image, {.characters = kAllowed, .text = "as docker pull takes it: registry/name:tag"},
      &ignored);
  return status.WithContext(option + " " + image);
}

Status CopyFolder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (!error) fs::copy(from, to, fs::copy_options::recursive, error);
  if (!error) return OkStatus();
  return FailedPrecondition("cannot copy " + from.string() + " to " + to.string() + ": " +
                            error.message());
}

}  // namespace

void RunFolderOptions::AddTo(CommandLine* line) {
  line->AddRepeated("with", "COMPONENT",
                    "Component, or several separated by commas: gpu, spot, ... "
                    "(docs/kubernetes.md)",
                    &with);
  line->AddOption("image", "REFERENCE", Allowed(), "Container image, built from k8s/Dockerfile",
                  &image);
  line->AddOption("worker-image", "REFERENCE", Allowed(),
                  "Container image of the workers, with the program of worker.command",
                  &worker_image, "--image");
}

Result<ClusterRun> RunWith(const RunFolderOptions& options, const std::string& k8s) {
  const std::vector<std::string> known = ComponentsIn(k8s);
  if (known.empty()) {
    return FailedPrecondition("no manifests in " + k8s + "; install Kumo completely");
  }
  ClusterRun run{.name = "",
                 .workers = 0,
                 .servers = 0,
                 .components = {},
                 .image = options.image,
                 .worker_image = options.worker_image};
  KUMO_RETURN_IF_ERROR(TakeComponents(options.with, known, &run));
  KUMO_RETURN_IF_ERROR(CheckImage("--image", run.image));
  if (!run.worker_image.empty()) {
    KUMO_RETURN_IF_ERROR(CheckImage("--worker-image", run.worker_image));
  }
  return run;
}

int SayRefusedRun(const ExitReporter& exit_reporter, const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument) return exit_reporter.Report(status);
  return exit_reporter.Report(ExitCode::kUsage, status.message());
}

void TakeProcesses(const Experiment& experiment, ClusterRun* run) {
  if (run->workers == 0) run->workers = experiment.cluster.workers;
  if (run->servers == 0) {
    run->servers = std::max(1, static_cast<int>(experiment.cluster.servers.size()));
  }
}

std::vector<Status> ProblemsOfRunFolder(const LoadedExperiment& loaded, const ClusterRun& run,
                                        const std::string& out) {
  std::vector<Status> problems;
  std::error_code error;
  if (fs::symlink_status(out, error).type() != fs::file_type::not_found) {
    problems.push_back(FailedPrecondition(
        out + " exists; nothing is overwritten: choose another folder with --out"));
  }
  for (Status& problem : ProblemsInPods(loaded, run)) problems.push_back(std::move(problem));
  return problems;
}

std::vector<std::string> NotesOfRunFolder(const LoadedExperiment& loaded, const ClusterRun& run) {
  PlannedJob job{.loaded = loaded, .servers = run.servers};
  job.loaded.experiment.cluster.workers = run.workers;
  Preflight result;
  NoteIdleProcesses(job, /*chunks=*/0, &result);
  return result.notes;
}

// Writes to a temporary folder beside `out` first.
Status WriteRunFolder(const std::string& k8s, const LoadedExperiment& loaded,
                      const std::string& about, const ClusterRun& run, const std::string& out) {
  PosixFileSystem files;
  const std::string& network_file = loaded.experiment.network.file;
  std::string network;
  if (!loaded.experiment.worker.OwnsModel()) {
    KUMO_ASSIGN_OR_RETURN(network, ReadWholeFile(files, network_file, kMostNetworkBytes));
  }
  const fs::path source(k8s);
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
    if (!loaded.experiment.worker.OwnsModel()) {
      const std::string name = fs::path(network_file).filename().string();
      KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(unfinished, name), network));
    }
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

}  // namespace kumo
