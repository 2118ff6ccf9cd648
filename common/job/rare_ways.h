// Places in the protocol core that, in a simulated job, take on purpose the way that they seldom
// have to take: a message that is lost inside a process, a timer that is late, an order that is
// given twice. Whatever they choose, the job's bits must be the same. ("Buggify", after
// FoundationDB's simulation.)
//
// In the product Buggify is the constant false, and nothing of this is left in the programs. For
// the simulation the sources with such places are compiled once more (tests/sim/CMakeLists.txt),
// with KUMO_SIMULATED, and tests/sim/buggify.h decides.
#pragma once

#include <cstdint>

namespace kumo {

enum class RareWay : uint8_t {
  kRequestRepeatedAtOnce,  // a worker's request, before it can have been answered
  kRequestRepeatedLate,    // after the longest interval instead of the first
  kRequestWindowFull,      // a request waits for the answer to another one
  kHeartbeatSkipped,       // of a worker, to all servers
  kGoesOnLate,             // a worker, with what it could do now, at its next tick
  kHelloIgnored,           // by a server
  kReportSkipped,          // of a server, to server 0
  kSaveRefused,            // an order to save now
  kStateOverlooked,        // that a partition carries: the snapshot waits until it is sent again
  kAnswerDropped,          // to a pull: the queue towards the worker is full
  kPushNotAcknowledged,    // the worker pushes again
  kReplicaSentTwice,       // one version's arrays
  kReplicaWindowFull,      // a version waits for the acknowledgement of another one
  kReplicaAckLost,         // the version is sent again
  kOrdersTwice,            // to one process
  kOrdersLost,
  kLeasesMove,        // at a round's end, for no reason
  kStragglersHelped,  // in a round that does not straggle
  kSuspectedEarly,    // a worker that was heard a moment ago
  kCount,
};

#ifdef KUMO_SIMULATED
bool Buggify(RareWay way);
#else
constexpr bool Buggify(RareWay /*way*/) { return false; }
#endif

}  // namespace kumo
