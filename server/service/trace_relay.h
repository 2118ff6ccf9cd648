// Server 0's part in a trace: it passes a client's wish on to all who take part in the job, and to
// the client what they report.
//
// In prose. A client says TRACE every second while it wants a trace; without that it ends, and at
// once by a TRACE with an order of no time. Whoever sends a heartbeat meanwhile is told to record,
// then again every second, and is heard; others are not. Server 0's own reports go the same way.
// One client at a time: another one is REFUSED.
//
// Belongs to the driver's loop thread; the state machines know nothing of traces.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/trace/trace_agent.h"
#include "common/trace/tracing.h"
#include "common/transport/message.h"

namespace kumo {

class TraceRelay : public Tracing {
 public:
  using Send = std::function<Status(const PeerName& to, Message message)>;

  // tracer is borrowed for life.
  TraceRelay(Tracer* tracer, Send send);

  bool Takes(const PeerName& from, Message* message, TimeUs now) override;
  void Tick(TimeUs now) override;
  TimeUs NextDeadline() const override;

 private:
  void OnWish(const PeerName& client, TimeUs now);
  void End();
  void Order(const PeerName& to, TimeUs now);
  void PassOn(const PeerName& from, Message report, TimeUs now);

  const Send send_;
  TraceAgent agent_;    // of this process
  PeerName client_;     // "": there is no trace
  uint32_t trace_ = 0;  // the last one's number
  TimeUs wished_until_ = 0;
  TimeUs order_at_ = 0;
  std::set<PeerName> told_;
  uint64_t unsent_ = 0;  // reports
};

}  // namespace kumo
