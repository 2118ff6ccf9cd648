// What memory a server needs for its part of a job's weights, worked out from the experiment and
// the network's layout: servers refuse a job that they have no room for, and `kumo check` says so
// before.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "common/base/memory_need.h"
#include "common/job/job_identity.h"
#include "common/settings/experiment.h"

namespace kumo {

// Of the server that holds most, of so many (at least 1): the versions of its chunks, the rounds
// that are open, what partitions carry, copies for other servers, and the checkpoint that is
// written meanwhile.
MemoryNeed MemoryOfServer(const Experiment& experiment, const JobSpec& spec, int servers);

// The coded contribution of one partition to one round, of so many numbers, where it is longest: in
// full precision, where there is a warm-up.
int64_t ContributionBytes(const Experiment& experiment, int64_t numbers);

}  // namespace kumo
