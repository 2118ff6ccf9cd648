// Subject of a worker's message to a shard, for errors.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "common/base/status.h"
#include "proto/wire.pb.h"

namespace kumo {

// "partition 3, round 812, chunk 4"
std::string SubjectOf(const wire::Header& header);

// Unavailable: the message is not leased to its sender, as far as this server knows. The lease may
// be on its way from server 0.
Status NotLeased(const wire::Header& header);

}  // namespace kumo
