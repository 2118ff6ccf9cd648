// What can be known to be wrong on this machine before a job starts: programs, ports, the output
// folder, the disk, the memory, how many processes there are. `kumo launch` tries all that is
// quick; `kumo check` tries the same, in the same words, and what only a worker knows.
//
// Functions without state. Each appends to `problems` one error per thing that is wrong, which
// names it and says what to do, and to `passed` one line per thing that is right. Nothing is left
// behind: no port stays bound, no file or folder stays created.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/job_arguments.h"
#include "common/base/file.h"
#include "common/base/memory_budget.h"
#include "common/base/status.h"
#include "common/settings/experiment.h"

namespace kumo {

struct Preflight {
  std::vector<std::string> passed;
  std::vector<std::string> told;   // neither: what a check said on its way to a problem
  std::vector<std::string> notes;  // allowed, but most likely not meant
  std::vector<Status> problems;    // their codes say how a process would end because of them
};

// What only a worker finds out; 0 where it is not known.
struct JobSize {
  int64_t parameters = 0;  // of the network
  int64_t chunks = 0;
  struct Memory {
    int64_t bytes = 0;
    std::string most;  // what most of it is for, with its settings, for people
  };
  Memory worker;  // that one worker needs
  Memory server;  // and one server
};

// All that is quick: everything below but memory and chunks.
void CheckStart(const JobArguments& args, const PlannedJob& job, const JobSize& size,
                FileSystem* files, Preflight* result);

// Whether kumo-server and kumo-worker are there.
void CheckPrograms(const ExperimentArguments& args, Preflight* result);

// Whether the servers' addresses that are this machine's can be listened on, or free ports be
// picked. Addresses of other machines are told as such.
void CheckAddresses(const PlannedJob& job, Preflight* result);

// Whether cluster.keys, where it is set, has the keys of all processes that would be started here,
// as those processes would read them.
void CheckKeys(const PlannedJob& job, Preflight* result);

// Whether http.address, where it is set, can be listened on.
void CheckPage(const PlannedJob& job, Preflight* result);

// Whether output.directory and its logs can be written, no running job has it, and the disk has
// room for the checkpoints that are kept and the one being written.
void CheckOutput(const Experiment& experiment, int64_t parameters, FileSystem* files,
                 Preflight* result);

// Whether output.final_model, where it is set, can be written by this job, and its disk has room
// for a checkpoint.
void CheckFinalModel(const Experiment& experiment, int64_t parameters, FileSystem* files,
                     Preflight* result);

// Notes processes that would have nothing to do: workers beyond the partitions, servers beyond the
// chunks.
void NoteIdleProcesses(const PlannedJob& job, int64_t chunks, Preflight* result);

// Whether all processes fit into `room`; nothing where it is not known what they need.
void CheckMemory(const PlannedJob& job, const JobSize& size, const MemoryRoom& room,
                 Preflight* result);

// Bytes of one checkpoint, at most: weights and start weights, the update rule's slots, and each
// partition's residual and optimiser slots, all float32.
int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters);

}  // namespace kumo
