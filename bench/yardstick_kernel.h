// What processor and memory can do at most, compiled per instruction-set level as the kernels are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

struct YardstickKernels {
  void (*add_into)(float* a, const float* b, size_t n);  // a += b
  // Multiplies and adds in registers alone, floats_per_round times a round; the result keeps the
  // compiler from leaving it out.
  float (*multiply_add)(int64_t rounds, float factor);
  int floats_per_round;
};

KUMO_DECLARE_PER_ISA(const YardstickKernels, kYardstick)

}  // namespace kumo
