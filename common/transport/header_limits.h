// How long each text and each list of a header may be, for all of proto/wire.proto in one table.
//
// A header of 1 MiB can describe a hundred times its length: an empty message in a list takes two
// bytes on the wire, and sixty or more in memory. So its bytes are read through and counted before
// anything is made of them. What a state machine then makes of a field (fewer elements, shorter
// texts) is its own matter; these limits bound what it is handed.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "common/base/status.h"

namespace kumo {

struct FieldLimit {
  // "Hello.claims", "checkpoint.Origin.taken": the message in wire.proto, or another package's, and
  // the field.
  std::string_view field;
  int elements = 1;  // of a list or a map
  int bytes = 0;     // of a text, each of a list's; 0: it is none
};

// Of every text and every list that a header can contain, and of nothing else.
std::span<const FieldLimit> FieldLimits();

// InvalidArgument, naming the field, where one is longer than it may be; where the bytes are no
// protobuf; or where a message that is no list's comes twice, which would add its lists up.
Status CheckFieldLimits(std::span<const std::byte> header);

}  // namespace kumo
