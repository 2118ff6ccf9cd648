#include "common/base/thread.h"

#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace kumo {
namespace {

ThreadFailureHandler failure_handler = nullptr;

}  // namespace

std::thread StartThread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    if (failure_handler == nullptr) throw;
    failure_handler(error.code().message());
    std::abort();  // a handler does not return
  }
}

void SetThreadFailureHandler(ThreadFailureHandler handler) { failure_handler = handler; }

Status TryThreads(int count) {
  Mutex mutex;
  CondVar changed;
  bool end = false;
  std::vector<std::thread> threads;
  Status status;
  try {
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        MutexLock lock(mutex);
        while (!end) changed.Wait(mutex);
      });
    }
  } catch (const std::system_error& error) {
    status = ResourceExhausted("cannot start a thread: " + error.code().message());
  }
  {
    MutexLock lock(mutex);
    end = true;
  }
  changed.NotifyAll();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace kumo
