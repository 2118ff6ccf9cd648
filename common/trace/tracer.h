// Tracer: time spans of a process's activities for `kumo trace`.
//
// While off, a span costs one read of a flag. While on, it costs two clock reads and a lock; spans
// that are not taken in time are dropped and counted.
//
// One per process, passed by pointer. Thread-safe.
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

// Subject of a span; unknown parts are absent.
struct TraceSubject {
  std::optional<int64_t> round{};
  std::optional<int> partition{};
  std::optional<int> chunk{};
};

class Tracer {
 public:
  // Spans that are held until Take, of about 100 bytes each.
  static constexpr size_t kMostSpans = 20'000;

  // clock must outlive the tracer.
  explicit Tracer(const Clock* clock) : clock_(clock) {}

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Start();
  // Discards the spans that were not taken.
  void Stop();

  // Adds a span while on. threaded: it belongs to the calling thread.
  void Add(trace::Kind kind, TimeUs begin, TimeUs end, const TraceSubject& subject,
           bool threaded = true);
  // Returns the spans since the last call.
  std::vector<trace::Span> Take();
  // Dropped spans since Start.
  uint64_t dropped() const;

  TimeUs NowUs() const { return clock_->NowUs(); }

 private:
  const Clock* const clock_;
  std::atomic<bool> on_{false};
  mutable Mutex mutex_;
  std::vector<trace::Span> spans_ KUMO_GUARDED_BY(mutex_);
  uint64_t dropped_ KUMO_GUARDED_BY(mutex_) = 0;
  // Thread numbers; threads are few and live as long as the process.
  std::unordered_map<std::thread::id, uint32_t> threads_ KUMO_GUARDED_BY(mutex_);
};

// Span from its construction to the end of its scope, on this thread.
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
