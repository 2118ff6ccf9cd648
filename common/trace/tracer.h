// What a process does when, as long as somebody asks: spans of time, for `kumo trace`.
//
// Off, a span costs the reading of one flag. On, it costs two looks at the clock and a lock; what
// is not taken in time is dropped, and counted.
//
// One for a process, handed down by pointer. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "proto/trace.pb.h"

namespace kumo {

// What a span is about; what is not known is left out.
struct TraceSubject {
  std::optional<int64_t> round{};
  std::optional<int> partition{};
  std::optional<int> chunk{};
};

class Tracer {
 public:
  // Held at most until they are taken; of 100 bytes each.
  static constexpr size_t kMostSpans = 20'000;

  // clock: borrowed for life.
  explicit Tracer(const Clock* clock) : clock_(clock) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Start();
  // What was not taken is lost.
  void Stop();

  // Nothing while it is off. On the calling thread, where `threaded`.
  void Add(trace::Kind kind, TimeUs begin, TimeUs end, const TraceSubject& subject,
           bool threaded = true);
  // All since the last call.
  std::vector<trace::Span> Take();
  // Since Start.
  uint64_t dropped() const;

  TimeUs NowUs() const { return clock_->NowUs(); }

 private:
  const Clock* const clock_;
  std::atomic<bool> on_{false};
  mutable Mutex mutex_;
  std::vector<trace::Span> spans_ KUMO_GUARDED_BY(mutex_);
  uint64_t dropped_ KUMO_GUARDED_BY(mutex_) = 0;
  // Numbers of threads; there are few, and they live as long as the process.
  std::unordered_map<std::thread::id, uint32_t> threads_ KUMO_GUARDED_BY(mutex_);
};

// A span from here to the end of the scope that it stands in, on this thread.
class TraceScope {
 public:
  TraceScope(Tracer* tracer, trace::Kind kind, TraceSubject subject)
      : tracer_(tracer->on() ? tracer : nullptr), kind_(kind), subject_(subject) {
    if (tracer_ != nullptr) begin_ = tracer_->NowUs();
  }
  ~TraceScope() {
    if (tracer_ != nullptr) tracer_->Add(kind_, begin_, tracer_->NowUs(), subject_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  Tracer* const tracer_;  // null: it was off
  const trace::Kind kind_;
  const TraceSubject subject_;
  TimeUs begin_ = 0;
};

}  // namespace kumo
