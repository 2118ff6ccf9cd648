// Optimiser kernel: the traits of an optimiser, the numbers of a step, and its step on one weight
// as it is compiled for each instruction-set level of the CPU (step_kernel.cc).
//
// An optimiser is a struct in a header beside sgd.h, with
//   kTraits      its OptimiserTraits
//   Next(numbers, gradient, weight, first, second): the weight after the step; first and second are
//       its slots, and stay as they are if it has none
// Such a header is a kernel header (common/base/isa.h), for the CPU and for devices: the source
// that includes it has named the namespace (KUMO_ISA), the prefix of functions (KUMO_STEP), and a
// SquareRoot(float) there.
#pragma once

#include <cstddef>

#include "common/base/addend.h"

namespace kumo {

enum class OptimiserType { kSgd, kMomentum, kNesterov, kAdam, kAdamW, kMuon };

struct OptimiserTraits {
  OptimiserType type;
  const char* name;  // in experiment files
  const char* help;  // a few words for people
  int slots = 0;     // numbers of state per weight: 0 .. 2
  // The meaning of the slots in a word: slots of equal words mean the same, and a job that
  // continues with another optimiser keeps them; "" without slots.
  const char* state = "";
  bool has_momentum = false;   // reads momentum
  bool has_unit_gain = false;  // reads unit_gain
  // Reads adam_rate and adam_inverse, and with them beta1, beta2 and epsilon: slots that are zero
  // are right at its first step only.
  bool corrects_bias = false;
  // Steps matrices as a whole (models/weight_step.h), and reads matrix_rate and one_minus_momentum;
  // Next is for the other weights. Such an optimiser cannot step chunks.
  bool steps_matrices = false;
};

// The numbers of one step, computed in double if the rounding matters.
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
  float matrix_rate;   // the learning rate of matrices; learning_rate is that of other weights
  float one_minus_momentum;
};

// One optimiser's step as a plain function over arrays.
struct OptimiserKernel {
  OptimiserTraits traits;
  // The gradient is an array (null: zeros) plus addends. next may be weights; slots[0 .. slots) are
  // arrays of n. Factors as Scaled (scaled.h).
  void (*step)(const StepNumbers& numbers, float rate_factor, float decay_factor,
               const float* gradient, const Addend* addends, size_t addend_count,
               const float* weights, float* next, float* const* slots, size_t n);
};

// The step of a matrix (muon.h) before and after its orthogonalisation, over arrays of n.
struct MatrixStepKernels {
  void (*direction)(const StepNumbers& numbers, const float* gradient, float* mean, float* to,
                    size_t n);
  void (*step)(const StepNumbers& numbers, float rate_factor, float decay_factor, float stretch,
               const float* x, float* weights, size_t n);
};

// All optimisers at one level.
struct OptimiserKernels {
  const OptimiserKernel* first;
  size_t count;
  MatrixStepKernels matrix;
};

}  // namespace kumo
