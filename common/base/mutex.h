// A mutex and a condition variable that Clang's thread-safety analysis understands.
//
// What a mutex protects says so with KUMO_GUARDED_BY(mutex_); a function that wants the mutex held
// says KUMO_REQUIRES(mutex_) (common/base/thread_annotations.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "common/base/thread_annotations.h"

namespace kumo {

class KUMO_CAPABILITY("mutex") Mutex {
 public:
  void Lock() KUMO_ACQUIRE() { mutex_.lock(); }
  void Unlock() KUMO_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for the scope it stands in.
class KUMO_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KUMO_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() KUMO_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // Gives the mutex up while it sleeps and holds it again when it returns; may return without a
  // notification, so call it in a loop over the condition.
  void Wait(Mutex& mutex) KUMO_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // The same, until `deadline` at the latest: false when it has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      KUMO_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace kumo
