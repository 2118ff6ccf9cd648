#include "common/trace/tracer.h"

#include <utility>

namespace kumo {

void Tracer::Start() {
  const MutexLock lock(mutex_);
  spans_.clear();  // a span of the trace before may have come after Stop (see Add)
  dropped_ = 0;
  on_ = true;
}

void Tracer::Stop() {
  const MutexLock lock(mutex_);
  on_ = false;
  spans_.clear();
}

void Tracer::Add(trace::Kind kind, TimeUs begin, TimeUs end, const TraceSubject& subject,
                 bool threaded) {
  // Read without the lock, so that the threads of a process that is not traced do not meet at a
  // mutex. A thread that has just read it may add its span after Stop; Start discards the span.
  if (!on()) return;
  trace::Span span;
  span.set_kind(kind);
  span.set_begin_us(begin);
  span.set_duration_us(end - begin);
  if (subject.round) span.set_round(*subject.round);
  if (subject.partition) span.set_partition(*subject.partition);
  if (subject.chunk) span.set_chunk(*subject.chunk);
  const MutexLock lock(mutex_);
  // The newest is dropped, not the oldest: what is there stays in order, and memory stays bounded
  // if nobody takes the spans.
  if (spans_.size() == kMostSpans) {
    ++dropped_;
    return;
  }
  // Threads are numbered in the order of their first spans, for life, so that a thread keeps its
  // track in a later trace.
  if (threaded) {
    const auto number = static_cast<uint32_t>(threads_.size() + 1);
    span.set_thread(threads_.try_emplace(std::this_thread::get_id(), number).first->second);
  }
  spans_.push_back(std::move(span));
}

std::vector<trace::Span> Tracer::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(spans_, {});
}

uint64_t Tracer::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace kumo
