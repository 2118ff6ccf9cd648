// CPU backend: own kernels with the samples in the vector lanes (elementwise_kernel.h), and
// oneDNN's matrix product.
//
// A result is the same bits in every process on one kind of CPU for a given number of threads.
#pragma once

#include <memory>

#include "common/base/isa.h"
#include "common/base/status.h"
#include "models/backend/backend.h"
#include "models/backend/device_array.h"

namespace kumo {

// `threads` share each op's work, the calling thread included. Requires threads >= 1 and an `isa`
// that this machine has.
std::unique_ptr<Backend> MakeCpuBackend(int threads, Isa isa = DetectIsa());

// Limits the matrix products of this process to an instruction-set level, which all later backends
// must have. Internal if the library has computed with another level already.
Status LimitProducts(Isa isa);

// Backend for counting a net's memory (host_memory.h): its arrays are in `memory`, which outlives
// the backend. Ops reserve memory for `threads` threads, but no thread is started: do not run a
// net.
std::unique_ptr<Backend> MakeCpuBackendIn(DeviceMemory* memory, int threads = 1);

}  // namespace kumo
