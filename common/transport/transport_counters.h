// Transport counters: messages and bytes (of header and payload frames) since the start.
//
// A plain value.
#pragma once

#include <array>
#include <cstdint>

#include "proto/wire.pb.h"

namespace kumo {

struct TransportCounters {
  using ByType = std::array<uint64_t, wire::Type_ARRAYSIZE>;

  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_refused = 0;  // arrived and dropped: foreign, damaged, too long
  uint64_t sends_unavailable = 0;
  uint64_t connections_refused = 0;  // ended without a message, if keys are required
  // By message type, without refused messages and the transport's own (PING, PONG).
  ByType bytes_sent_by_type = {};
  ByType bytes_received_by_type = {};

  void Sent(wire::Type type, uint64_t bytes) {
    ++messages_sent;
    bytes_sent += bytes;
    if (wire::Type_IsValid(type)) bytes_sent_by_type[type] += bytes;
  }
  // An arrived message that is handed on.
  void Taken(wire::Type type, uint64_t bytes) {
    ++messages_received;
    if (wire::Type_IsValid(type)) bytes_received_by_type[type] += bytes;
  }
};

}  // namespace kumo
