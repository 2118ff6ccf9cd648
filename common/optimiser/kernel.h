// What an optimiser is made of: the numbers of a step, and what its step on one weight is compiled
// to for each instruction-set level of the CPU (step_kernel.cc).
//
// An optimiser is a struct in a header beside sgd.h, with
//   kName        optimiser.type
//   kSlots       numbers of state per weight: 0 .. 2
//   kState       what they are, in a word: slots of equal words mean the same, and a job that goes
//   on
//                with another optimiser keeps them; "" where there are none
//   kCorrectsBias  whether it reads adam_rate and adam_inverse
//   Next(numbers, gradient, weight, first, second): the weight after the step; first and second are
//       its slots, and are left alone where it has none
// Such a header is a kernel header (common/base/isa.h), for the CPU and for devices: who includes
// it has named the namespace (KUMO_ISA), says what stands in front of a function (KUMO_STEP), and
// has a SquareRoot(float) there.
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

// One optimiser's step as a plain function over arrays.
struct OptimiserKernel {
  const char* name;
  int slots;
  const char* state;
  bool corrects_bias;
  // next may be weights; slots[0 .. slots) are arrays of n.
  void (*step)(const StepNumbers& numbers, const float* gradient, const float* weights, float* next,
               float* const* slots, size_t n);
};

// All optimisers at one level.
struct OptimiserKernels {
  const OptimiserKernel* first;
  size_t count;
};

}  // namespace kumo
