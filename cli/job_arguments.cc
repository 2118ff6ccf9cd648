#include "cli/job_arguments.h"

#include "common/checkpoint/source_checkpoint.h"
#include "common/job/shard_map.h"
#include "common/settings/option_table.h"

namespace kumo {

void JobArguments::AddTo(CommandLine* line) {
  experiment.AddTo(line);
  line->AddOption("workers", "N", {.min = 1, .max = 4096}, "Worker processes", &workers,
                  "cluster.workers");
  line->AddOption("servers", "M", {.min = 1, .max = kMaxServers}, "Server processes", &servers,
                  "as many as cluster.servers names, else 1");
  line->AddOption("devices", "LIST", OptionTable().Find("network.device")->allowed,
                  "What worker 0, 1, ... computes on, from the start again when the list ends",
                  &devices, "network.device");
  line->AddFlag("continue",
                "Go on from the last checkpoint also where settings have changed since, from there "
                "on; the network and the data must be the same",
                &continues);
  line->AddOption("from", "WEIGHTS", Allowed(),
                  "Begin with other weights: of another job, the newest in its output folder or a "
                  "checkpoint's, or those of a file, .safetensors or .npz; by tensors' names, so "
                  "that a new head is fine (network.initial_weights)",
                  &from, "random weights");
  line->AddFlag("verbose", "Show all settings, not only those that differ from the defaults",
                &verbose);
}

void JobArguments::PassOn() {
  if (continues) experiment.sets.emplace_back("checkpoint.continue=true");
  if (from.empty()) return;
  // All processes are to mean the same checkpoint, also while that job goes on. What is wrong with
  // it says who needs it, which a job with checkpoints of its own does not.
  PosixFileSystem files;
  const Result<CheckpointFolder> found = FindCheckpointAt(files, from);
  std::string set = "network.initial_weights=";
  for (const char c : found.ok() ? found->path() : from) {
    if (c == '$') set += c;  // not a variable
    set += c;
  }
  experiment.sets.push_back(std::move(set));
}

PlannedJob PlanJob(const CliEnvironment& environment, const JobArguments& args) {
  PlannedJob job;
  job.loaded = LoadExperiment(args.experiment.file, args.experiment.sets, environment.variables);
  auto& cluster = job.loaded.experiment.cluster;
  if (args.workers > 0) {
    cluster.workers = args.workers;
    job.loaded.origins["cluster.workers"] = "--workers";
  }
  const int named = static_cast<int>(cluster.servers.size());
  job.servers = named > 0 ? named : args.servers > 0 ? args.servers : 1;
  if (args.servers != 0 && args.servers != job.servers) {
    job.loaded.problems.push_back("--servers " + std::to_string(args.servers) +
                                  ", but cluster.servers names " + std::to_string(named) +
                                  "; leave one of them out, or --set cluster.servers=");
  }
  // CrossCheck says it where cluster.servers names one.
  if (named == 0 && cluster.replicas > job.servers) {
    job.loaded.problems.push_back("cluster.replicas = " + std::to_string(cluster.replicas) +
                                  ": needs as many servers; start them with --servers " +
                                  std::to_string(cluster.replicas));
  }
  return job;
}

}  // namespace kumo
