// Optimisers: a gradient -> a step, per element, as one pass over long arrays. Workers use them for
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
// (Chainer's Adam puts epsilon beside sqrt(v) instead; with its default of 1e-8 the two agree but
// for gradients below 1e-6 or so.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/isa.h"
#include "common/base/status.h"
#include "common/optimiser/kernel.h"

namespace kumo {

struct OptimiserSettings {
  std::string type = "momentum";  // one of OptimiserTypes()
  float momentum = 0.9f;          // momentum, nesterov: 0 <= momentum < 1
  bool unit_gain = false;         // momentum, nesterov: v is a mean of gradients
  float beta1 = 0.9f;             // adam, adamw: 0 <= beta < 1
  float beta2 = 0.999f;
  float epsilon = 1e-8f;      // > 0
  float weight_decay = 0.0f;  // >= 0; what callers put into StepInfo for segments that are decayed
  float clip_norm = 0.0f;  // >= 0; what workers bring a minibatch's gradients down to; 0: nothing
};

// What changes from step to step.
struct StepInfo {
  float learning_rate = 0.0f;
  float weight_decay = 0.0f;  // 0 for the segments that are not decayed
  int64_t step = 1;           // counted from 1 since the slots were zero: Adam's bias correction
  std::optional<float> momentum = std::nullopt;  // in place of the settings'
};

class Optimiser {
 public:
  static constexpr int kMaxSlots = 2;

  virtual ~Optimiser() = default;
  // One of OptimiserTypes().
  virtual std::string_view type() const = 0;
  // State arrays per weight: 0 .. kMaxSlots.
  virtual int slots() const = 0;
  // What Step computes with: for devices that step weights in their own memory.
  virtual StepNumbers NumbersOf(const StepInfo& info, float scale) const = 0;
  // next[i] = weights[i] - step(scale * gradient[i]); `next` may be `weights` itself, nothing else
  // may overlap. Every span is equally long; slots points to slots() arrays of that length, and may
  // be null where there are none.
  virtual void Step(const StepInfo& info, float scale, std::span<const float> gradient,
                    std::span<const float> weights, std::span<float> next,
                    float* const* slots) const = 0;
};

// What optimiser.type may say, as all.h lists it: "sgd", "momentum", "nesterov", "adam", "adamw".
std::vector<std::string_view> OptimiserTypes();

// What a job that goes on with another optimiser has to know of one.
struct OptimiserState {
  std::string_view meaning;  // "velocity", "moments": slots of equal words mean the same; "": none
  bool corrects_bias = false;  // zero slots are right at its first step only
};
// "" for an unknown type.
OptimiserState StateOf(std::string_view type);

// NotFound for an unknown type; InvalidArgument for a hyper-parameter out of range. `isa` other
// than this machine's best is for tests.
Result<std::unique_ptr<Optimiser>> MakeOptimiser(const OptimiserSettings& settings,
                                                 Isa isa = DetectIsa());

}  // namespace kumo
