// Arithmetic of a device on whole arenas of float32 numbers: sums, gradient clipping and optimiser
// steps.
//
// A part of Backend. Not thread-safe: one caller at a time (gradient_codec.h has the exception).
#pragma once

#include <cstdint>

#include "common/job/parameter_layout.h"

namespace kumo {

class ArenaArithmetic {
 public:
  virtual ~ArenaArithmetic() = default;

  // to += factor * from, for n numbers.
  virtual void AddTo(float factor, const float* from, int64_t n, float* to) = 0;
  // Computes the factor by which OptimiserStep and ScaleGradients multiply gradients. To be called
  // when a step's n trained gradients are there. The factor is 1 but for
  // - StepParameters::clip_norm: min(1, clip_norm / their L2 norm);
  // - the loss scale of fp16 activations, whose small gradients would be 0: losses are multiplied
  //   by it, gradients divided. It is halved when a gradient has become infinite, and that step
  //   left out (factor 0: OptimiserStep moves nothing, scaled gradients are 0); doubled after 2000
  //   good steps (Micikevicius et al. 2018, Mixed Precision Training).
  virtual void MeasureGradients(const float* gradients, int64_t n) = 0;
  // Multiplies gradients by the factor, unless it is 1.
  virtual void ScaleGradients(float* gradients, int64_t n) = 0;
  // One step of n weights of a segment in place, by the current step's optimiser and that factor,
  // with factors of learning rate and weight decay. `slots` as Optimiser::Step has them. Requires
  // factors that are not frozen.
  virtual void OptimiserStep(Segment segment, const StepFactors& factors, const float* gradient,
                             int64_t n, float* weights, float* const* slots) = 0;
};

}  // namespace kumo
