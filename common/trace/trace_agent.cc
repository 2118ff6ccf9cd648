#include "common/trace/trace_agent.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "common/base/file.h"

namespace kumo {
namespace {

constexpr TimeUs kReportInterval = 100 * kMillisecond;
constexpr TimeUs kLongestOrder = 60 * kSecond;
// Fits any job's limit on payloads: a chunk plus 4096 bytes.
constexpr size_t kMostBytes = 4096;

Payload PayloadOf(const trace::Spans& spans) {
  const auto bytes = std::make_shared<const std::string>(spans.SerializeAsString());
  return {bytes, AsBytes(*bytes)};
}

}  // namespace

bool TraceAgent::Takes(const PeerName& from, Message* message, TimeUs now) {
  if (message->header.type() != wire::TRACE) return false;
  if (from == ServerPeer(0)) OnOrder(message->header.trace_order(), now);
  return true;
}

void TraceAgent::OnOrder(const wire::TraceOrder& order, TimeUs now) {
  if (order.trace() == 0) return;
  if (trace_ != order.trace()) {
    trace_ = order.trace();
    unsent_ = 0;
    tracer_->Start();
    report_at_ = now + kReportInterval;
  }
  until_ = now + std::clamp<TimeUs>(order.valid_us(), 0, kLongestOrder);
  Message report;
  wire::TraceReport& answer = *report.header.mutable_trace_report();
  answer.set_order_sent_us(order.sent_us());
  answer.set_answered_us(now);
  Report(std::move(report));
}

void TraceAgent::Tick(TimeUs now) {
  if (trace_ == 0 || now < std::min(report_at_, until_)) return;
  ReportSpans();
  report_at_ = now + kReportInterval;
  if (now < until_) return;
  tracer_->Stop();
  trace_ = 0;
}

TimeUs TraceAgent::NextDeadline() const {
  return trace_ == 0 ? std::numeric_limits<TimeUs>::max() : std::min(report_at_, until_);
}

void TraceAgent::ReportSpans() {
  trace::Spans spans;
  size_t bytes = 0;
  const auto report = [&] {
    Message message;
    message.header.mutable_trace_report();
    message.payload = PayloadOf(spans);
    if (spans.spans_size() > 0) Report(std::move(message));
    spans.Clear();
    bytes = 0;
  };
  for (trace::Span& span : tracer_->Take()) {
    constexpr size_t kFraming = 4;
    const size_t length = span.ByteSizeLong() + kFraming;
    if (bytes + length > kMostBytes) report();
    bytes += length;
    *spans.add_spans() = std::move(span);
  }
  report();
}

void TraceAgent::Report(Message report) {
  report.header.set_type(wire::TRACE_REPORT);
  wire::TraceReport& header = *report.header.mutable_trace_report();
  header.set_trace(trace_);
  header.set_dropped(tracer_->dropped() + unsent_);
  constexpr size_t kOfASpan = 20;  // approximate bytes
  const size_t spans = report.payload.bytes.size() / kOfASpan;
  if (!send_(std::move(report)).ok()) unsent_ += spans;
}

}  // namespace kumo
