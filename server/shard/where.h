// What a message is about, for errors.
#pragma once

#include <string>

#include "common/base/status.h"
#include "proto/wire.pb.h"

namespace kumo {

// "partition 3, round 812, chunk 4"
inline std::string Where(const wire::Header& header) {
  return "partition " + std::to_string(header.partition()) + ", round " +
         std::to_string(header.round()) + ", chunk " + std::to_string(header.chunk());
}

// It may be soon, when server 0 has said so here too.
inline Status NotLeased(const wire::Header& header) {
  return Unavailable(Where(header) + ": not leased to the sender");
}

}  // namespace kumo
