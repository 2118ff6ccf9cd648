#include "worker/request_spans.h"

#include <cstddef>

namespace kumo {
namespace {

// Bounds the table: dropped requests are never answered, and their entries stay.
constexpr size_t kMostOpen = 20'000;

}  // namespace

void RequestSpans::OnSent(int server, const wire::Header& header, TimeUs now) {
  if (!tracer_->on()) {
    open_.clear();
    return;
  }
  const bool push = header.type() == wire::PUSH;
  if ((!push && header.type() != wire::PULL) || open_.size() >= kMostOpen) return;
  TraceSubject subject{.round = header.round(), .chunk = header.chunk()};
  if (push) subject.partition = header.partition();
  // A repeated request keeps its first time.
  open_.try_emplace({server, header.request()},
                    Open{push ? trace::PUSH : trace::PULL, now, subject});
}

void RequestSpans::OnArrived(int server, const wire::Header& header, TimeUs now) {
  if (open_.empty()) return;
  const auto open = open_.find({server, header.request()});
  if (open == open_.end()) return;
  tracer_->Add(open->second.kind, open->second.begin, now, open->second.subject,
               /*threaded=*/false);
  open_.erase(open);
}

}  // namespace kumo
