#include "common/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace kumo {

namespace {

// Whether is_done() becomes true within the time `awake`. Lets other threads run meanwhile.
template <typename Condition>
bool IsDoneWithin(std::chrono::microseconds awake, const Condition& is_done) {
  if (awake.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + awake;
  do {
    for (int i = 0; i < 64; ++i) {
      if (is_done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

struct ThreadPool::Queue {
  explicit Queue(std::chrono::microseconds time) : awake(time) {}

  const std::chrono::microseconds awake;
  // Whether there are tasks, or closed is true: threads that are awake read it without the
  // mutex.
  std::atomic<bool> has_work{false};
  Mutex mutex;
  CondVar changed;  // a task was added, or closed became true
  CondVar drained;  // the last thread ended
  std::deque<std::function<void()>> tasks KUMO_GUARDED_BY(mutex);
  bool closed KUMO_GUARDED_BY(mutex) = false;
  int alive KUMO_GUARDED_BY(mutex) = 0;  // threads that have not ended

  void Close() KUMO_REQUIRES(mutex) {
    closed = true;
    has_work.store(true, std::memory_order_relaxed);
    changed.NotifyAll();
  }

  // Loop of each thread: runs tasks until the queue is empty and closed.
  void Run() KUMO_EXCLUDES(mutex) {
    while (true) {
      std::function<void()> task;
      IsDoneWithin(awake, [&] { return has_work.load(std::memory_order_relaxed); });
      {
        MutexLock lock(mutex);
        while (tasks.empty() && !closed) changed.Wait(mutex);
        if (tasks.empty()) {
          if (--alive == 0) drained.NotifyAll();
          return;
        }
        task = std::move(tasks.front());
        tasks.pop_front();
        has_work.store(closed || !tasks.empty(), std::memory_order_relaxed);
      }
      task();
    }
  }
};

namespace {

// State of one ParallelFor: threads draw indices until none are left. A helper may start after the
// loop has ended (its task was queued behind others); it then finds no index and returns without
// touching `body`, which no longer exists.
class Loop {
 public:
  Loop(int64_t n, const std::function<void(int64_t)>* body) : n_(n), body_(body) {}

  void Run() {
    int64_t ran = 0;
    for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < n_;
         i = next_.fetch_add(1, std::memory_order_relaxed)) {
      (*body_)(i);
      ++ran;
    }
    if (ran == 0) return;
    if (done_.fetch_add(ran, std::memory_order_acq_rel) + ran < n_) return;
    MutexLock lock(mutex_);
    finished_.NotifyAll();
  }

  void Wait(std::chrono::microseconds awake) {
    const auto is_done = [&] { return done_.load(std::memory_order_acquire) == n_; };
    if (is_done() || IsDoneWithin(awake, is_done)) return;
    MutexLock lock(mutex_);
    while (!is_done()) finished_.Wait(mutex_);
  }

 private:
  const int64_t n_;
  const std::function<void(int64_t)>* const body_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> done_{0};
  Mutex mutex_;
  CondVar finished_;  // done_ became n_
};

}  // namespace

ThreadPool::ThreadPool(int threads, std::chrono::microseconds awake)
    : queue_(std::make_shared<Queue>(awake)) {
  CHECK_GE(threads, 0);
  {
    MutexLock lock(queue_->mutex);
    queue_->alive = threads;
  }
  threads_.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i)
      threads_.push_back(StartThread([queue = queue_] { queue->Run(); }));
  } catch (...) {
    End();
    throw;
  }
}

ThreadPool::~ThreadPool() { End(); }

void ThreadPool::End() {
  {
    MutexLock lock(queue_->mutex);
    queue_->Close();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool ThreadPool::Submit(std::function<void()> task) {
  {
    MutexLock lock(queue_->mutex);
    if (queue_->closed) return false;
    if (!threads_.empty()) {
      queue_->tasks.push_back(std::move(task));
      queue_->has_work.store(true, std::memory_order_relaxed);
      task = nullptr;
    }
  }
  if (task) {
    task();
  } else {
    queue_->changed.NotifyOne();
  }
  return true;
}

void ThreadPool::ParallelFor(int64_t n, const std::function<void(int64_t)>& body) {
  if (threads_.empty() || n <= 1) {
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  auto loop = std::make_shared<Loop>(n, &body);
  const int64_t helpers = std::min<int64_t>(threads(), n - 1);
  for (int64_t i = 0; i < helpers; ++i) Submit([loop] { loop->Run(); });
  loop->Run();
  loop->Wait(queue_->awake);
}

Status ThreadPool::Shutdown(int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::deque<std::function<void()>> dropped;  // destroyed outside the lock
  int running = 0;
  {
    MutexLock lock(queue_->mutex);
    queue_->Close();
    while (queue_->alive > 0 && queue_->drained.WaitUntil(queue_->mutex, deadline)) {
    }
    running = queue_->alive;
    dropped.swap(queue_->tasks);
  }
  for (std::thread& thread : threads_) {
    if (!thread.joinable()) continue;
    running == 0 ? thread.join() : thread.detach();
  }
  if (running == 0) return OkStatus();
  return Unavailable("after " + std::to_string(timeout_ms) + " ms " + std::to_string(running) +
                     " background task(s) are still running and " + std::to_string(dropped.size()) +
                     " queued one(s) were dropped");
}

}  // namespace kumo
