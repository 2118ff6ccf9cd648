// Job of server_node_fuzzer, and recordings of simulated runs: the messages that arrived at each
// server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/transport/framing.h"
#include "server/node/server_node.h"
#include "tests/sim/cluster.h"

namespace kumo::fuzz {

// Senders of a step's message: Step::what below their number.
constexpr const char* kPeers[] = {"worker/worker-0/1", "worker/worker-1/1", "server/0",
                                  "server/1",          "worker/stranger/7", "client/5"};
constexpr uint8_t kPeerCount = 6;
// Other events: Step::what from their number on.
enum class Event : uint8_t { kTick = kPeerCount, kComputed, kStop, kCount };

struct Arrival {
  uint8_t peer = 0;
  Message message;
};

// One server of the job, at its beginning.
struct ServerCase {
  ServerNodeSettings settings;
  FramingOptions framing;
  std::vector<Arrival> arrivals;  // of a whole run without faults
};

// Server 0 and server 1, without and with second copies.
const std::vector<ServerCase>& ServerCases();

}  // namespace kumo::fuzz
