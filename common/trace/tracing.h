// What a driver has of traces: it shows each message that arrives and gives it the time, and need
// not know which part its process has (trace_agent.h, server/service/trace_relay.h).
#pragma once

#include "common/base/clock.h"
#include "common/transport/message.h"

namespace kumo {

class Tracing {
 public:
  virtual ~Tracing() = default;

  // Looks at every message that arrives; true: it was a trace's, and nobody else's. It is moved
  // from only then.
  virtual bool Takes(const PeerName& from, Message* message, TimeUs now) = 0;
  // To be called at NextDeadline, or whenever.
  virtual void Tick(TimeUs now) = 0;
  // Far away while there is no trace.
  virtual TimeUs NextDeadline() const = 0;
};

}  // namespace kumo
