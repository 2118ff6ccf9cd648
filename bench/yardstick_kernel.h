// Yardsticks: the maximum throughput of processor and memory, compiled per instruction-set level
// like the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/isa.h"

namespace kumo {

// Block momentum over a chunk of `count` float32 contributions (1, 2 or 4) of equal `weight`:
//   velocity <- eta velocity + gain weight (sum of the contributions);  next = start - velocity
struct ClosingPass {
  const float* contributions[4];
  int count;
  float weight;
  float eta;
  float gain;
  const float* start;
  float* velocity;
  float* next;  // aligned to 64 bytes
  size_t n;     // a multiple of 16
};

struct YardstickKernels {
  void (*add_into)(float* a, const float* b, size_t n);  // a += b
  // Multiply-adds in registers, floats_per_round per round; the result prevents their elimination.
  float (*multiply_add)(int64_t rounds, float factor);
  int floats_per_round;
  // In a single pass, written for this number of contributions.
  void (*close_chunk)(const ClosingPass& pass);
};

KUMO_DECLARE_PER_ISA(const YardstickKernels, kYardstick)

}  // namespace kumo
