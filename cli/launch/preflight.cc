#include "cli/launch/preflight.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/launch/supervisor.h"
#include "common/base/cores.h"
#include "common/base/memory_budget.h"
#include "common/base/process/output_lock.h"
#include "common/base/process/process_limits.h"
#include "common/base/shell_word.h"
#include "common/base/text.h"
#include "common/checkpoint/final_model.h"
#include "common/checkpoint/resume_point.h"
#include "common/checkpoint/source_checkpoint.h"
#include "common/job/process_need.h"
#include "common/job/server_memory.h"
#include "common/settings/worker_program.h"
#include "common/tensor_files/tensor_file.h"
#include "common/transport/key_files.h"

namespace kumo {

namespace {

// Space for logs, curves and a small network, if the network's size is unknown.
constexpr int64_t kLeastFreeBytes = int64_t{64} << 20;

// Adds a setting to an error; keeps its code.
Status About(const std::string& setting, const Status& status, const std::string& advice = "") {
  return Status(status.code(), setting + ": " + status.message() + advice);
}

// True if what is written to the two folders, which need not exist, goes to the same disk.
bool AreOnOneDisk(const std::string& one, const std::string& other) {
  struct stat of_one {
  }, of_other{};
  return stat(NearestExisting(one).c_str(), &of_one) == 0 &&
         stat(NearestExisting(other).c_str(), &of_other) == 0 && of_one.st_dev == of_other.st_dev;
}

// Returns false if the folder cannot be used at all.
bool CheckFolder(const std::string& setting, const std::string& directory, FileLock lock,
                 FileSystem* files, Preflight* result) {
  const Status writable = files->CheckWritable(directory);
  if (!writable.ok()) {
    result->problems.push_back(About(setting + ": cannot be written", writable,
                                     "; set output.directory to a writable folder"));
    return false;
  }
  for (const char* folder : {"logs", "checkpoints"}) {
    const Status inside = files->CheckWritable(JoinPath(directory, folder));
    if (inside.ok()) continue;
    result->problems.push_back(About(setting + ": no " + folder + " can be written", inside));
    return false;
  }
  const Status unused = OutputLock::CheckFree(directory, lock);
  if (!unused.ok()) {
    result->problems.push_back(unused);
    return false;
  }
  result->passed.push_back("output " + directory +
                           (lock == FileLock::kKernel
                                ? ": writable, and no job is using it"
                                : ": writable; other jobs are not noticed (output.lock = none)"));
  return true;
}

// Checks that kumo-server and the program of the workers exist.
void CheckPrograms(const JobArguments& args, const Experiment& experiment, Preflight* result) {
  std::vector<const char*> names = {"kumo-server"};
  bool all = true;
  if (experiment.worker.OwnsModel()) {
    const auto program = WorkerProgram(experiment, args.variables);
    all = program.ok();
    if (!all) result->problems.push_back(program.status());
  } else {
    names.push_back("kumo-worker");
  }
  for (const char* name : names) {
    const std::string path = args.experiment.Binary(name);
    if (access(path.c_str(), X_OK) == 0) continue;
    all = false;
    result->problems.push_back(FailedPrecondition(
        path +
        " does not exist or cannot be executed; build it, or give its folder with --bin-dir DIR"));
  }
  if (!all) return;
  result->passed.push_back("programs in " + args.experiment.binary_directory);
  if (!experiment.worker.OwnsModel()) return;
  result->passed.push_back("worker   " + experiment.worker.command +
                           ": its model and its data are not checked");
}

// Checks that cluster.keys, if set, has the keys of all processes to start here, reading them as
// those processes would.
void CheckKeys(const PlannedJob& job, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const std::string& folder = experiment.cluster.keys;
  if (folder.empty()) return;
  const Result<AllowList> allowed = ReadAllowList(folder);
  Status status = allowed.status();
  for (int i = 0; i < job.servers && status.ok(); ++i) {
    if (allowed->Find(ServerKey(i)) != nullptr) continue;
    status =
        FailedPrecondition("cluster.keys = " + folder + ": the allow list has no key of server " +
                           std::to_string(i) + "; add it with kumo keys " + ShellWord(folder) +
                           " --servers " + std::to_string(job.servers));
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
      "keys in " + folder + ": the allow list has " +
      Counted(std::ssize(allowed->entries()), "key") +
      (one_machine ? ", and each process has its own" : "; the keys on each host are not checked"));
}

// Reads no more than the headers of a file of tensors.
Status FindWeights(const std::string& path, FileSystem* files) {
  const auto format = TensorFormatOf(path);
  if (!format) return FindCheckpointAt(*files, path).status();
  const RoomForTensor none = [](const FileTensor&) { return std::span<float>(); };
  return ReadTensorFile(*files, path, *format, none);
}

}  // namespace

void CheckStart(const JobArguments& args, const PlannedJob& job, const JobSize& size,
                FileSystem* files, Preflight* result) {
  CheckPrograms(args, job.loaded.experiment, result);
  AddressTrial trial;
  CheckAddresses(job, &trial, result);
  CheckKeys(job, result);
  CheckPage(job, &trial, result);
  CheckOutput(job, size.parameters, files, result);
  CheckFinalModel(job.loaded.experiment, size.parameters, files, result);
  CheckInitialWeights(job.loaded.experiment, files, result);
  NoteIdleProcesses(job, size.chunks, result);
  CheckProcessLimits(job, RoomOfSystem(), result);
  if (IsForOneMachine(job.loaded.experiment).ok()) {
    NoteCores(job.loaded.experiment, UsableCores(), result);
  }
}

void CheckAddresses(const PlannedJob& job, AddressTrial* trial, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const std::vector<std::string>& servers = experiment.cluster.servers;
  if (servers.empty()) {
    const auto reserved = ReservePorts(job.servers);
    if (reserved.ok()) {
      result->passed.push_back("ports: " + Counted(job.servers, "free one") + " on 127.0.0.1");
    } else {
      result->problems.push_back(reserved.status());
    }
  }
  const bool one_machine = IsForOneMachine(experiment).ok();
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string server = "server " + std::to_string(i) + " at " + servers[i];
    const bool may_be_open = experiment.cluster.insecure || !experiment.cluster.keys.empty();
    const Status status = trial->Try(servers[i], may_be_open);
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

void CheckPage(const PlannedJob& job, AddressTrial* trial, Preflight* result) {
  const std::string& address = job.loaded.experiment.http.address;
  if (address.empty()) return;
  // Readers cannot change anything, so the page may be open to others.
  const Status status = trial->Try("tcp://" + address, /*may_be_open=*/true);
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

void CheckInitialWeights(const Experiment& experiment, FileSystem* files, Preflight* result) {
  const std::string& from = experiment.network.initial_weights;
  if (from.empty()) return;
  if (!IsForOneMachine(experiment).ok() && !HasUnreadEnding(from)) return;
  const Status found = FindWeights(from, files);
  if (found.ok()) return;
  // A job that resumes does not read the weights. Server 0 reports a checkpoint that it refuses.
  const Result<ResumePoint> point = FindCheckpointToResume(*files, experiment);
  if (!point.ok() || point->manifest) return;
  Status problem = About("network.initial_weights", found);
  // The worker's check may have found the same.
  const auto same = [&](const Status& other) { return other.message() == problem.message(); };
  if (std::ranges::any_of(result->problems, same)) return;
  result->problems.push_back(std::move(problem));
}

void CheckOutput(const PlannedJob& job, int64_t parameters, FileSystem* files, Preflight* result) {
  const Experiment::Output& output = job.loaded.experiment.output;
  const std::string setting = "output.directory = " + output.directory;
  if (!CheckFolder(setting, output.directory, output.lock, files, result)) return;
  CheckDisk(job, parameters, files, result);
}

void CheckDisk(const PlannedJob& job, int64_t parameters, FileSystem* files, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const std::string& directory = experiment.output.directory;
  const std::string setting = "output.directory = " + directory;
  const Result<uint64_t> free = files->FreeBytes(directory);
  if (!free.ok()) {
    result->problems.push_back(About(setting, free.status()));
    return;
  }
  const int kept = experiment.checkpoint.keep + (experiment.checkpoint.best.empty() ? 0 : 1);
  const int64_t whole = CheckpointBytes(experiment, parameters);
  int64_t checkpoints = whole * (kept + 1);
  std::string more;
  // Server 0 has all checkpoints whole; the other servers have their own files, below the same
  // folder if they run here, and one of them has server 0's with cluster.replicas = 2.
  if (experiment.checkpoint.HasPrivateDisks() && IsForOneMachine(experiment).ok()) {
    const int copied = job.servers - (experiment.cluster.replicas > 1 ? 0 : 1);
    if (job.servers > 1) {
      checkpoints += checkpoints / job.servers * copied;
      more += ", the copies of the other servers";
    }
  }
  if (const std::string& model = experiment.output.final_model;
      !model.empty() && AreOnOneDisk(directory, model)) {
    checkpoints += whole;
    more += ", the final model";
  }
  const uint64_t needed = kLeastFreeBytes + checkpoints;
  const std::string numbers = HumanBytes(*free) + " free, " + HumanBytes(needed) + " needed for " +
                              Counted(kept, "checkpoint") + " kept, one being written" + more +
                              ", and logs";
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
    result->notes.push_back(
        Counted(workers, "worker") + " for " + Counted(partitions, "partition") + ": " +
        std::to_string(workers - partitions) + " would be idle spares; use --workers " +
        std::to_string(partitions) + ", or more sync.partitions (which is another experiment)");
  }
  if (workers < experiment.cluster.min_workers) {
    result->notes.push_back(
        "cluster.min_workers = " + std::to_string(experiment.cluster.min_workers) + ", but only " +
        Counted(workers, "worker") + " would be started: the job would wait for more");
  }
  if (chunks > 0 && job.servers > chunks) {
    result->notes.push_back(Counted(job.servers, "server") + " for " + Counted(chunks, "chunk") +
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
  need.Add(Counted(workers, "worker"), {workers, size.worker.bytes}, each(size.worker));
  need.Add(Counted(job.servers, "server"), {job.servers, size.server.bytes}, each(size.server));
  const Status fits = need.CheckFits(room);
  if (!fits.ok()) {
    result->problems.push_back(fits);
    return;
  }
  result->passed.push_back("memory   " + need.whose() + " needs " + HumanBytes(need.bytes()) +
                           ": " + Counted(workers, "worker") + " of " +
                           HumanBytes(size.worker.bytes) + ", " + Counted(job.servers, "server") +
                           " of " + HumanBytes(size.server.bytes) + "; " + room.limit +
                           " has room for " + HumanBytes(room.bytes));
}

SystemRoom RoomOfSystem() { return {RoomForDescriptorsOfChild(), RoomForThreads()}; }

void NoteCores(const Experiment& experiment, int cores, Preflight* result) {
  const int threads = experiment.network.threads;
  if (!experiment.network.device.is_cpu() || threads <= cores) return;
  result->notes.push_back("network.threads = " + std::to_string(threads) + ", but " +
                          Counted(cores, "core") +
                          " can be used here (CPU affinity, quotas of control groups): a worker "
                          "would be slower than with " +
                          Counted(cores, "thread"));
}

void CheckProcessLimits(const PlannedJob& job, const SystemRoom& room, Preflight* result) {
  const Experiment& experiment = job.loaded.experiment;
  const ProcessNeed server = NeedOfServer(experiment, job.servers);
  const ProcessNeed worker = NeedOfWorker(experiment, job.servers);
  const size_t before = result->problems.size();
  for (const ProcessNeed* need : {&server, &worker}) {
    const Status fits = CheckDescriptors(*need, room.descriptors);
    if (!fits.ok()) result->problems.push_back(fits);
  }
  const int workers = experiment.cluster.workers;
  const int64_t threads = job.servers * server.threads + workers * worker.threads;
  const bool one_machine = IsForOneMachine(experiment).ok();
  if (one_machine) {
    const Status fits = CheckThreads(
        "the job", threads, room.threads,
        Counted(workers, "worker") + " of " + std::to_string(worker.threads) + " and " +
            Counted(job.servers, "server") + " of " + std::to_string(server.threads) +
            ": cluster.workers, network.threads, data.threads, cluster.server_threads");
    if (!fits.ok()) result->problems.push_back(fits);
  }
  if (result->problems.size() > before) return;
  result->passed.push_back("limits: at most " +
                           std::to_string(std::max(server.descriptors, worker.descriptors)) +
                           " files and connections in a process" +
                           (one_machine ? ", " + std::to_string(threads) + " threads in all" : ""));
}

Preflight PreflightOf(const LoadedExperiment& loaded) {
  Preflight preflight;
  for (const std::string& problem : loaded.problems) {
    preflight.problems.push_back(InvalidArgument(problem));
  }
  preflight.notes = loaded.notes;
  return preflight;
}

}  // namespace kumo
