// Trace relay: server 0's part in a trace. It passes a client's wish on to all members of the job,
// and their reports to the client.
//
// In prose. A client sends TRACE every second while it wants a trace; without TRACE the trace ends,
// and at once after a TRACE with an order. A process that sends a heartbeat meanwhile is ordered to
// record, again every second, and its reports are passed on; reports of other processes are not.
// Server 0's own reports take the same way. One client at a time: a second one is REFUSED.
//
// Owned by the driver, on its loop thread; the state machines know nothing of traces.
#pragma once

#include <cstdint>
#include <functional>
#include <set>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/trace/trace_agent.h"
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
