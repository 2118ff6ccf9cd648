// Threads of oneDNN: its calls stay on the caller's thread.
//
// Debian's oneDNN starts threads by the OpenMP library that it is linked with. The setting is found
// there by its name, so that Kumo itself is built without OpenMP. A oneDNN without OpenMP has no
// such setting and needs none. Thread-safe.
#pragma once

#include <dlfcn.h>

namespace kumo::cpu {

// omp_set_num_threads(1), which holds for the calling thread. Call it before each call of oneDNN.
inline void KeepOneDnnOnThisThread() {
  using SetThreads = void (*)(int);
  static const auto set_threads =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

}  // namespace kumo::cpu
