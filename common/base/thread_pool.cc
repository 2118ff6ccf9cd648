#include "common/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace kumo {

struct ThreadPool::Queue {
  Mutex mutex;
  CondVar changed;  // a task was added, or closed became true
  CondVar drained;  // the last thread ended
  std::deque<std::function<void()>> tasks KUMO_GUARDED_BY(mutex);
  bool closed KUMO_GUARDED_BY(mutex) = false;
  int alive KUMO_GUARDED_BY(mutex) = 0;  // threads that have not ended

  // Loop of each thread: runs tasks until the queue is empty and closed.
  void Run() KUMO_EXCLUDES(mutex) {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(mutex);
        while (tasks.empty() && !closed) changed.Wait(mutex);
        if (tasks.empty()) {
          if (--alive == 0) drained.NotifyAll();
          return;
        }
        task = std::move(tasks.front());
        tasks.pop_front();
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
    MutexLock lock(mutex_);
    done_ += ran;
    if (done_ == n_) finished_.NotifyAll();
  }

  void Wait() {
    MutexLock lock(mutex_);
    while (done_ < n_) finished_.Wait(mutex_);
  }

 private:
  const int64_t n_;
  const std::function<void(int64_t)>* const body_;
  std::atomic<int64_t> next_{0};
  Mutex mutex_;
  CondVar finished_;
  int64_t done_ KUMO_GUARDED_BY(mutex_) = 0;
};

}  // namespace

ThreadPool::ThreadPool(int threads) : queue_(std::make_shared<Queue>()) {
  CHECK_GE(threads, 0);
  {
    MutexLock lock(queue_->mutex);
    queue_->alive = threads;
  }
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i)
    threads_.push_back(StartThread([queue = queue_] { queue->Run(); }));
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(queue_->mutex);
    queue_->closed = true;
  }
  queue_->changed.NotifyAll();
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
  loop->Wait();
}

Status ThreadPool::Shutdown(int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::deque<std::function<void()>> dropped;  // destroyed outside the lock
  int running = 0;
  {
    MutexLock lock(queue_->mutex);
    queue_->closed = true;
    queue_->changed.NotifyAll();
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
