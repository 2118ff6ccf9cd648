// What `kumo check` looks at on this machine before a start: ports, the output folder, the disk.
//
// Functions without state. Each appends to `problems` one line per thing that is wrong, which names
// it and says what to do, and to `passed` one line per thing that is right. Nothing is left behind:
// no port stays bound, no file or folder stays created.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/options/experiment.h"

namespace kumo {

struct Preflight {
  std::vector<std::string> passed;
  std::vector<std::string> told;  // neither: what a check said on its way to a problem
  std::vector<std::string> problems;
};

// Whether the servers' addresses that are this machine's can be listened on. Addresses of other
// machines are told as such.
void CheckAddresses(const Experiment& experiment, Preflight* result);

// Whether output.directory can be written, and whether the disk has room for the checkpoints that
// are kept and the one being written. parameters: of the network; 0 when unknown.
void CheckOutput(const Experiment& experiment, int64_t parameters, FileSystem* files,
                 Preflight* result);

// Bytes of one checkpoint, at most: weights and start weights, the update rule's slots, and each
// partition's residual and optimiser slots, all float32.
int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters);

}  // namespace kumo
