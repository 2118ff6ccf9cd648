// Thread start for processes that end if the system refuses a thread, and a try whether it does.
//
// Thread-safe, except SetThreadFailureHandler.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "common/base/status.h"

namespace kumo {

// Starts a thread that runs `body`. If the system refuses the thread, calls the failure handler;
// without one it throws std::system_error, as std::thread does.
std::thread StartThread(std::function<void()> body);

// Handler of a refused thread, with the system's reason; it must not return. Set once by main,
// before other threads (EndWhenOutOfResources); a library's process has none.
using ThreadFailureHandler = void (*)(const std::string& reason);
void SetThreadFailureHandler(ThreadFailureHandler handler);

// Checks that `count` threads can be started now, by starting them; they have ended on return. For
// libraries that abort if the system refuses a thread. ResourceExhausted, with the system's reason.
Status TryThreads(int count);

}  // namespace kumo
