// What a message is about, for errors.
#pragma once

#include <string>

#include "proto/wire.pb.h"

namespace kumo {

// "partition 3, round 812, chunk 4"
inline std::string Where(const wire::Header& header) {
  return "partition " + std::to_string(header.partition()) + ", round " +
         std::to_string(header.round()) + ", chunk " + std::to_string(header.chunk());
}

}  // namespace kumo
