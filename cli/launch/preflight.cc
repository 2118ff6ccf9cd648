#include "cli/launch/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "cli/launch/child_process.h"
#include "cli/launch/server_addresses.h"
#include "cli/launch/supervisor.h"
#include "common/base/memory_budget.h"
#include "common/base/printable.h"
#include "common/base/process/exit_report.h"
#include "common/base/process/logging.h"
#include "common/base/process/output_lock.h"
#include "common/base/terminal.h"
#include "common/base/thread_pool.h"
#include "common/checkpoint/final_model.h"
#include "common/transport/key_files.h"

namespace kumo {

namespace {

// Slots of any rule and optimiser: momentum has one, Adam two.
constexpr int64_t kMostSlots = 2;

// Space for logs, curves and a small network, if the network's size is unknown.
constexpr int64_t kLeastFreeBytes = int64_t{64} << 20;

// "3 workers".
std::string Count(int64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

// Adds a setting to an error; keeps its code.
Status About(const std::string& setting, const Status& status, const std::string& advice = "") {
  return Status(status.code(), setting + ": " + status.message() + advice);
}

// Returns false if the folder cannot be used at all.
bool CheckFolder(const std::string& setting, const std::string& directory, FileSystem* files,
                 Preflight* result) {
  const Status writable = files->CheckWritable(directory);
  if (!writable.ok()) {
    result->problems.push_back(About(setting + ": cannot be written", writable,
                                     "; set output.directory to a writable folder"));
    return false;
  }
  const Status logs = files->CheckWritable(JoinPath(directory, "logs"));
  if (!logs.ok()) {
    result->problems.push_back(About(setting + ": no logs can be written", logs));
    return false;
  }
  const Status unused = OutputLock::Probe(directory);
  if (!unused.ok()) {
    result->problems.push_back(unused);
    return false;
  }
  result->passed.push_back("output " + directory + ": writable, and no job is using it");
  return true;
}

}  // namespace

void CheckStart(const JobArguments& args, const PlannedJob& job, const JobSize& size,
                FileSystem* files, Preflight* result) {
  CheckPrograms(args.experiment, result);
  CheckAddresses(job, result);
  CheckKeys(job, result);
  CheckPage(job, result);
  CheckOutput(job.loaded.experiment, size.parameters, files, result);
  CheckFinalModel(job.loaded.experiment, size.parameters, files, result);
  NoteIdleProcesses(job, size.chunks, result);
}

void CheckPrograms(const ExperimentArguments& args, Preflight* result) {
  bool all = true;
  for (const char* name : {"kumo-server", "kumo-worker"}) {
    const std::string path = args.Binary(name);
    if (access(path.c_str(), X_OK) == 0) continue;
    all = false;
    result->problems.push_back(FailedPrecondition(
        path +
        " does not exist or cannot be executed; build it, or give its folder with --bin-dir DIR"));
  }
  if (all) result->passed.push_back("programs in " + args.binary_directory);
}

void CheckAddresses(const PlannedJob& job, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const std::vector<std::string>& servers = experiment.cluster.servers;
  if (servers.empty()) {
    const auto reserved = ReservePorts(job.servers);
    if (reserved.ok()) {
      result->passed.push_back("ports: " + Count(job.servers, "free one") + " on 127.0.0.1");
    } else {
      result->problems.push_back(reserved.status());
    }
  }
  const bool one_machine = IsForOneMachine(experiment).ok();
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string server = "server " + std::to_string(i) + " at " + servers[i];
    const bool may_be_open = experiment.cluster.insecure || !experiment.cluster.keys.empty();
    const Status status = TryAddress(servers[i], may_be_open);
    if (status.ok()) {
      result->passed.push_back(server + ": the address is free");
    } else if (!one_machine && status.code() == StatusCode::kFailedPrecondition) {
      result->passed.push_back(server + ": not checked, the address is another machine's (" +
                               status.message() + ")");
    } else {
      result->problems.push_back(About("cluster.servers", status));
    }
  }
}

void CheckKeys(const PlannedJob& job, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const std::string& folder = experiment.cluster.keys;
  if (folder.empty()) return;
  const Result<AllowList> allowed = ReadAllowList(folder);
  Status status = allowed.status();
  for (int i = 0; i < job.servers && status.ok(); ++i) {
    if (allowed->Find(ServerKey(i)) != nullptr) continue;
    status = FailedPrecondition(
        "cluster.keys = " + folder + ": the allow list has no key of server " + std::to_string(i) +
        "; add it with kumo keys " + folder + " --servers " + std::to_string(job.servers));
  }
  // On several hosts, each host has the keys of its own processes.
  const bool one_machine = IsForOneMachine(experiment).ok();
  for (int i = 0; i < job.servers && one_machine && status.ok(); ++i) {
    status = ReadKeys(folder, ServerKey(i)).status();
  }
  for (int i = 0; i < experiment.cluster.workers && one_machine && status.ok(); ++i) {
    status = ReadWorkerKeys(folder, ProcessId{ProcessId::Role::kWorker, i}.Name()).status();
  }
  if (!status.ok()) {
    result->problems.push_back(status);
    return;
  }
  result->passed.push_back(
      "keys in " + folder + ": the allow list has " + Count(std::ssize(allowed->entries()), "key") +
      (one_machine ? ", and each process has its own" : "; the keys on each host are not checked"));
}

void CheckPage(const PlannedJob& job, Preflight* result) {
  const std::string& address = job.loaded.experiment.http.address;
  if (address.empty()) return;
  // Readers cannot change anything, so the page may be open to others.
  const Status status = TryAddress("tcp://" + address, /*may_be_open=*/true);
  if (status.ok()) {
    result->passed.push_back("page at " + address + ": the address is free");
    return;
  }
  if (!IsForOneMachine(job.loaded.experiment).ok() &&
      status.code() == StatusCode::kFailedPrecondition) {
    result->passed.push_back("page at " + address +
                             ": not checked, the address is another machine's (" +
                             status.message() + ")");
    return;
  }
  const auto origin = job.loaded.origins.find("http.address");
  const std::string where = origin == job.loaded.origins.end() ? "" : origin->second + ": ";
  result->problems.push_back(About(where + "http.address", status));
}

void CheckFinalModel(const Experiment& experiment, int64_t parameters, FileSystem* files,
                     Preflight* result) {
  const std::string& to = experiment.output.final_model;
  if (to.empty()) return;
  const std::string setting = "output.final_model = " + to;
  Status status = CheckFinalModelFolder(*files, to, experiment.job.name);
  if (status.ok()) {
    const Result<uint64_t> free = files->FreeBytes(to);
    const auto needed = static_cast<uint64_t>(CheckpointBytes(experiment, parameters));
    status = free.status();
    if (free.ok() && *free < needed) {
      status = FailedPrecondition("the disk is too full: " + HumanBytes(*free) + " free, " +
                                  HumanBytes(needed) + " needed for a checkpoint");
    }
  }
  if (status.ok()) {
    result->passed.push_back("final model " + to + ": writable");
  } else {
    result->problems.push_back(About(setting, status));
  }
}

int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters) {
  const int64_t arrays =
      2 + kMostSlots + static_cast<int64_t>(experiment.sync.partitions) * (1 + kMostSlots);
  return parameters * arrays * static_cast<int64_t>(sizeof(float));
}

void CheckOutput(const Experiment& experiment, int64_t parameters, FileSystem* files,
                 Preflight* result) {
  const std::string& directory = experiment.output.directory;
  const std::string setting = "output.directory = " + directory;
  if (!CheckFolder(setting, directory, files, result)) return;
  const Result<uint64_t> free = files->FreeBytes(directory);
  if (!free.ok()) {
    result->problems.push_back(About(setting, free.status()));
    return;
  }
  const int kept = experiment.checkpoint.keep + (experiment.checkpoint.best.empty() ? 0 : 1);
  const uint64_t needed = kLeastFreeBytes + CheckpointBytes(experiment, parameters) * (kept + 1);
  const std::string numbers = HumanBytes(*free) + " free, " + HumanBytes(needed) + " needed for " +
                              Count(kept, "checkpoint") + " kept, one being written, and logs";
  if (*free < needed) {
    result->problems.push_back(
        FailedPrecondition(setting + ": the disk is too full: " + numbers +
                           "; free some space, lower checkpoint.keep, or set another folder"));
  } else {
    result->passed.push_back("disk: " + numbers);
  }
}

void NoteIdleProcesses(const PlannedJob& job, int64_t chunks, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const int workers = experiment.cluster.workers;
  const int partitions = experiment.sync.partitions;
  if (workers > partitions) {
    result->notes.push_back(Count(workers, "worker") + " for " + Count(partitions, "partition") +
                            ": " + std::to_string(workers - partitions) +
                            " would be idle spares; use --workers " + std::to_string(partitions) +
                            ", or more sync.partitions (which is another experiment)");
  }
  if (workers < experiment.cluster.min_workers) {
    result->notes.push_back(
        "cluster.min_workers = " + std::to_string(experiment.cluster.min_workers) + ", but only " +
        Count(workers, "worker") + " would be started: the job would wait for more");
  }
  if (chunks > 0 && job.servers > chunks) {
    result->notes.push_back(Count(job.servers, "server") + " for " + Count(chunks, "chunk") +
                            " of the network: " + std::to_string(job.servers - chunks) +
                            " would hold nothing; use --servers " + std::to_string(chunks) +
                            ", or a smaller cluster.chunk_kib for more chunks");
  }
}

void CheckMemory(const PlannedJob& job, const JobSize& size, const MemoryRoom& room,
                 Preflight* result) {
  if (size.worker.bytes == 0) return;
  MemoryNeed need("the job");
  const int workers = job.loaded.experiment.cluster.workers;
  const auto each = [](const JobSize::Memory& memory) {
    return HumanBytes(memory.bytes) + " each; most of it: " + memory.most;
  };
  need.Add(Count(workers, "worker"), {workers, size.worker.bytes}, each(size.worker));
  need.Add(Count(job.servers, "server"), {job.servers, size.server.bytes}, each(size.server));
  const Status fits = need.CheckFits(room);
  if (!fits.ok()) {
    result->problems.push_back(fits);
    return;
  }
  result->passed.push_back("memory   " + need.whose() + " needs " + HumanBytes(need.bytes()) +
                           ": " + Count(workers, "worker") + " of " +
                           HumanBytes(size.worker.bytes) + ", " + Count(job.servers, "server") +
                           " of " + HumanBytes(size.server.bytes) + "; " + room.limit +
                           " has room for " + HumanBytes(room.bytes));
}

Preflight PreflightOf(const LoadedExperiment& loaded) {
  Preflight preflight;
  for (const std::string& problem : loaded.problems) {
    preflight.problems.push_back(InvalidArgument(problem));
  }
  preflight.notes = loaded.notes;
  return preflight;
}

ExitCode CodeOf(const std::vector<Status>& problems) {
  ExitCode code = ExitCode::kDone;
  for (const Status& problem : problems) {
    code = ExitCodeOf(problem);
    if (code != ExitCode::kUnavailable) return code;
  }
  return code;
}

int SayProblems(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                const std::vector<Status>& problems) {
  if (problems.empty()) return 0;
  const std::string first = problems.front().message();
  if (problems.size() == 1) return exit_reporter.Report(CodeOf(problems), first);
  std::fflush(stdout);
  for (const Status& problem : problems) {
    const std::string line = "wrong " + problem.message();
    std::fprintf(stderr, "%s\n", Folded(line, environment.error_columns, 6).c_str());
  }
  return exit_reporter.Report(CodeOf(problems),
                              std::to_string(problems.size()) + " problems; the first: " + first);
}

std::vector<std::string> MessagesOf(const std::vector<Status>& problems) {
  std::vector<std::string> messages;
  for (const Status& problem : problems) messages.push_back(problem.message());
  return messages;
}

namespace {

using google::protobuf::Struct;

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

// Parses the JSON line of a worker's output. others: receives the lines for people, unless null.
JobSize SizeIn(const std::string& output, std::vector<std::string>* others) {
  JobSize size;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    Struct said;
    if (line.starts_with("{") && google::protobuf::util::JsonStringToMessage(line, &said).ok()) {
      size = {WholeNumber(said, "parameters"), WholeNumber(said, "chunks"), NeedIn(said, "worker"),
              NeedIn(said, "server")};
    } else if (others != nullptr) {
      others->push_back(line);
    }
  }
  return size;
}

// The status code behind a process's exit code.
StatusCode CodeOf(int exit_code) {
  const bool again = exit_code == static_cast<int>(ExitCode::kUnavailable);
  return again ? StatusCode::kUnavailable : StatusCode::kFailedPrecondition;
}

// The worker's last line is the problem; the lines before it are its context.
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

// True for the lines about the device; the other lines are the same on all devices.
bool IsAboutDevice(const std::string& line) {
  return line.starts_with("device ") || line.starts_with("memory ");
}

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
  if (!device.empty())
    spec.command.insert(spec.command.end(), {"--set", "network.device=" + device});
  std::string output;
  const Result<ChildEnd> end = RunChild(spec, &output);
  // CheckPrograms reports a missing program.
  if (!end.ok()) return {};
  if (end->code != 0) {
    TakeRefusal(end->code, output, result);
    return {};
  }
  std::vector<std::string> lines;
  const JobSize size = SizeIn(output, &lines);
  constexpr std::string_view kWarning = Logging::kWarning;
  for (const std::string& line : lines) {
    if (!first && !IsAboutDevice(line)) continue;
    if (line.starts_with(kWarning)) {
      result->notes.push_back(line.substr(kWarning.size()));
    } else {
      result->passed.push_back(line);
    }
  }
  return size;
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
  return SizeIn(output, nullptr);
}

namespace {

constexpr int kAtOnce = 32;

struct Answer {
  Result<ChildEnd> end = Internal("not asked");
  std::string words;
};

// Finds "kumo-worker 0.2.0" in the output, because the host's shell may print text before it.
std::string VersionIn(const std::string& text) {
  const size_t at = ("\n" + text).find("\nkumo-worker ");
  if (at == std::string::npos) return "no kumo-worker";
  return text.substr(at, text.find('\n', at) - at);
}

std::string LastLine(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

Status Judge(const std::string& host, const Answer& answer, const std::string& here) {
  KUMO_RETURN_IF_ERROR(answer.end.status());
  if (answer.end->code != 0) {
    // The message of kumo remote, which names an unreachable host.
    std::string words = LastLine(answer.words);
    const std::string program = "kumo remote: ";
    if (words.starts_with(program)) words = words.substr(program.size());
    const std::string message = host + ": " + words;
    return answer.end->code == 75 ? Unavailable(message) : FailedPrecondition(message);
  }
  if (VersionIn(answer.words) == here) return OkStatus();
  return FailedPrecondition(host + " has " + VersionIn(answer.words) + ", but this machine has " +
                            here + "; install the same version");
}

}  // namespace

void CheckHosts(const LaunchArguments& args, Preflight* result) {
  const std::vector<std::string> worker = {args.job.experiment.Binary("kumo-worker"), "--version"};
  std::string here;
  ChildSpec local;
  local.command = worker;
  const Result<ChildEnd> asked = RunChild(local, &here);
  if (!asked.ok()) {
    result->problems.push_back(asked.status());
    return;
  }
  std::vector<Answer> answers(args.hosts.size());
  const auto ask = [&](int64_t i) {
    ChildSpec spec;
    spec.command = OnHost(args, args.hosts[i].name, worker);
    answers[i].end = RunChild(spec, &answers[i].words);
  };
  {
    ThreadPool pool(kAtOnce);
    pool.ParallelFor(static_cast<int64_t>(answers.size()), ask);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    Status status = Judge(args.hosts[i].name, answers[i], VersionIn(here));
    if (!status.ok()) result->problems.push_back(std::move(status));
  }
  if (!result->problems.empty()) return;
  result->passed.push_back("hosts: " + std::to_string(answers.size()) + ", all with " +
                           VersionIn(here));
}

}  // namespace kumo
