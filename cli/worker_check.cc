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

// On one device; "" is the experiment's.
JobSize CheckOn(const std::string& device, bool first, const JobArguments& args,
                Preflight* result) {
  ChildSpec spec;
  spec.command = args.experiment.Forward();
  spec.command.insert(spec.command.begin(), args.experiment.Binary("kumo-worker"));
  if (!device.empty())
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + device});
  spec.command.push_back("--check");
  // The last words of the worker are this command's to say.
  spec.environment = {{"KUMO_TERMINATION_LOG", ""}};
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
  return {NumberBefore("parameter", output), NumberBefore("chunk", output), end->peak_bytes};
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
    const JobSize found = CheckOn(devices[i], i == 0, args, result);
    size.parameters = std::max(size.parameters, found.parameters);
    size.chunks = std::max(size.chunks, found.chunks);
    size.worker_bytes = std::max(size.worker_bytes, found.worker_bytes);
  }
  return size;
}

}  // namespace kumo
