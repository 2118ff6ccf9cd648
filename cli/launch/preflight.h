// Preflight checks: problems on this machine that can be found before a job starts: programs,
// ports, output folder, disk, memory, number of processes. `kumo launch` does the fast checks;
// `kumo check` does the same, with the same messages, and those that only a worker can do.
//
// Stateless functions. Each appends one error per problem to `problems`, which names it and how to
// mend it, and one line per success to `passed`. They leave nothing behind: no bound port, no
// created file or folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments/environment.h"
#include "cli/launch/job_arguments.h"
#include "cli/launch/launch_plan.h"
#include "common/base/file.h"
#include "common/base/memory_budget.h"
#include "common/base/process/exit_report.h"
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

// Performs all fast checks: those below except chunks and memory.
void CheckStart(const JobArguments& args, const PlannedJob& job, const JobSize& size,
                FileSystem* files, Preflight* result);

// Checks that kumo-server and kumo-worker exist.
void CheckPrograms(const ExperimentArguments& args, Preflight* result);

// Checks that this machine's server addresses can be listened on, or that free ports exist. Lists
// addresses of other machines as such.
void CheckAddresses(const PlannedJob& job, Preflight* result);

// Checks that cluster.keys, if set, has the keys of all processes to start here, reading them as
// those processes would.
void CheckKeys(const PlannedJob& job, Preflight* result);

// Checks that http.address, if set, can be listened on.
void CheckPage(const PlannedJob& job, Preflight* result);

// Checks that output.directory and its logs can be written, that no running job uses it, and that
// the disk has room for the kept checkpoints and the one being written.
void CheckOutput(const Experiment& experiment, int64_t parameters, FileSystem* files,
                 Preflight* result);

// Checks that output.final_model, if set, can be written by this job, and that its disk has room
// for a checkpoint.
void CheckFinalModel(const Experiment& experiment, int64_t parameters, FileSystem* files,
                     Preflight* result);

// Notes idle processes: workers beyond the partitions, servers beyond the chunks.
void NoteIdleProcesses(const PlannedJob& job, int64_t chunks, Preflight* result);

// Checks that all processes fit into `room`; does nothing if their sizes are unknown.
void CheckMemory(const PlannedJob& job, const JobSize& size, const MemoryRoom& room,
                 Preflight* result);

// Upper bound on the bytes of one checkpoint: weights and start weights, the update rule's slots,
// and each partition's residual and optimiser slots, all float32.
int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters);

// The result of reading the experiment.
Preflight PreflightOf(const LoadedExperiment& loaded);

// The exit code for these problems: kDone for none; kUnavailable only if all of them are temporary.
ExitCode CodeOf(const std::vector<Status>& problems);

// Prints all problems to stderr, and reports the first as the reason of the exit. Returns the exit
// code.
int SayProblems(const CliEnvironment& environment, const ExitReporter& exit_reporter,
                const std::vector<Status>& problems);

std::vector<std::string> MessagesOf(const std::vector<Status>& problems);

// Runs kumo-worker --check once per requested device: it opens network, data and device, and
// describes them in *result.
JobSize CheckByWorker(const JobArguments& args, const PlannedJob& job, Preflight* result);

// The memory needs of the job's processes, which kumo-worker computes in a moment. Empty if it
// cannot; the started processes then report the reason.
JobSize MemoryByWorker(const JobArguments& args, const PlannedJob& job);

// Asks all hosts at once for the version of their kumo-worker. Adds a problem for each host that
// cannot be reached, has no kumo-worker although this machine has one, or has another version.
// Blocks some seconds for a host that does not answer.
void CheckHosts(const LaunchArguments& args, Preflight* result);

}  // namespace kumo
