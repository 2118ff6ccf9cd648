// Thread pool for arithmetic and slow writes, so that the loop thread that owns the protocol state
// never waits for them.
//
// Owned by main or a test; passed by pointer. Thread-safe, except that one thread calls Shutdown
// and the destructor. Tasks must not throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/status.h"

namespace kumo {

class ThreadPool {
 public:
  // With 0 threads, tasks run inline in the calling thread. Requires threads >= 0. A thread without
  // a task, and the caller of ParallelFor while others finish, look for work for the time `awake`
  // before they sleep: being woken takes longer than many a piece of arithmetic. Throws what
  // StartThread throws.
  explicit ThreadPool(int threads, std::chrono::microseconds awake = {});
  // Runs the submitted tasks and joins, unless Shutdown was called. Without time limit: see
  // Shutdown.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  // Runs `task` later on one of the threads, in the order of submission. Returns false, without
  // taking the task, after Shutdown. The queue is unbounded: callers bound the tasks in flight.
  bool Submit(std::function<void()> task);

  // Runs body(0) ... body(n - 1) in any order, concurrently on the pool's threads and the calling
  // thread; returns when all are done. May be nested in a task or another ParallelFor.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& body);

  // Stops accepting tasks and waits timeout_ms for the submitted ones. Unavailable, with the
  // numbers of running and dropped tasks, if time ran out: queued tasks are then dropped and
  // threads still in a task are abandoned, so the process should end soon.
  Status Shutdown(int64_t timeout_ms);

 private:
  struct Queue;

  // Closes the queue, runs what is in it, and joins the threads.
  void End();

  // Shared with the threads, so that an abandoned thread does not touch freed memory.
  std::shared_ptr<Queue> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace kumo
