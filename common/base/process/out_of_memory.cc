#include "common/base/process/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace kumo {
namespace {

// What the last words themselves need.
constexpr size_t kReserveBytes = 256 * 1024;

const LastWords* words = nullptr;
char* reserve = nullptr;
std::atomic_flag ending = ATOMIC_FLAG_INIT;

void End() {
  if (ending.test_and_set()) {
    while (true) pause();  // another thread is at it
  }
  std::free(reserve);
  _exit(words->Say(ExitCode::kUnavailable,
                   "out of memory: this process could not get what it needs; give it more (limits "
                   "of the container, ulimit -v), or lower what `kumo check` says that it needs "
                   "most for"));
}

}  // namespace

void EndWhenOutOfMemory(const LastWords& last_words) {
  words = &last_words;
  reserve = static_cast<char*>(std::malloc(kReserveBytes));
  std::set_new_handler(End);
}

}  // namespace kumo
