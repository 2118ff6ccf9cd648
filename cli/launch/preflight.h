// Preflight checks: problems on this machine that can be found before a job starts: programs,
// ports, output folder, disk, memory, limits of the system. `kumo launch` does the fast checks;
// `kumo check` does the same, with the same messages, and those that only a worker can do
// (worker_check.h). host_check.h asks other machines.
//
// Stateless functions. Each appends one error per problem to `problems`, which names it and how to
// mend it, and one line per success to `passed`. They leave nothing behind: no bound port, no
// created file or folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launch/job_arguments.h"
#include "cli/launch/launch_plan.h"
#include "cli/launch/server_addresses.h"
#include "common/base/file.h"
#include "common/base/memory_budget.h"
#include "common/base/process/process_limits.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

struct Preflight {
  std::vector<std::string> passed;
  std::vector<std::string> told;   // context of a problem, from a check's output
  std::vector<std::string> notes;  // allowed, but probably not intended
  std::vector<Status> problems;    // with the codes that processes would end with
};

// Sizes that only a worker can determine; 0 if unknown.
struct JobSize {
  int64_t parameters = 0;  // of the network
  int64_t chunks = 0;
  struct Memory {
    int64_t bytes = 0;
    std::string most;  // its largest parts with their settings, for people
  };
  Memory worker;  // of one worker
  Memory server;  // of one server
};

// Limits that started processes inherit from this one.
struct SystemRoom {
  DescriptorRoom descriptors;  // of each process
  ThreadRoom threads;          // of all processes together
};
SystemRoom RoomOfSystem();

// Performs all fast checks: the programs, the keys, and those below except memory.
void CheckStart(const JobArguments& args, const PlannedJob& job, const JobSize& size,
                FileSystem* files, Preflight* result);

// Checks that this machine's server addresses can be listened on, or that free ports exist. Lists
// addresses of other machines as such.
void CheckAddresses(const PlannedJob& job, AddressTrial* trial, Preflight* result);

// Checks that http.address, if set, can be listened on beside the servers' addresses.
void CheckPage(const PlannedJob& job, AddressTrial* trial, Preflight* result);

// Checks that output.directory, its logs and its checkpoints can be written and its lock can be
// taken, and CheckDisk.
void CheckOutput(const PlannedJob& job, int64_t parameters, FileSystem* files, Preflight* result);

// Checks that the disk of output.directory has room for the kept checkpoints and the one being
// written, with the copies of the other servers (checkpoint.disks) and the final model if these are
// on the same disk.
void CheckDisk(const PlannedJob& job, int64_t parameters, FileSystem* files, Preflight* result);

// Checks that output.final_model, if set, can be written by this job, and that its disk has room
// for a checkpoint.
void CheckFinalModel(const Experiment& experiment, int64_t parameters, FileSystem* files,
                     Preflight* result);

// Checks that network.initial_weights, if set, is a checkpoint or a file of tensors, unless the job
// resumes from a checkpoint of its own. If the job has several hosts, this machine may lack the
// weights: then only the format is checked, by the file name's ending.
void CheckInitialWeights(const Experiment& experiment, FileSystem* files, Preflight* result);

// Notes idle processes: workers beyond the partitions, servers beyond the chunks.
void NoteIdleProcesses(const PlannedJob& job, int64_t chunks, Preflight* result);

// Checks that all processes fit into `room`; does nothing if their sizes are unknown.
void CheckMemory(const PlannedJob& job, const JobSize& size, const MemoryRoom& room,
                 Preflight* result);

// Notes more threads in a worker than cores.
void NoteCores(const Experiment& experiment, int cores, Preflight* result);

// Checks that each process can open its files and connections and, if all run on this machine, that
// all their threads can be started.
void CheckProcessLimits(const PlannedJob& job, const SystemRoom& room, Preflight* result);

// The result of reading the experiment.
Preflight PreflightOf(const LoadedExperiment& loaded);

}  // namespace kumo
