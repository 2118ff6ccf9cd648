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

const OptimiserKernels& TableAt(Isa isa) { return KUMO_AT_ISA(isa, kOptimisers); }

std::span<const OptimiserKernel> KernelsAt(Isa isa) {
  const OptimiserKernels& kernels = TableAt(isa);
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
  KernelOptimiser(const OptimiserSettings& settings, Isa isa)
      : settings_(settings),
        kernel_(KernelOf(settings.type, isa)),
        matrix_kernels_(TableAt(isa).matrix) {}

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

  void DirectionOfMatrix(const StepInfo& info, float scale, std::span<const float> gradient,
                         std::span<float> mean, std::span<float> to) const override {
    CHECK_EQ(gradient.size(), mean.size());
    CHECK_EQ(gradient.size(), to.size());
    matrix_kernels_.direction(NumbersOf(info, scale), gradient.data(), mean.data(), to.data(),
                              to.size());
  }
  void StepMatrix(const StepInfo& info, float stretch, std::span<const float> x,
                  std::span<float> weights) const override {
    CHECK_EQ(x.size(), weights.size());
    matrix_kernels_.step(NumbersOf(info, 1.0f), info.factors.rate, info.factors.decay, stretch,
                         x.data(), weights.data(), weights.size());
  }

  StepNumbers NumbersOf(const StepInfo& info, float scale) const override {
    const OptimiserSettings& s = settings_;
    const double share = kernel_.traits.steps_matrices ? s.adamw_factor : 1.0;
    const double rate = share * static_cast<double>(info.learning_rate);
    StepNumbers numbers = {};
    numbers.scale = scale;
    numbers.learning_rate = static_cast<float>(rate);
    numbers.matrix_rate = info.learning_rate;
    numbers.weight_decay = info.weight_decay;
    numbers.momentum = info.momentum.value_or(s.momentum);
    numbers.one_minus_momentum = 1.0f - numbers.momentum;
    if (s.unit_gain && kernel_.traits.has_unit_gain) {
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

  std::array<float, kMaxSlots> FactorsBetween(int64_t steps, int64_t as_if) const override {
    if (!kernel_.traits.corrects_bias) return {1.0f, 1.0f};
    const auto factor = [&](float beta) {
      const auto b = static_cast<double>(beta);
      return static_cast<float>((1.0 - Power(b, as_if)) / (1.0 - Power(b, steps)));
    };
    return {factor(settings_.beta1), factor(settings_.beta2)};
  }

 private:
  const OptimiserSettings settings_;
  const OptimiserKernel& kernel_;
  const MatrixStepKernels& matrix_kernels_;
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
  return std::make_unique<KernelOptimiser>(settings, isa);
}

}  // namespace kumo
