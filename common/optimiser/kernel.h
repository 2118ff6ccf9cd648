// What one optimiser hands to optimiser.cc: its step as a plain function over arrays, compiled per
// instruction-set level.
#pragma once

#include <cstddef>

namespace kumo {

// The numbers of one step, worked out in double where that matters.
struct StepNumbers {
  float scale;  // of the gradient
  float learning_rate;
  float weight_decay;
  float momentum;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float epsilon;
  float adam_rate;     // learning_rate / (1 - beta1^step)
  float adam_inverse;  // 1 / sqrt(1 - beta2^step)
  float shrink;        // 1 - learning_rate * weight_decay
};

struct OptimiserKernel {
  const char* name;
  int slots;
  bool corrects_bias;  // reads adam_rate and adam_inverse
  // next may be weights; slots[0 .. slots) are arrays of n.
  void (*step)(const StepNumbers& numbers, const float* gradient, const float* weights, float* next,
               float* const* slots, size_t n);
};

}  // namespace kumo
