// A process's part in a trace: it records while server 0 wants it to, and reports what it did.
//
// In prose. Server 0 sends a TraceOrder, again and again while a client asks for it. The first
// one of a trace switches the tracer on; each is answered at once, with the times that tell how far
// this clock is from server 0's; and each holds for a while only, so that a process that server 0
// has forgotten switches its tracer off by itself. In between go reports with spans.
//
// Belongs to the loop thread of a driver; the state machines know nothing of traces.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/trace/tracer.h"
#include "common/trace/tracing.h"
#include "common/transport/message.h"

namespace kumo {

class TraceAgent : public Tracing {
 public:
  // To server 0. What is not sent is lost, and counted.
  using Send = std::function<Status(Message report)>;

  // tracer is borrowed for life.
  TraceAgent(Tracer* tracer, Send send) : tracer_(tracer), send_(std::move(send)) {}

  // Orders are server 0's alone to give.
  bool Takes(const PeerName& from, Message* message, TimeUs now) override;
  void OnOrder(const wire::TraceOrder& order, TimeUs now);
  void Tick(TimeUs now) override;
  TimeUs NextDeadline() const override;

 private:
  void ReportSpans();
  void Report(Message report);

  Tracer* const tracer_;
  const Send send_;
  uint32_t trace_ = 0;  // that is recorded; 0: none
  TimeUs until_ = 0;    // unless another order comes
  TimeUs report_at_ = 0;
  uint64_t unsent_ = 0;  // spans
};

}  // namespace kumo
