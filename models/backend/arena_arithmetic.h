// What a device does with whole arenas of float32 numbers beside coding them.
#pragma once

#include <cstdint>

#include "common/job/parameter_layout.h"

namespace kumo {

class ArenaArithmetic {
 public:
  virtual ~ArenaArithmetic() = default;

  // Adds n numbers to others.
  virtual void AddTo(const float* from, int64_t n, float* to) = 0;
  // To be called when a step's n trained gradients are there: works out the factor that
  // OptimiserStep and ScaleGradients multiply them with. It is 1 but for
  // - StepParameters::clip_norm: min(1, clip_norm / their L2 norm);
  // - the loss scale of fp16 activations, whose small gradients would be 0: losses are multiplied
  //   by it, gradients divided. It is halved when a gradient has become infinite, and that step
  //   left out (factor 0: OptimiserStep moves nothing, scaled gradients are 0); doubled after 2000
  //   good steps (Micikevicius et al. 2018, Mixed Precision Training).
  virtual void MeasureGradients(const float* gradients, int64_t n) = 0;
  // Multiplies them by the factor, where it is not 1.
  virtual void ScaleGradients(float* gradients, int64_t n) = 0;
  // One step of n weights of a segment in place, by the current step's optimiser and that factor.
  // `slots` as Optimiser::Step has them.
  virtual void OptimiserStep(Segment segment, const float* gradient, int64_t n, float* weights,
                             float* const* slots) = 0;
};

}  // namespace kumo
