#include "cli/manifests/run_manifests.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>

#include "common/base/fnv.h"
#include "common/base/text.h"
#include "common/settings/config_file.h"
#include "common/settings/option_table.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

// Kubernetes limits pod names to 63 characters and StatefulSet names to 52; a run's name is
// followed by "-server" or "-worker", an index and a Job's pod suffix.
constexpr size_t kLongestRunName = 40;
// Time to find nodes and to pull images.
constexpr double kJoinTimeoutS = 1800;
// kubectl logs cannot redraw lines.
constexpr double kIntervalS = 10;
// Added to checkpoint.grace_s before a pod is killed.
constexpr int kMarginS = 20;
// Placeholder of the workers' image, if the other containers have another one.
constexpr char kWorkerImage[] = "kumo-worker";
constexpr char kPort[] = "7700";
constexpr char kData[] = "/data";
constexpr char kKeys[] = "/keys";
constexpr char kOutput[] = "/output/";
constexpr char kModels[] = "/models/";

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

std::string BaseName(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

// True for paths on a volume of the server pods.
bool IsOnServersVolume(const std::string& path, const ClusterRun& run) {
  return path.starts_with(kOutput) || (run.Has("final-model") && path.starts_with(kModels));
}

// True for paths on the claim of the data, which the worker pods mount.
bool IsOnDataVolume(const std::string& path) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  return normal.starts_with(std::string(kData) + "/");
}

// Name of the file of network.initial_names, which may be a word: of a file beside network.file.
std::string NamesFile(const Experiment::Network& network) {
  const std::filesystem::path names = network.initial_names;
  if (names.has_extension()) return names.filename().string();
  return std::filesystem::path(network.file).stem().string() + "." + names.filename().string() +
         ".names";
}

std::string ServerAddresses(const ClusterRun& run) {
  const std::string service = run.name + "-server";
  std::string addresses;
  for (int index = 0; index < run.servers; ++index) {
    addresses += (index == 0 ? "tcp://" : ", tcp://") + service + "-" + std::to_string(index) +
                 "." + service + ":" + kPort;
  }
  return addresses;
}

// Settings that the run decides, whatever the experiment says.
std::map<std::string, std::string> SettingsOfRun(const LoadedExperiment& loaded,
                                                 const ClusterRun& run) {
  std::map<std::string, std::string> settings = {
      {"job.name", loaded.experiment.job.name},
      {"output.directory", kOutput + run.name},
      {"checkpoint.disks",
       WriteValue(run.Has("shared-volume") ? CheckpointDisks::kShared : CheckpointDisks::kPrivate)},
      {"cluster.servers", ServerAddresses(run)},
      {"cluster.workers", std::to_string(run.workers)},
      {"cluster.insecure", run.Has("keys") ? "false" : "true"},
  };
  if (!loaded.experiment.worker.OwnsModel()) {
    settings["network.file"] = BaseName(loaded.experiment.network.file);
    settings["data.directory"] = kData;
  }
  if (run.Has("final-model") && !IsOnServersVolume(loaded.experiment.output.final_model, run)) {
    settings["output.final_model"] = kModels + run.name;
  }
  if (!loaded.origins.contains("cluster.join_timeout_s")) {
    settings["cluster.join_timeout_s"] = WriteValue(kJoinTimeoutS);
  }
  if (!loaded.origins.contains("output.interval_s")) {
    settings["output.interval_s"] = WriteValue(kIntervalS);
  }
  return settings;
}

// The experiment as the pods read it, which has the run's numbers of servers and workers.
LoadedExperiment InPods(const LoadedExperiment& loaded, const ClusterRun& run) {
  LoadedExperiment in_pods = loaded;
  for (const auto& [key, value] : SettingsOfRun(loaded, run)) {
    const Status status = OptionTable::Shared().Find(key)->read(value, &in_pods.experiment);
    if (!status.ok()) in_pods.problems.push_back(key + " = " + value + ": " + status.message());
    in_pods.origins.erase(key);
  }
  if (run.Has("keys")) in_pods.experiment.cluster.keys = kKeys;
  return in_pods;
}

// Contradictions that the run's settings make. The experiment as it was read has none.
std::vector<std::string> ContradictionsInPods(const LoadedExperiment& loaded,
                                              const ClusterRun& run) {
  LoadedExperiment in_pods = InPods(loaded, run);
  CrossCheck(in_pods.experiment, in_pods.origins, &in_pods.problems, &in_pods.notes);
  const int least = in_pods.experiment.cluster.min_workers;
  if (run.workers < least) {
    in_pods.problems.push_back(
        "cluster.min_workers = " + std::to_string(least) + ", but the run has " +
        Counted(run.workers, "worker") + ", so it would wait without end; use --workers " +
        std::to_string(least) + " or set cluster.min_workers = " + std::to_string(run.workers));
  }
  return in_pods.problems;
}

// Settings that the manifests decide: pods have fixed places for unpacked data and keys, and a
// fixed port for their page; and each start of a pod resumes.
bool IsLeftOut(const Option& option) {
  return option.scope == Scope::kMachine || option.key == "checkpoint.resume";
}

// A string of YAML, which would take on, null and 1e5 for other types. text: without quotes and
// backslashes.
std::string YamlString(const std::string& text) { return "\"" + text + "\""; }

// An entry of `images`. name: of the image in the base and the components.
std::string ImageText(std::string_view name, const std::string& image) {
  const size_t digest = image.find('@');
  const std::string reference = image.substr(0, digest);
  const size_t tag = reference.rfind(':');
  const bool has_tag = tag != std::string::npos && reference.find('/', tag) == std::string::npos;
  std::string text = "  - name: " + std::string(name) +
                     "\n    newName: " + YamlString(reference.substr(0, has_tag ? tag : digest)) +
                     "\n";
  if (digest != std::string::npos) {
    return text + "    digest: " + YamlString(image.substr(digest + 1)) + "\n";
  }
  return text + "    newTag: " + YamlString(has_tag ? reference.substr(tag + 1) : "latest") + "\n";
}

std::string Patch(std::string_view kind, std::string_view component, std::string_view operations) {
  return "  - target: {kind: " + std::string(kind) +
         ", labelSelector: app.kubernetes.io/component=" + std::string(component) +
         "}\n    patch: |-\n" + std::string(operations);
}

std::string Replace(const std::string& path, const std::string& value) {
  return "      - {op: replace, path: " + path + ", value: " + value + "}\n";
}

// A StatefulSet's selector is immutable, so a StatefulSet of an edited experiment is refused as a
// whole. Without this, kubectl would continue after the refused ConfigMap and change the number of
// servers of the unrelated run.
std::string ExperimentInSelector(const std::string& experiment) {
  Fnv1a hash;
  hash.Add(experiment);
  const std::string text = YamlString(HexDigits(hash.value()));
  std::string operations;
  for (const char* labels : {"/spec/selector/matchLabels", "/spec/template/metadata/labels"}) {
    operations += std::string("      - {op: add, path: ") + labels +
                  "/kumo~1experiment, value: " + text + "}\n";
  }
  return operations;
}

// Resources of a server or worker pod.
std::string PodPatch(std::string_view component, const std::string& kind, int threads,
                     double grace_s, const std::string& more) {
  const int seconds = static_cast<int>(std::ceil(grace_s)) + kMarginS;
  return Patch(
      kind, component,
      more + Replace("/spec/template/spec/terminationGracePeriodSeconds", std::to_string(seconds)) +
          Replace("/spec/template/spec/containers/0/resources/requests/cpu",
                  YamlString(std::to_string(threads))));
}

}  // namespace

bool ClusterRun::Has(std::string_view component) const {
  return std::find(components.begin(), components.end(), component) != components.end();
}

Status CheckRunName(const std::string& name) {
  const auto allowed = [](char c) { return IsLowerOrDigit(c) || c == '-'; };
  if (!name.empty() && name.size() <= kLongestRunName && name[0] >= 'a' && name[0] <= 'z' &&
      name.back() != '-' && std::all_of(name.begin(), name.end(), allowed)) {
    return OkStatus();
  }
  return InvalidArgument(
      "must begin with a letter, contain only lower-case letters, digits and '-' (RFC 1123), have "
      "at most " +
      std::to_string(kLongestRunName) + " characters, and not end with '-'");
}

std::string RunNameOf(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    name += IsLowerOrDigit(lower) ? lower : '-';
  }
  return name;
}

std::vector<Status> ProblemsInPods(const LoadedExperiment& loaded, const ClusterRun& run) {
  const Experiment& experiment = loaded.experiment;
  std::vector<Status> problems;
  const auto say = [&](const std::string& text) { problems.push_back(FailedPrecondition(text)); };
  if (experiment.worker.OwnsModel() && run.worker_image.empty()) {
    say("worker.command = " + experiment.worker.command +
        ": Kumo's own image has no such program; make an image with it and name it with "
        "--worker-image (docs/kubernetes.md#programs-of-workercommand)");
  }
  for (const std::string& file : {experiment.data.text, experiment.data.train_images,
                                  experiment.data.train_labels, experiment.data.validation_images,
                                  experiment.data.validation_labels, experiment.data.class_list}) {
    if (file.starts_with('/')) {
      say("the data file " + file + " is a path of this machine; name it relative to " +
          "data.directory, which is " + kData + " in the pods");
    }
  }
  const auto copy_to_data = [&](const std::string& key, const std::string& path,
                                const std::string& file) {
    if (path.empty() || IsOnDataVolume(path)) return;
    say(key + " = " + path + ": the workers' pods do not have it; copy " + file +
        " to the claim kumo-data and set " + key + "=" + kData + "/" + file);
  };
  const Experiment::Network& of_network = experiment.network;
  copy_to_data("network.initial_weights", of_network.initial_weights,
               BaseName(of_network.initial_weights));
  copy_to_data("network.initial_names", of_network.initial_names, NamesFile(of_network));
  const std::string& model = experiment.output.final_model;
  if (!model.empty() && !run.Has("final-model") && !IsOnServersVolume(model, run)) {
    say("output.final_model = " + model +
        " is a path of this machine; add --with final-model, which puts the model on the claim "
        "kumo-models, or leave it with the checkpoints with --set output.final_model=");
  }
  const std::string network = BaseName(experiment.network.file);
  if (!experiment.worker.OwnsModel() &&
      !std::all_of(network.begin(), network.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
      })) {
    say("network.file = " + network +
        " has a name that a ConfigMap cannot have; use letters, digits, '-', '_' and '.' only");
  }
  if (!experiment.network.device.is_cpu() && !run.Has("gpu")) {
    say("network.device = " + experiment.network.device.ToString() +
        ", but the workers get no GPU; add --with gpu");
  }
  if (!experiment.cluster.keys.empty() && !run.Has("keys")) {
    say("cluster.keys = " + experiment.cluster.keys +
        " is a folder of this machine; put the keys into Secrets and add --with keys");
  }
  if (run.Has("kueue") && run.Has("workers-statefulset")) {
    say("kueue requires a Job of workers; remove kueue or workers-statefulset");
  }
  for (const std::string& problem : ContradictionsInPods(loaded, run)) say(problem);
  return problems;
}

bool SharesFinalModel(const Experiment& experiment, const ClusterRun& run) {
  const std::string& model = experiment.output.final_model;
  return (run.Has("final-model") && model.starts_with(kModels)) ||
         (run.Has("shared-volume") && model.starts_with(kOutput));
}

std::string PodExperimentText(const LoadedExperiment& loaded, const ClusterRun& run,
                              const std::string& about) {
  const OptionTable& table = OptionTable::Shared();
  const std::map<std::string, std::string> of_run = SettingsOfRun(loaded, run);
  std::string text;
  for (size_t at = 0; at < about.size();) {
    const size_t end = std::min(about.find('\n', at), about.size());
    text += end == at ? "#\n" : "# " + about.substr(at, end - at) + "\n";
    at = end + 1;
  }
  text += "#\n# Made by kumo manifests for the pods of the run " + run.name + ".\n";
  std::string section;
  for (const Option& option : table.options()) {
    const auto decided = of_run.find(option.key);
    std::string value;
    if (decided != of_run.end()) {
      value = decided->second;
    } else if (loaded.origins.contains(option.key) && !IsLeftOut(option)) {
      value = option.write(loaded.experiment);
      if (option.base != PathBase::kNone) value = WithoutVariables(value);
    } else {
      continue;
    }
    if (option.section() != section) {
      section = option.section();
      text += "\n[" + section + "]\n";
    }
    text += option.name() + " = " + Quoted(value) + "\n";
  }
  return text;
}

std::string KustomizationText(const LoadedExperiment& loaded, const ClusterRun& run) {
  const Experiment& experiment = loaded.experiment;
  const bool owns_model = experiment.worker.OwnsModel();
  std::string text =
      "# Made by kumo manifests: kubectl apply -k THIS-FOLDER\n"
      "apiVersion: kustomize.config.k8s.io/v1beta1\n"
      "kind: Kustomization\n"
      "resources: [base]\n";
  if (!run.components.empty()) {
    text += "components:\n";
    for (const std::string& component : run.components) {
      text += "  - components/" + component + "\n";
    }
  }
  text += "namePrefix: " + YamlString(run.name + "-") + "\n";
  text += "labels:\n  - pairs: {app.kubernetes.io/instance: " + YamlString(run.name) +
          "}\n    includeSelectors: true\n"
          // A selector that Kustomize does not know.
          "    fields: [{kind: PodMonitor, path: spec/selector/matchLabels, create: true}]\n";
  text += "images:\n" + ImageText("kumo", run.image);
  if (!run.worker_image.empty()) text += ImageText(kWorkerImage, run.worker_image);
  text +=
      "# An edited experiment is another run. The name stays and the content cannot change, so "
      "that\n"
      "# to apply one under a name that is there is refused before anything else is touched.\n"
      "configMapGenerator:\n  - name: experiment\n    files: [experiment.conf" +
      (owns_model ? "" : ", " + YamlString(BaseName(experiment.network.file))) +
      "]\n    options: {immutable: true, disableNameSuffixHash: true}\n";
  const bool job = !run.Has("workers-statefulset");
  text += "replicas:\n  - {name: server, count: " + std::to_string(run.servers) + "}\n";
  const std::string workers = std::to_string(run.workers);
  if (!job) text += "  - {name: worker, count: " + workers + "}\n";
  std::string of_workers =
      job ? Replace("/spec/completions", workers) + Replace("/spec/parallelism", workers) : "";
  const std::string container = "/spec/template/spec/containers/0/";
  if (!run.worker_image.empty()) of_workers += Replace(container + "image", kWorkerImage);
  // A program has its page from when it joins until the job ends, but imports and reads data before
  // and may go on afterwards. Server 0 misses a worker sooner than a probe.
  if (owns_model && job) {
    of_workers += "      - {op: remove, path: " + container + "livenessProbe}\n";
  }
  const std::string selector = ExperimentInSelector(PodExperimentText(loaded, run, ""));
  text += "patches:\n";
  text += PodPatch("server", "StatefulSet", experiment.cluster.server_threads,
                   experiment.checkpoint.grace_s, selector);
  text += PodPatch("worker", job ? "Job" : "StatefulSet", experiment.network.threads,
                   experiment.checkpoint.grace_s, job ? of_workers : of_workers + selector);
  return text;
}

}  // namespace kumo
