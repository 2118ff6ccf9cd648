// Yardsticks: the maximum throughput of processor and memory, compiled per instruction-set level
// like the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

struct YardstickKernels {
  void (*add_into)(float* a, const float* b, size_t n);  // a += b
  // Multiply-adds in registers, floats_per_round per round; the result prevents their elimination.
  float (*multiply_add)(int64_t rounds, float factor);
  int floats_per_round;
};

KUMO_DECLARE_PER_ISA(const YardstickKernels, kYardstick)

}  // namespace kumo
