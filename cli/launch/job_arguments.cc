#include "cli/launch/job_arguments.h"

#include "common/checkpoint/source_checkpoint.h"
#include "common/job/shard_map.h"
#include "common/settings/config_file.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// Default of cluster.join_timeout_s for programs of worker.command, which import their libraries
// and read their data before they join. The launcher notices one that ends meanwhile.
constexpr double kProgramsJoinTimeoutS = 600;

}  // namespace

void JobArguments::AddTo(CommandLine* line) {
  experiment.AddTo(line);
  line->AddOption("workers", "N", {.min = 1, .max = 4096}, "Number of worker processes", &workers,
                  "cluster.workers");
  line->AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Number of server processes",
                  &servers, "from cluster.servers, or 1");
  line->AddOption("devices", "LIST", OptionTable::Shared().Find("network.device")->allowed,
                  "Devices of workers 0, 1, ..., repeated from the start of the list", &devices,
                  "network.device");
  line->AlsoCalled("gpus gpu gpu_ids");
  line->AddFlag("continue",
                "Resume from the last checkpoint even if settings or the data have changed since; "
                "the network's tensors and the form of the samples must be the same",
                &continues);
  line->AddOption("from", "WEIGHTS", Allowed(),
                  "Initial weights: the newest checkpoint in another job's output folder, a "
                  "checkpoint's folder, or a file (.safetensors, .npz); matched by tensor name, so "
                  "that a new head is fine (network.initial_weights)",
                  &from, "random weights");
  line->AddFlag("partial",
                "With --from: start even if fewer than half of the network's tensors are in "
                "WEIGHTS (network.initial_partial)",
                &partial);
  line->AddFlag("verbose", "Show all settings, also the ones with default values", &verbose);
}

Status JobArguments::PassOn() {
  if (continues) experiment.sets.emplace_back("checkpoint.continue=true");
  if (partial) experiment.sets.emplace_back("network.initial_partial=true");
  if (from.empty()) return OkStatus();
  // Resolves --from once, so that all processes use the same checkpoint even while that job runs.
  // An error is reported only if the weights are needed, which a job with checkpoints of its own
  // does not.
  PosixFileSystem files;
  const Result<CheckpointFolder> found = FindCheckpointAt(files, from);
  std::string path = found.ok() ? found->path() : from;
  if (path.starts_with('~')) path.insert(0, "./");
  if (path.find('"') != std::string::npos) {
    return InvalidArgument("--from " + path +
                           ": no setting can hold a path with a double quote; rename the folder");
  }
  experiment.sets.push_back("network.initial_weights=" + Quoted(WithoutVariables(path)));
  return OkStatus();
}

PlannedJob PlanJob(const CliEnvironment& environment, const JobArguments& args) {
  PlannedJob job;
  job.loaded = LoadExperiment(args.experiment.file, args.experiment.sets, environment.variables);
  auto& cluster = job.loaded.experiment.cluster;
  if (args.workers > 0) {
    cluster.workers = args.workers;
    job.loaded.origins["cluster.workers"] = "--workers";
  }
  if (job.loaded.experiment.worker.OwnsModel()) {
    const bool unset =
        job.loaded.origins.emplace("cluster.join_timeout_s", "worker.command").second;
    if (unset) cluster.join_timeout_s = kProgramsJoinTimeoutS;
  }
  const int named = static_cast<int>(cluster.servers.size());
  job.servers = named > 0 ? named : args.servers > 0 ? args.servers : 1;
  if (args.servers != 0 && args.servers != job.servers) {
    job.loaded.problems.push_back(
        "--servers " + std::to_string(args.servers) + ", but cluster.servers has " +
        std::to_string(named) +
        " addresses; remove one of the two, for example with --set cluster.servers=");
  }
  if (args.partial && job.loaded.experiment.network.initial_weights.empty()) {
    job.loaded.problems.push_back(
        "--partial, but there are no initial weights; give them with --from WEIGHTS");
  }
  if (named == 0) {
    const std::string problem =
        ProblemOfReplicas(job.loaded.experiment, job.loaded.origins, job.servers);
    if (!problem.empty()) job.loaded.problems.push_back(problem);
  }
  return job;
}

}  // namespace kumo
