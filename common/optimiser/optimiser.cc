#include "common/optimiser/optimiser.h"

#include <cmath>
#include <vector>

#include "common/optimiser/kernel.h"

namespace kumo {

// Made of the list in all.h.
KUMO_DECLARE_PER_ISA(const OptimiserKernels, kOptimisers)

namespace {

std::span<const OptimiserKernel> KernelsAt(Isa isa) {
  const OptimiserKernels& kernels = KUMO_AT_ISA(isa, kOptimisers);
  return {kernels.first, kernels.count};
}

// base^exponent by squaring: a shard asks for it once per tile, and std::pow may differ from
// machine to machine.
double Power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

// What the slots of momentum and nesterov are.
constexpr std::string_view kVelocity = "velocity";

class KernelOptimiser final : public Optimiser {
 public:
  KernelOptimiser(const OptimiserSettings& settings, const OptimiserKernel& kernel)
      : settings_(settings), kernel_(kernel) {}

  std::string_view type() const override { return kernel_.name; }
  int slots() const override { return kernel_.slots; }

  void Step(const StepInfo& info, float scale, std::span<const float> gradient,
            std::span<const float> weights, std::span<float> next,
            float* const* slots) const override {
    CHECK_EQ(gradient.size(), weights.size());
    CHECK_EQ(next.size(), weights.size());
    kernel_.step(NumbersOf(info, scale), gradient.data(), weights.data(), next.data(), slots,
                 weights.size());
  }

  StepNumbers NumbersOf(const StepInfo& info, float scale) const override {
    const OptimiserSettings& s = settings_;
    const double rate = info.learning_rate;
    StepNumbers numbers = {};
    numbers.scale = scale;
    numbers.learning_rate = info.learning_rate;
    numbers.weight_decay = info.weight_decay;
    numbers.momentum = info.momentum.value_or(s.momentum);
    if (s.unit_gain && kernel_.state == kVelocity) {
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
    if (kernel_.corrects_bias) {
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

// `below_one`: the range is [0, 1), else [0, infinity).
Status CheckRange(std::string_view setting, float value, bool below_one) {
  // The comparisons are written so that NaN is refused too.
  if (value >= 0.0f && (below_one ? value < 1.0f : std::isfinite(value))) return OkStatus();
  return InvalidArgument("optimiser." + std::string(setting) + " = " + std::to_string(value) +
                         " is out of range: it must be at least 0 and " +
                         (below_one ? "below 1" : "finite"));
}

Status CheckSettings(const OptimiserSettings& settings) {
  KUMO_RETURN_IF_ERROR(CheckRange("momentum", settings.momentum, true));
  KUMO_RETURN_IF_ERROR(CheckRange("beta1", settings.beta1, true));
  KUMO_RETURN_IF_ERROR(CheckRange("beta2", settings.beta2, true));
  KUMO_RETURN_IF_ERROR(CheckRange("weight_decay", settings.weight_decay, false));
  KUMO_RETURN_IF_ERROR(CheckRange("clip_norm", settings.clip_norm, false));
  KUMO_RETURN_IF_ERROR(CheckRange("epsilon", settings.epsilon, false));
  if (settings.epsilon == 0.0f) {
    return InvalidArgument(
        "optimiser.epsilon = 0 is out of range: it must be above 0, or a gradient of 0 divides by "
        "0");
  }
  return OkStatus();
}

}  // namespace

std::vector<std::string_view> OptimiserTypes() {
  std::vector<std::string_view> types;
  for (const OptimiserKernel& kernel : KernelsAt(Isa::kBaseline)) types.emplace_back(kernel.name);
  return types;
}

OptimiserState StateOf(std::string_view type) {
  for (const OptimiserKernel& kernel : KernelsAt(Isa::kBaseline)) {
    if (kernel.name == type) return {kernel.state, kernel.corrects_bias};
  }
  return {};
}

Result<std::unique_ptr<Optimiser>> MakeOptimiser(const OptimiserSettings& settings, Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  KUMO_RETURN_IF_ERROR(CheckSettings(settings));
  std::string names;
  for (const OptimiserKernel& kernel : KernelsAt(isa)) {
    if (kernel.name == settings.type) {
      return std::unique_ptr<Optimiser>(std::make_unique<KernelOptimiser>(settings, kernel));
    }
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  return NotFound("optimiser.type = '" + settings.type + "' is unknown; there are: " + names);
}

}  // namespace kumo
