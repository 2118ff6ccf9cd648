#include "cli/launch/worker_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launch/child_process.h"
#include "cli/launch/json_answer.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"

namespace kumo {

namespace {

constexpr std::string_view kWarning = Logging::kWarning;

JobSize::Memory NeedIn(const JsonAnswer& answer, const std::string& whose) {
  const JsonAnswer need = answer.Object(whose);
  return {need.Count("bytes"), need.Text("most")};
}

// The JSON line of a worker's output. others: receives the lines for people.
JobSize SizeIn(const std::string& output, std::vector<std::string>* others) {
  const JsonAnswer answer = JsonAnswer::LineIn(output, others);
  return {answer.Count("parameters"), answer.Count("chunks"), NeedIn(answer, "worker"),
          NeedIn(answer, "server")};
}

// True for the lines about the device; the other lines are the same on all devices.
bool IsAboutDevice(const std::string& line) {
  return line.starts_with("device ") || line.starts_with("memory ");
}

// True for a line that belongs to the line above.
bool IsTableRow(const std::string& line) { return line.starts_with("  "); }

// A worker that answers a question about the job. This command reports its errors.
ChildSpec WorkerThatSays(const std::string& option, const JobArguments& args,
                         const PlannedJob& job) {
  ChildSpec spec;
  spec.command = args.experiment.Forward();
  spec.command.insert(spec.command.begin(), args.experiment.Binary("kumo-worker"));
  spec.command.insert(
      spec.command.end(),
      {"--set", "cluster.workers=" + std::to_string(job.loaded.experiment.cluster.workers), option,
       "--json", "--servers", std::to_string(job.servers)});
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  return spec;
}

// Checks one device; "" is the experiment's.
JobSize CheckOn(const std::string& device, bool first, const JobArguments& args,
                const PlannedJob& job, Preflight* result) {
  ChildSpec spec = WorkerThatSays("--check", args, job);
  if (args.columns > 0) {
    spec.command.insert(spec.command.end(), {"--columns", std::to_string(args.columns)});
  }
  if (!device.empty()) {
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + device});
  }
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  // CheckPrograms reports a missing program.
  if (!end.ok()) return {};
  if (end->code != 0) {
    // The lines before the problem are its context.
    result->problems.push_back(ErrorOf("kumo-worker --check", *end, output, &result->told));
    return {};
  }
  std::vector<std::string> lines;
  const JobSize size = SizeIn(output, &lines);
  bool counts = first;
  for (const std::string& line : lines) {
    if (!IsTableRow(line)) counts = first || IsAboutDevice(line);
    if (!counts) continue;
    if (!line.starts_with(kWarning)) {
      result->passed.push_back(line);
      continue;
    }
    // The data check may have found the same.
    const std::string note = line.substr(kWarning.size());
    if (std::ranges::find(result->notes, note) == result->notes.end()) {
      result->notes.push_back(note);
    }
  }
  return size;
}

}  // namespace

JobSize CheckByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result) {
  if (job.loaded.experiment.worker.OwnsModel()) return {};
  std::vector<std::string> devices;
  for (int i = 0; i < job.loaded.experiment.cluster.workers && !args.devices.empty(); ++i) {
    const std::string& device = args.devices[i % args.devices.size()];
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  if (devices.empty()) devices.emplace_back();
  JobSize size;
  for (size_t i = 0; i < devices.size(); ++i) {
    const JobSize found = CheckOn(devices[i], i == 0, args, job, result);
    size.parameters = std::max(size.parameters, found.parameters);
    size.chunks = std::max(size.chunks, found.chunks);
    if (found.worker.bytes > size.worker.bytes) size.worker = found.worker;
    if (found.server.bytes > size.server.bytes) size.server = found.server;
  }
  return size;
}

JobSize MemoryByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result) {
  if (job.loaded.experiment.worker.OwnsModel()) return {};
  ChildSpec spec = WorkerThatSays("--memory", args, job);
  if (!args.devices.empty()) {
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + args.devices.front()});
  }
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  if (!end.ok()) return {};
  if (end->code == static_cast<int>(ExitCode::kBadConfiguration)) {
    result->problems.push_back(ErrorOf("kumo-worker --memory", *end, output));
  }
  if (end->code != 0) return {};
  std::vector<std::string> lines;
  const JobSize size = SizeIn(output, &lines);
  for (const std::string& line : lines) {
    if (line.starts_with(kWarning)) result->notes.push_back(line.substr(kWarning.size()));
  }
  return size;
}

}  // namespace kumo
