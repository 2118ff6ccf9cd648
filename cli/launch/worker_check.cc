#include "cli/launch/worker_check.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "cli/launch/child_process.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"

namespace kumo {

namespace {

using google::protobuf::Struct;

constexpr std::string_view kWarning = Logging::kWarning;

int64_t WholeNumber(const Struct& object, const std::string& name) {
  const auto field = object.fields().find(name);
  if (field == object.fields().end()) return 0;
  const double number = field->second.number_value();
  constexpr double kTooLarge = 9223372036854775808.0;  // 2^63
  if (!(number >= 0)) return 0;
  return number < kTooLarge ? static_cast<int64_t>(number) : std::numeric_limits<int64_t>::max();
}

JobSize::Memory NeedIn(const Struct& object, const std::string& whose) {
  const auto field = object.fields().find(whose);
  if (field == object.fields().end()) return {};
  const Struct& need = field->second.struct_value();
  const auto most = need.fields().find("most");
  return {WholeNumber(need, "bytes"),
          most == need.fields().end() ? "" : most->second.string_value()};
}

// Parses the JSON line of a worker's output. others: receives the lines for people.
JobSize SizeIn(const std::string& output, std::vector<std::string>* others) {
  JobSize size;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    Struct answer;
    if (line.starts_with("{") && google::protobuf::util::JsonStringToMessage(line, &answer).ok()) {
      size = {WholeNumber(answer, "parameters"), WholeNumber(answer, "chunks"),
              NeedIn(answer, "worker"), NeedIn(answer, "server")};
    } else {
      others->push_back(line);
    }
  }
  return size;
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
