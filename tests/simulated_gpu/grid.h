// Runs a kernel: its blocks one after the other, a block's threads as fibers of one thread of the
// host. A thread runs straight through and gives way only where it waits for others, at a barrier
// or a shuffle; so kernels without them cost no switching.
//
// A barrier that a thread of the block ends without having reached, and a shuffle that waits for a
// thread that does not come or reads from one that takes no part, end the process, naming the
// kernel (by its parameters' types), the thread and the place.
#pragma once

#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

namespace kumo::simulated_gpu {

struct Kernel {
  const char* name = "";
  std::function<void()> thread;  // what each thread does, by its threadIdx and blockIdx
};

// Queues a kernel, as cudaLaunchKernelEx does.
cudaError_t Launch(const cudaLaunchConfig_t& config, Kernel kernel);
void RunGrid(const Kernel& kernel, dim3 grid, dim3 block);

// --- What the running thread calls

constexpr int kWarp = 32;

// A place in a kernel's source. Not std::source_location, which Clang 14 does not have.
struct Place {
  const char* function = "";
  const char* file = "";
  int line = 0;

  // Where it is called from; as a default argument, where that is used.
  static Place Here(const char* function = __builtin_FUNCTION(),
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {function, file, line};
  }
};

// Waits for all threads of the block.
void Barrier(const Place& where);
// Hands `value` to those lanes of `mask` that ask for it, and returns that of lane `source`. Waits
// until all of `mask` that have not ended have come with the same mask.
uint64_t Exchange(uint32_t mask, uint64_t value, int source, const Place& where);
// One bit for each lane of `mask`: whether its `predicate` was true.
uint32_t Ballot(uint32_t mask, bool predicate, const Place& where);
// The running thread's place in its warp.
int Lane();

}  // namespace kumo::simulated_gpu
