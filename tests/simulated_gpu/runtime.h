// How a function of the runtime, and of the libraries on top of it, is called.
#pragma once

#include <mutex>

#include <cuda_runtime_api.h>

#include "tests/simulated_gpu/machine.h"

namespace kumo::simulated_gpu {

// What the thread's cudaGetLastError is to say.
cudaError_t& LastError();

// Makes one call of the runtime: call(Machine&) is made unless the device has failed or the test
// has ordered a failure.
template <typename F>
cudaError_t Runtime(F call) {
  Machine& machine = Machine::Get();
  const std::lock_guard lock(machine.mutex());
  const std::optional<int> ordered = machine.OrderedFailure(Api::kRuntime);
  cudaError_t error = ordered ? static_cast<cudaError_t>(*ordered) : machine.fault();
  if (error == cudaSuccess) error = call(machine);
  if (error != cudaSuccess) LastError() = error;
  return error;
}

// The same of a library, whose own code for a failed device is `failed`.
template <typename Code, typename F>
Code Library(Api api, Code failed, F call) {
  Machine& machine = Machine::Get();
  const std::lock_guard lock(machine.mutex());
  if (const std::optional<int> ordered = machine.OrderedFailure(api)) {
    return static_cast<Code>(*ordered);
  }
  return machine.fault() == cudaSuccess ? call(machine) : failed;
}

}  // namespace kumo::simulated_gpu
