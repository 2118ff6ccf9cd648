// Optimisers: a gradient -> a step, per element, in one pass over long arrays. Workers use them for
// their local minibatches, the servers' rule `gradient` for each round.
//
// An optimiser is immutable and thread-safe; its state (the slots) belongs to the caller: slots()
// arrays as long as the weights, zero at the start. Steps are per element, so any range of the flat
// vector can be stepped by itself and in any order, with the same bits on every instruction set.
//
// With g the scaled gradient, r the learning rate, d the weight decay (conventions of PyTorch's
// optimisers of these names; all.h lists them):
//   sgd       g += d w;  w -= r g
//   momentum  g += d w;  v <- momentum v + g;  w -= r v
//   nesterov  g += d w;  v <- momentum v + g;  w -= r (g + momentum v)
//   both with unit gain (CNTK's convention): with (1 - momentum) g in place of g
//   adam      g += d w;  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
//             w -= r / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
//   adamw     w -= r d w, then adam with d = 0
//   muon      of a matrix W:  M <- momentum M + (1 - momentum) G;
//             X = orthogonal factor of (1 - momentum) G + momentum M;
//             W <- (1 - r d) W - r sqrt(max(1, rows / columns)) X
//             other weights: adamw with r = adamw_factor times the learning rate
// (Chainer's Adam adds epsilon to sqrt(v) instead; with its default of 1e-8 the two differ only for
// gradients below about 1e-6.)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "common/base/choice.h"
#include "common/base/isa.h"
#include "common/optimiser/kernel.h"
#include "common/optimiser/step_factors.h"

namespace kumo {

struct OptimiserSettings {
  OptimiserType type = OptimiserType::kMomentum;
  float momentum = 0.9f;   // momentum, nesterov, muon: 0 <= momentum < 1
  bool unit_gain = false;  // momentum, nesterov: v is a mean of gradients
  float beta1 = 0.9f;      // adam, adamw, muon: 0 <= beta < 1
  float beta2 = 0.999f;
  float epsilon = 1e-8f;       // > 0
  float weight_decay = 0.0f;   // >= 0; callers put it into StepInfo for segments that are decayed
  float clip_norm = 0.0f;      // >= 0; largest norm of a minibatch's gradients; 0: no clipping
  float adamw_factor = 0.05f;  // muon: > 0; of the learning rate, for weights that are no matrices
};

// The inputs of a step that change from step to step.
struct StepInfo {
  float learning_rate = 0.0f;
  float weight_decay = 0.0f;  // 0 for the segments that are not decayed
  int64_t step = 1;           // counted from 1 since the slots were zero: Adam's bias correction
  std::optional<float> momentum = std::nullopt;  // in place of the settings'
  StepFactors factors = {};                      // of learning_rate and weight_decay
};

class Optimiser {
 public:
  static constexpr int kMaxSlots = 2;

  virtual ~Optimiser() = default;
  virtual const OptimiserTraits& traits() const = 0;
  // State arrays per weight: 0 .. kMaxSlots.
  int slots() const { return traits().slots; }
  // The numbers of Step before the factors (Scaled), for devices that step weights in their own
  // memory.
  virtual StepNumbers NumbersOf(const StepInfo& info, float scale) const = 0;
  // Factors of the slots after `steps` steps from zero that make them right as those of `as_if`
  // steps: the moments that the bias correction finds stay the same. 1 without a correction.
  virtual std::array<float, kMaxSlots> FactorsBetween(int64_t steps, int64_t as_if) const = 0;
  // next[i] = weights[i] - step(scale * gradient[i]); `next` may be `weights` itself, nothing else
  // may overlap. Every span is equally long; slots points to slots() arrays of that length, and may
  // be null if there are none.
  void Step(const StepInfo& info, float scale, std::span<const float> gradient,
            std::span<const float> weights, std::span<float> next, float* const* slots) const {
    StepBy(NumbersOf(info, scale), info.factors, gradient, {}, weights, next, slots);
  }
  // As Step, by numbers of NumbersOf, along the sum of `gradient` (empty: zeros) and the addends:
  // for callers that step many short arrays, or would have to write the sum first.
  virtual void StepBy(const StepNumbers& numbers, const StepFactors& factors,
                      std::span<const float> gradient, std::span<const Addend> addends,
                      std::span<const float> weights, std::span<float> next,
                      float* const* slots) const = 0;
  // Step of a matrix, if traits().steps_matrices, before and after its orthogonalisation: the
  // matrix to orthogonalise, `to`, with the momentum in `mean`; and the weights' step along `x`.
  virtual void DirectionOfMatrix(const StepInfo& info, float scale, std::span<const float> gradient,
                                 std::span<float> mean, std::span<float> to) const = 0;
  virtual void StepMatrix(const StepInfo& info, float stretch, std::span<const float> x,
                          std::span<float> weights) const = 0;
};

// The words of optimiser.type, from the list of all.h.
std::span<const Choice<OptimiserType>> ChoicesOf(OptimiserType);
const OptimiserTraits& TraitsOf(OptimiserType type);

// Requires settings in the ranges of the option table. `isa` other than this machine's best is for
// tests.
std::unique_ptr<Optimiser> MakeOptimiser(const OptimiserSettings& settings, Isa isa = DetectIsa());

}  // namespace kumo
