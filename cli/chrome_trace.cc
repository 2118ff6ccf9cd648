#include "cli/chrome_trace.h"

#include <algorithm>
#include <climits>
#include <limits>
#include <utility>

#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/transport/message.h"

namespace kumo {
namespace {

constexpr size_t kMostProcesses = 8192;
constexpr size_t kMostSpans = 20'000'000;  // 2 GB

std::string KindText(trace::Kind kind) { return LowerCase(trace::Kind_Name(kind)); }

// "worker/worker-0/123" -> "worker-0"; "server/1" -> "server-1".
std::string ShownName(const std::string& peer) {
  const size_t first = peer.find('/');
  if (first == std::string::npos) return Printable(peer);
  const size_t second = peer.find('/', first + 1);
  if (second != std::string::npos) return Printable(peer.substr(first + 1, second - first - 1));
  return Printable(peer.substr(0, first) + "-" + peer.substr(first + 1));
}

JsonFields Subject(const trace::Span& span) {
  JsonFields subject;
  if (span.has_round()) subject.Add("round", span.round());
  if (span.has_partition()) subject.Add("partition", span.partition());
  if (span.has_chunk()) subject.Add("chunk", span.chunk());
  return subject;
}

// True if sums and differences of a few such numbers cannot overflow: peers are untrusted.
bool IsTime(TimeUs time) {
  constexpr TimeUs kMost = TimeUs{1} << 58;
  return -kMost < time && time < kMost;
}

// Spans that overlap each other are written as begin and end events with a number of their own.
void AddSpan(const trace::Span& span, int process, TimeUs offset, int64_t number,
             std::string* json) {
  const TimeUs begin = span.begin_us() - offset;
  JsonFields event;
  event.Add("name", KindText(span.kind())).Add("cat", KindText(span.kind()));
  event.Add("pid", process).Add("ts", begin);
  if (span.thread() > 0) {
    event.Add("ph", "X").Add("tid", span.thread()).Add("dur", span.duration_us());
    event.Add("args", Subject(span));
    *json += ",\n" + event.object();
    return;
  }
  event.Add("ph", "b").Add("id", number).Add("args", Subject(span));
  JsonFields end;
  end.Add("name", KindText(span.kind())).Add("cat", KindText(span.kind()));
  end.Add("pid", process).Add("ts", begin + span.duration_us()).Add("ph", "e").Add("id", number);
  *json += ",\n" + event.object() + ",\n" + end.object();
}

std::string NameEvent(const std::string& name, int process) {
  return JsonFields()
      .Add("name", "process_name")
      .Add("ph", "M")
      .Add("pid", process)
      .Add("args", JsonFields().Add("name", name))
      .object();
}

}  // namespace

void ChromeTrace::Add(const wire::TraceReport& report, const void* payload, size_t bytes) {
  if (processes_.size() >= kMostProcesses && !processes_.contains(report.peer())) return;
  Process& process = processes_[report.peer()];
  process.dropped = report.dropped();
  not_passed_on_ = report.not_passed_on();
  if (report.has_order_sent_us()) {
    if (!IsTime(report.received_us()) || !IsTime(report.order_sent_us()) ||
        !IsTime(report.answered_us())) {
      return;
    }
    const TimeUs round_trip = report.received_us() - report.order_sent_us();
    if (round_trip >= 0 && (process.round_trip < 0 || round_trip < process.round_trip)) {
      process.round_trip = round_trip;
      process.offset = report.answered_us() - (report.order_sent_us() + round_trip / 2);
    }
  }
  trace::Spans spans;
  if (bytes > INT_MAX || !spans.ParseFromArray(payload, static_cast<int>(bytes))) return;
  if (spans_ + spans.spans_size() > kMostSpans) {
    not_kept_ += static_cast<uint64_t>(spans.spans_size());
    return;
  }
  spans_ += spans.spans_size();
  for (trace::Span& span : *spans.mutable_spans()) {
    if (IsTime(span.begin_us()) && IsTime(span.duration_us())) {
      process.spans.push_back(std::move(span));
    }
  }
}

std::string ChromeTrace::Json() const {
  TimeUs first = std::numeric_limits<TimeUs>::max();
  for (const auto& [peer, process] : processes_) {
    if (process.round_trip < 0) continue;  // its clock is not known
    for (const trace::Span& span : process.spans)
      first = std::min(first, span.begin_us() - process.offset);
  }
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  int number = 0;
  int64_t request = 0;
  std::string events;
  for (const auto& [peer, process] : processes_) {
    ++number;
    if (process.round_trip < 0) continue;
    events += ",\n" + NameEvent(ShownName(peer), number);
    for (const trace::Span& span : process.spans)
      AddSpan(span, number, process.offset + first, ++request, &events);
  }
  // Skips the comma before the first event.
  return json + (events.empty() ? "" : events.substr(2)) + "\n]}\n";
}

size_t ChromeTrace::processes() const {
  return static_cast<size_t>(std::ranges::count_if(
      processes_, [](const auto& process) { return process.second.round_trip >= 0; }));
}

uint64_t ChromeTrace::spans() const {
  uint64_t spans = 0;
  for (const auto& [peer, process] : processes_) {
    if (process.round_trip >= 0) spans += process.spans.size();
  }
  return spans;
}

uint64_t ChromeTrace::lost() const {
  uint64_t lost = not_passed_on_ + not_kept_;
  for (const auto& [peer, process] : processes_) {
    lost += process.dropped;
    if (process.round_trip < 0) lost += process.spans.size();
  }
  return lost;
}

TimeUs ChromeTrace::uncertainty() const {
  TimeUs worst = 0;
  for (const auto& [peer, process] : processes_) worst = std::max(worst, process.round_trip / 2);
  return worst;
}

}  // namespace kumo
