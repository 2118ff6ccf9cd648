#include "cli/worker_check.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/child_process.h"
#include "common/base/process/exit_code.h"

namespace kumo {
namespace {

// The number in front of the word that begins so ("parameters") in what the worker prints, or 0.
int64_t NumberBefore(std::string_view unit, const std::string& output) {
  std::istringstream words(output);
  std::string before, word;
  while (words >> word) {
    int64_t number = 0;
    const char* const end = before.data() + before.size();
    const auto [stop, error] = std::from_chars(before.data(), end, number);
    if (word.starts_with(unit) && error == std::errc() && !before.empty() && stop == end) {
      return number;
    }
    before = std::exchange(word, "");
  }
  return 0;
}

// What a worker says that a process needs: "memory   a worker needs 134 MiB (140509184 bytes):",
// and in the lines below what for, the largest first.
JobSize::Memory NeedOf(const std::string& whose, const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t number = line.find('(');
    if (line.find(whose + " needs ") == std::string::npos || number == std::string::npos) continue;
    JobSize::Memory need = {NumberBefore("bytes", line.substr(number + 1)), ""};
    std::string word;
    std::getline(lines, line);
    std::istringstream words(line);
    words >> word;  // "memory"
    while (words >> word) need.most += (need.most.empty() ? "" : " ") + word;
    return need;
  }
  return {};
}

// The code that a process's exit code stands for.
StatusCode CodeOf(int exit_code) {
  const bool again = exit_code == static_cast<int>(ExitCode::kUnavailable);
  return again ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition;
}

// The worker's last line says what is wrong, those before it how it came to that.
void TakeRefusal(int exit_code, const std::string& output, Preflight* result) {
  std::istringstream lines(output);
  std::vector<std::string> told;
  for (std::string line; std::getline(lines, line);) told.push_back(line);
  std::string last = "kumo-worker --check ended with exit code " + ExitCodeText(exit_code);
  if (!told.empty()) {
    last = WithoutProgram(told.back());
    told.pop_back();
  }
  result->told.insert(result->told.end(), told.begin(), told.end());
  result->problems.emplace_back(CodeOf(exit_code), last);
}

// What the worker prints of its device alone; the rest is the same on all of them.
bool IsAboutDevice(const std::string& line) {
  return line.starts_with("device ") || line.starts_with("memory ");
}

// A worker that is asked something of the job. Its last words are this command's to say.
ChildSpec WorkerThatSays(const std::string& option, const JobArguments& args,
                         const PlannedJob& job) {
  ChildSpec spec;
  spec.command = args.experiment.Forward();
  spec.command.insert(spec.command.begin(), args.experiment.Binary("kumo-worker"));
  spec.command.insert(
      spec.command.end(),
      {"--set", "cluster.workers=" + std::to_string(job.loaded.experiment.cluster.workers), option,
       "--servers", std::to_string(job.servers)});
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
  return spec;
}

// On one device; "" is the experiment's.
JobSize CheckOn(const std::string& device, bool first, const JobArguments& args,
                const PlannedJob& job, Preflight* result) {
  ChildSpec spec = WorkerThatSays("--check", args, job);
  if (!device.empty())
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + device});
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  // That the program is not there is said by CheckPrograms.
  if (!end.ok()) return {};
  if (end->code != 0) {
    TakeRefusal(end->code, output, result);
    return {};
  }
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (first || IsAboutDevice(line)) result->passed.push_back(line);
  }
  return {NumberBefore("parameter", output), NumberBefore("chunk", output),
          NeedOf("a worker", output), NeedOf("a server", output)};
}

}  // namespace

JobSize CheckByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result) {
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

JobSize MemoryByWorker(const JobArguments& args, const PlannedJob& job) {
  ChildSpec spec = WorkerThatSays("--memory", args, job);
  if (!args.devices.empty()) {
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + args.devices.front()});
  }
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  if (!end.ok() || end->code != 0) return {};
  return {.worker = NeedOf("a worker", output), .server = NeedOf("a server", output)};
}

}  // namespace kumo
