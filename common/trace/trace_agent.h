// Trace agent: a process's part in a trace. It records while server 0 asks for it, and reports the
// spans.
//
// Protocol. Server 0 sends a TraceOrder repeatedly while a client wants the trace. The first order
// of a trace switches the tracer on. Each order is answered at once with times that show the offset
// of this clock from server 0's. An order expires after a while, so a process that server 0 has
// forgotten switches its tracer off. Reports with spans are sent in between.
//
// Owned by the driver's loop thread; the state machines know nothing of traces.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/trace/tracer.h"
#include "common/transport/message.h"

namespace kumo {

// Tracing interface of a driver: it passes in arriving messages and the time, without knowing its
// process's part in a trace (TraceAgent or server/service/trace_relay.h).
class Tracing {
 public:
  virtual ~Tracing() = default;

  // Called with every arriving message. Returns true, having moved from it, if it belongs to a
  // trace.
  virtual bool Takes(const PeerName& from, Message* message, TimeUs now) = 0;
  // Call at NextDeadline or at any time.
  virtual void Tick(TimeUs now) = 0;
  // The maximum of TimeUs while there is no trace.
  virtual TimeUs NextDeadline() const = 0;
};

class TraceAgent : public Tracing {
 public:
  // Sends a report to server 0. Reports that cannot be sent are lost and counted.
  using Send = std::function<Status(Message report)>;

  // tracer must outlive this object.
  TraceAgent(Tracer* tracer, Send send) : tracer_(tracer), send_(std::move(send)) {}

  // Accepts orders from server 0 only.
  bool Takes(const PeerName& from, Message* message, TimeUs now) override;
  void OnOrder(const wire::TraceOrder& order, TimeUs now);
  void Tick(TimeUs now) override;
  TimeUs NextDeadline() const override;

 private:
  void ReportSpans();
  void Report(Message report);

  Tracer* const tracer_;
  const Send send_;
  uint32_t trace_ = 0;  // the recorded trace; 0: none
  TimeUs until_ = 0;    // expiry of the last order
  TimeUs report_at_ = 0;
  uint64_t unsent_ = 0;  // lost spans
};

}  // namespace kumo
