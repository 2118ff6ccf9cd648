// Mutex and condition variable with annotations for Clang's thread-safety analysis
// (https://clang.llvm.org/docs/ThreadSafetyAnalysis.html).
//
// Shared members are marked KUMO_GUARDED_BY(mutex_), functions that require the lock
// KUMO_REQUIRES(mutex_). Clang refuses accesses without the lock (-Wthread-safety); other compilers
// ignore the annotations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KUMO_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define KUMO_THREAD_ANNOTATION(x)
#endif

// Member annotation: accessed only with the mutex held.
#define KUMO_GUARDED_BY(mutex) KUMO_THREAD_ANNOTATION(guarded_by(mutex))
// Function annotations: the caller holds, or must not hold, the mutex.
#define KUMO_REQUIRES(mutex) KUMO_THREAD_ANNOTATION(requires_capability(mutex))
#define KUMO_EXCLUDES(mutex) KUMO_THREAD_ANNOTATION(locks_excluded(mutex))
// Annotations of functions that lock or unlock the mutex (no argument: the object itself).
#define KUMO_ACQUIRE(...) KUMO_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define KUMO_RELEASE(...) KUMO_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define KUMO_CAPABILITY(name) KUMO_THREAD_ANNOTATION(capability(name))
#define KUMO_SCOPED_CAPABILITY KUMO_THREAD_ANNOTATION(scoped_lockable)

namespace kumo {

class KUMO_CAPABILITY("mutex") Mutex {
 public:
  void Lock() KUMO_ACQUIRE() { mutex_.lock(); }
  void Unlock() KUMO_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for its scope.
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
  // Releases the mutex while it sleeps and holds it again when it returns. May wake spuriously:
  // call it in a loop over the condition.
  void Wait(Mutex& mutex) KUMO_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Like Wait, but returns false once `deadline` has passed.
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
