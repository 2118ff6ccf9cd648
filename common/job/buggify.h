// Rare ways: places in the protocol core that a simulated job sends down their unlikely branch on
// purpose (a message lost inside a process, a late timer, an order given twice). The weights must
// have the same bits whichever way is taken. The idea is FoundationDB's "buggify".
//
// A simulation installs a RareWayChooser in its thread; without one Buggify is false.
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

class RareWayChooser {
 public:
  virtual bool Takes(RareWay way) = 0;

 protected:
  ~RareWayChooser() = default;
};

// This thread's chooser, borrowed; null outside of a simulation.
inline constinit thread_local RareWayChooser* rare_way_chooser = nullptr;

inline bool Buggify(RareWay way) {
  return rare_way_chooser != nullptr && rare_way_chooser->Takes(way);
}

}  // namespace kumo
