#include "cli/launch/launch_plan.h"

#include <utility>

#include "cli/launch/hosts.h"
#include "common/base/file.h"
#include "common/settings/option_value.h"
#include "common/settings/worker_program.h"

namespace kumo {

std::vector<std::string> OnHost(const LaunchArguments& args, const std::string& host,
                                const std::vector<std::string>& command) {
  std::vector<std::string> remote = {args.kumo, "remote", "--host", host, "--ssh", args.ssh, "--"};
  remote.insert(remote.end(), command.begin(), command.end());
  return remote;
}

Result<LaunchPlan> MakeLaunchPlan(const LaunchArguments& args, const Experiment& experiment,
                                  const std::vector<std::string>& servers, const std::string& http,
                                  const std::string& log_directory) {
  LaunchPlan plan;
  plan.supervisor.servers = static_cast<int>(servers.size());
  plan.supervisor.workers = experiment.cluster.workers;
  plan.supervisor.max_restarts = args.max_restarts;
  const double grace_s = args.grace_s > 0 ? args.grace_s : experiment.checkpoint.grace_s;
  plan.supervisor.grace_us = static_cast<TimeUs>(grace_s * kSecond);
  plan.supervisor.stall_us = static_cast<TimeUs>(experiment.cluster.stall_timeout_s * kSecond);
  plan.log_directory = log_directory;
  plan.checkpoints = JoinPath(experiment.output.directory, "checkpoints");
  plan.quiet = args.quiet;
  const ExperimentArguments& file = args.job.experiment;
  std::vector<std::string> common = file.Forward();
  std::vector<std::string> planned = {
      "cluster.servers=" + WriteValue(servers),
      "cluster.workers=" + std::to_string(experiment.cluster.workers)};
  if (experiment.worker.OwnsModel()) {
    planned.push_back("cluster.join_timeout_s=" + WriteValue(experiment.cluster.join_timeout_s));
  }
  for (const std::string& set : planned) common.insert(common.end(), {"--set", set});
  const auto add = [&](ProcessId id, const char* binary, const char* option, std::string value) {
    std::vector<std::string>& command = plan.commands[id];
    command = {file.Binary(binary)};
    command.insert(command.end(), common.begin(), common.end());
    command.insert(command.end(), {option, std::move(value)});
  };
  for (int i = 0; i < plan.supervisor.servers; ++i) {
    add({ProcessId::Role::kServer, i}, "kumo-server", "--index", std::to_string(i));
  }
  if (!http.empty()) {
    std::vector<std::string>& command = plan.commands[kServer0];
    command.insert(command.end(), {"--http", http});
  }
  // Each server has a folder of its own, on one machine too; server 0's is output.directory itself.
  for (int i = 1; i < plan.supervisor.servers && experiment.checkpoint.HasPrivateDisks(); ++i) {
    const std::string disk = "disks/server-" + std::to_string(i);
    std::vector<std::string>& command = plan.commands[{ProcessId::Role::kServer, i}];
    command.insert(command.end(), {"--disk", JoinPath(experiment.output.directory, disk)});
  }
  plan.commands[kServer0].insert(plan.commands[kServer0].end(), {"--run", args.run});
  std::vector<std::string> program;
  std::vector<std::string> sets = file.sets;
  sets.insert(sets.end(), planned.begin(), planned.end());
  if (experiment.worker.OwnsModel()) {
    KUMO_ASSIGN_OR_RETURN(program,
                          args.hosts.empty()
                              ? WorkerProgram(experiment, args.job.variables)
                              : RemoteWorkerProgram(experiment, file.share, args.job.variables));
  }
  const std::vector<std::string>& devices = args.job.devices;
  for (int i = 0; i < plan.supervisor.workers; ++i) {
    const ProcessId id{ProcessId::Role::kWorker, i};
    const std::string device = devices.empty() ? "" : devices[i % devices.size()];
    if (experiment.worker.OwnsModel()) {
      plan.commands[id] = program;
      plan.environment[id] = WorkerEnvironment({.share = file.share,
                                                .file = file.file,
                                                .sets = sets,
                                                .name = id.Name(),
                                                .device = device,
                                                .http = ""},
                                               args.job.variables);
      continue;
    }
    add(id, "kumo-worker", "--name", id.Name());
    if (device.empty()) continue;
    plan.commands[id].insert(plan.commands[id].end(), {"--set", "network.device=" + device});
  }
  if (args.hosts.empty()) return plan;
  KUMO_ASSIGN_OR_RETURN(const HostPlacement placement,
                        Place(args.hosts, servers, plan.supervisor.workers));
  for (auto& [id, command] : plan.commands) {
    const bool server = id.role == ProcessId::Role::kServer;
    if (server) command.insert(command.end(), {"--bind", placement.binds[id.index]});
    plan.hosts[id] = (server ? placement.servers : placement.workers)[id.index];
    command = OnHost(args, plan.hosts[id], command);
  }
  return plan;
}

}  // namespace kumo
