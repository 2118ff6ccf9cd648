// The yardstick of arithmetic, compiled per instruction-set level as the kernels are.
#pragma once

#include <cstddef>

namespace kumo {

struct YardstickKernels {
  void (*add_into)(float* a, const float* b, size_t n);  // a += b
};

}  // namespace kumo
