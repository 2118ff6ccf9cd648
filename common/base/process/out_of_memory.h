// How a process ends when memory that it needs cannot be had: with one line that says so, as after
// any other failure, and an exit code that says that a later start may find more.
//
// A new-handler can reach nothing but a global, so that this file has a static variable.
#pragma once

#include "common/base/process/last_words.h"

namespace kumo {

// From now on `new`, and arrays of common/base/buffer.h, end the process so. To be called once, by
// main; last_words is borrowed for the process's life.
void EndWhenOutOfMemory(const LastWords& last_words);

}  // namespace kumo
