// Server memory: the memory that a server needs for its part of a job's weights, from the
// experiment and the network's layout, and the size of its checkpoints. A server refuses a job that
// does not fit, and `kumo check` warns earlier.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "common/base/memory_budget.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"

namespace kumo {

// Memory of the server with the largest part, among `servers` (at least 1): the versions of its
// chunks, the open rounds, the state of partitions, copies for other servers, and a checkpoint
// being written.
MemoryNeed MemoryOfServer(const Experiment& experiment, const JobSpec& spec, int servers);

// Bytes of one partition's contribution to one round at most: in full precision if there is a
// warm-up.
int64_t ContributionBytes(const Experiment& experiment, int64_t numbers);

// Upper bound on the bytes of one checkpoint of a network of `parameters` weights: the vectors of
// weights, the update rule's slots, and the arrays that each partition carries, all float32.
int64_t CheckpointBytes(const Experiment& experiment, int64_t parameters);

}  // namespace kumo
