#include "models/tensor/initialiser.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <glog/logging.h>

#include "common/base/fnv.h"
#include "common/base/rng.h"

namespace kumo {
namespace {

// Names become stream numbers that never change.
uint64_t HashOfName(std::string_view name) {
  Fnv1a hash;
  hash.Add(name);
  return hash.value();
}

void FillNormal(float deviation, Rng rng, std::span<float> values) {
  for (float& value : values) value = deviation * rng.NextNormal();
}

void FillUniform(float bound, Rng rng, std::span<float> values) {
  for (float& value : values) value = rng.NextUniform(-bound, bound);
}

float XavierScale(const model::Xavier& xavier, const Fans& fans) {
  const double magnitude =
      xavier.magnitude() == 0.0f ? 3.0 : static_cast<double>(xavier.magnitude());
  const auto in = static_cast<double>(fans.in);
  const auto out = static_cast<double>(fans.out);
  double fan = (in + out) / 2;
  if (xavier.fan() == model::Xavier::IN) fan = in;
  if (xavier.fan() == model::Xavier::OUT) fan = out;
  return static_cast<float>(std::sqrt(magnitude / fan));
}

float RootOver(double numerator, int64_t fan) {
  return static_cast<float>(std::sqrt(numerator / static_cast<double>(fan)));
}

}  // namespace

Status CheckInitialiser(const model::Initialiser& initialiser) {
  if (initialiser.has_constant() && !std::isfinite(initialiser.constant().value())) {
    return InvalidArgument("constant.value must be finite");
  }
  if (initialiser.has_normal()) {
    const float deviation = initialiser.normal().deviation();
    if (!(deviation > 0.0f && std::isfinite(deviation))) {
      return InvalidArgument("normal.deviation must be a positive number, is " +
                             std::to_string(deviation));
    }
  }
  if (!initialiser.has_xavier()) return OkStatus();
  const model::Xavier& xavier = initialiser.xavier();
  if (!(xavier.magnitude() >= 0.0f && std::isfinite(xavier.magnitude()))) {
    return InvalidArgument("xavier.magnitude must be a positive number, or 0 for 3, is " +
                           std::to_string(xavier.magnitude()));
  }
  if (!model::Xavier::Distribution_IsValid(xavier.distribution()) ||
      !model::Xavier::Fan_IsValid(xavier.fan())) {
    return InvalidArgument("xavier: distribution is UNIFORM or GAUSSIAN, fan AVERAGE, IN or OUT");
  }
  return OkStatus();
}

void Initialise(const model::Initialiser& initialiser, const Fans& fans, uint64_t seed,
                std::string_view tensor_name, std::span<float> values) {
  const Rng rng(seed, RngPurpose::kInitialWeights, HashOfName(tensor_name));
  switch (initialiser.kind_case()) {
    case model::Initialiser::kZero:
      return std::fill(values.begin(), values.end(), 0.0f);
    case model::Initialiser::kConstant:
      return std::fill(values.begin(), values.end(), initialiser.constant().value());
    case model::Initialiser::kXavier: {
      const float scale = XavierScale(initialiser.xavier(), fans);
      if (initialiser.xavier().distribution() == model::Xavier::GAUSSIAN) {
        return FillNormal(scale, rng, values);
      }
      return FillUniform(scale, rng, values);
    }
    case model::Initialiser::kNormal:
      return FillNormal(initialiser.normal().deviation(), rng, values);
    case model::Initialiser::kLecunNormal:
      return FillNormal(RootOver(1, fans.in), rng, values);
    case model::Initialiser::kHeNormal:
      return FillNormal(RootOver(2, fans.in), rng, values);
    case model::Initialiser::kFanInUniform:
      return FillUniform(RootOver(3, fans.in), rng, values);
    case model::Initialiser::KIND_NOT_SET:
      break;
  }
  LOG(FATAL) << "tensor " << tensor_name << " has no initialiser";
}

}  // namespace kumo
