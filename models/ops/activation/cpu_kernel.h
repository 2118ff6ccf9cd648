// Activation kernels for CPUs. cpu_kernel.cc has the formulas and the layout.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// One function. The arrays are whole vectors: behind n there is room for one. y may be x, dx may be
// dy. `slope` belongs to the leaky ReLU; the other functions ignore it.
struct ActivationKernel {
  void (*forward)(const float* x, int64_t n, float slope, float* y);
  // dx = dy f'. `from` is the function's value, or its input (DerivesFromInput).
  void (*backward)(const float* from, const float* dy, int64_t n, float slope, float* dx);
};

struct ActivationKernels {
  ActivationKernel relu;
  ActivationKernel leaky_relu;
  ActivationKernel gelu;
  ActivationKernel gelu_tanh;
  ActivationKernel silu;
  ActivationKernel tanh;
  ActivationKernel sigmoid;
};

KUMO_DECLARE_PER_ISA(const ActivationKernels, kActivation)

}  // namespace kumo
