// A fixed number of threads that do the arithmetic and the slow writing, so that the loop thread
// that owns the protocol state never waits for either.
//
// Owned by main or by a test; handed down by pointer. Thread-safe, but for Shutdown and the
// destructor, which one thread calls. Tasks must not throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/status.h"

namespace kumo {

class ThreadPool {
 public:
  // With 0 threads everything runs inline, in the thread that asks for it. Requires threads >= 0.
  explicit ThreadPool(int threads);
  // Runs what was submitted and joins, unless Shutdown did it. No limit: see Shutdown.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  // Runs `task` later on one of the threads, in the order of submission. False after Shutdown: the
  // task was not taken. The queue has no bound: callers bound what they have in flight.
  bool Submit(std::function<void()> task);

  // body(0) ... body(n - 1), in any order, by the pool's threads and the calling one; returns when
  // all are done. May be called from inside a task or another ParallelFor. `body` runs on several
  // threads at once.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& body);

  // Takes no more tasks and gives those already submitted timeout_ms to end. Unavailable, with the
  // numbers of running and of dropped tasks, when that was not enough: queued tasks are then
  // dropped and threads still in a task are abandoned, so the process should end soon.
  Status Shutdown(int64_t timeout_ms);

 private:
  struct Queue;

  // Shared with the threads, so that an abandoned one does not touch freed memory.
  std::shared_ptr<Queue> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace kumo
