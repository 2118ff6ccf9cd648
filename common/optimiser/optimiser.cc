#include "common/optimiser/optimiser.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <glog/logging.h>

#include "common/optimiser/kernel.h"

namespace kumo {

// From the list in all.h.
KUMO_DECLARE_PER_ISA(const OptimiserKernels, kOptimisers)

namespace {

std::span<const OptimiserKernel> KernelsAt(Isa isa) {
  const OptimiserKernels& kernels = KUMO_AT_ISA(isa, kOptimisers);
  return {kernels.first, kernels.count};
}

// base^exponent by squaring: a shard needs it for each chunk, and std::pow may differ between
// machines.
double Power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

const OptimiserKernel& KernelOf(OptimiserType type, Isa isa) {
  const auto kernels = KernelsAt(isa);
  const auto found = std::ranges::find_if(
      kernels, [type](const OptimiserKernel& kernel) { return kernel.traits.type == type; });
  CHECK(found != kernels.end()) << "optimiser " << static_cast<int>(type) << " is not in all.h";
  return *found;
}

class KernelOptimiser final : public Optimiser {
 public:
  KernelOptimiser(const OptimiserSettings& settings, const OptimiserKernel& kernel)
      : settings_(settings), kernel_(kernel) {}

  const OptimiserTraits& traits() const override { return kernel_.traits; }

  void StepBy(const StepNumbers& numbers, const StepFactors& factors,
              std::span<const float> gradient, std::span<const Addend> addends,
              std::span<const float> weights, std::span<float> next,
              float* const* slots) const override {
    CHECK(gradient.empty() || gradient.size() == weights.size());
    CHECK_EQ(next.size(), weights.size());
    kernel_.step(numbers, factors.rate, factors.decay, gradient.data(), addends.data(),
                 addends.size(), weights.data(), next.data(), slots, weights.size());
  }

  StepNumbers NumbersOf(const StepInfo& info, float scale) const override {
    const OptimiserSettings& s = settings_;
    const double rate = info.learning_rate;
    StepNumbers numbers = {};
    numbers.scale = scale;
    numbers.learning_rate = info.learning_rate;
    numbers.weight_decay = info.weight_decay;
    numbers.momentum = info.momentum.value_or(s.momentum);
    if (s.unit_gain && kernel_.traits.has_momentum) {
      const float gain = 1.0f - numbers.momentum;
      numbers.scale *= gain;
      numbers.weight_decay *= gain;
    }
    numbers.beta1 = s.beta1;
    numbers.beta2 = s.beta2;
    numbers.one_minus_beta1 = static_cast<float>(1.0 - static_cast<double>(s.beta1));
    numbers.one_minus_beta2 = static_cast<float>(1.0 - static_cast<double>(s.beta2));
    numbers.epsilon = s.epsilon;
    numbers.shrink = static_cast<float>(1.0 - rate * static_cast<double>(info.weight_decay));
    if (kernel_.traits.corrects_bias) {
      CHECK_GE(info.step, 1);
      const double mean = 1.0 - Power(static_cast<double>(s.beta1), info.step);
      const double square = 1.0 - Power(static_cast<double>(s.beta2), info.step);
      numbers.adam_rate = static_cast<float>(rate / mean);
      numbers.adam_inverse = static_cast<float>(1.0 / std::sqrt(square));
    }
    return numbers;
  }

 private:
  const OptimiserSettings settings_;
  const OptimiserKernel& kernel_;
};

}  // namespace

std::span<const Choice<OptimiserType>> ChoicesOf(OptimiserType) {
  static const auto& choices = *new std::vector<Choice<OptimiserType>>([] {
    std::vector<Choice<OptimiserType>> all;
    for (const OptimiserKernel& kernel : KernelsAt(Isa::kBaseline)) {
      all.push_back({kernel.traits.type, kernel.traits.name, kernel.traits.help});
    }
    return all;
  }());
  return choices;
}

const OptimiserTraits& TraitsOf(OptimiserType type) {
  return KernelOf(type, Isa::kBaseline).traits;
}

std::unique_ptr<Optimiser> MakeOptimiser(const OptimiserSettings& settings, Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  return std::make_unique<KernelOptimiser>(settings, KernelOf(settings.type, isa));
}

}  // namespace kumo
