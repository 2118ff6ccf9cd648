#include "data/transforms/mixup.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace kumo {
namespace {

class Mixup final : public Transform {
 public:
  // alpha: 0 disables mixing.
  Mixup(double alpha, int64_t samples, int image, int label, int classes)
      : alpha_(alpha), samples_(samples), image_(image), label_(label), classes_(classes) {}

  // A share per class.
  void Apply(const SampleKey&, Sample* sample) const override {
    int32_t label = 0;
    std::memcpy(&label, sample->field(label_).data(), sizeof label);
    const std::span<float> shares = SharesOf(sample);
    std::ranges::fill(shares, 0.0f);
    shares[label] = 1.0f;
  }

  void ChangeFields(Fields* fields) const override {
    (*fields)[label_] = {kLabelField, NumberType::kFloat32, {classes_}};
  }

  std::optional<int64_t> PartnerOf(const SampleKey& key) const override {
    if (alpha_ == 0) return std::nullopt;
    return DrawMixture(alpha_, samples_, key).partner;
  }

  void Mix(const SampleKey& key, const Sample& partner, Sample* sample) const override {
    const int64_t own = DrawMixture(alpha_, samples_, key).weight;
    const int64_t others = Mixture::kWhole - own;
    const std::span<const uint8_t> from = sample->pixels(image_);
    const std::span<const uint8_t> other = partner.pixels(image_);
    const std::span<std::byte> room = sample->Make(image_, from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t mean =
          (own * from[i] + others * other[i] + Mixture::kWhole / 2) / Mixture::kWhole;
      room[i] = static_cast<std::byte>(mean);
    }
    const std::vector<float> before = NumbersOf(*sample);
    const std::vector<float> theirs = NumbersOf(partner);
    const std::span<float> shares = SharesOf(sample);
    const auto share = static_cast<float>(own) / static_cast<float>(Mixture::kWhole);
    for (int c = 0; c < classes_; ++c) {
      shares[c] = share * before[c] + (1.0f - share) * theirs[c];
    }
  }

 private:
  std::span<float> SharesOf(Sample* sample) const {
    const std::span<std::byte> room = sample->Make(label_, classes_ * sizeof(float));
    return {reinterpret_cast<float*>(room.data()), static_cast<size_t>(classes_)};
  }
  std::vector<float> NumbersOf(const Sample& sample) const {
    std::vector<float> numbers(classes_);
    std::memcpy(numbers.data(), sample.field(label_).data(), classes_ * sizeof(float));
    return numbers;
  }

  const double alpha_;
  const int64_t samples_;
  const int image_;  // fields
  const int label_;
  const int classes_;
};

// Uniform in (0, 1).
double Uniform(Rng* rng) { return (static_cast<double>(rng->NextUint64() >> 11) + 0.5) * 0x1p-53; }

}  // namespace

// Jöhnk's algorithm (Devroye 1986, chapter IX.3): the first of two powers of uniform numbers whose
// sum is at most 1, divided by the sum.
Mixture DrawMixture(double alpha, int64_t samples, const SampleKey& key) {
  Rng rng = StreamOf(key, TransformStream::kMixup);
  Mixture mixture;
  mixture.partner = static_cast<int64_t>(rng.NextBelow(static_cast<uint64_t>(samples)));
  while (true) {
    const double x = std::pow(Uniform(&rng), 1 / alpha);
    const double y = std::pow(Uniform(&rng), 1 / alpha);
    if (x + y > 1 || x + y == 0) continue;
    mixture.weight = std::lround(x / (x + y) * static_cast<double>(Mixture::kWhole));
    return mixture;
  }
}

Result<std::unique_ptr<const Transform>> MakeMixup(const TransformRequest& request) {
  std::unique_ptr<const Transform> transform;
  const int image = FindField(request.fields, kImageField);
  if (request.data.mixup == 0 || image < 0) return transform;
  const int label = FindField(request.fields, kLabelField);
  if (label < 0 || request.classes == 0) {
    return FailedPrecondition("data.mixup requires classes, but samples of " + request.name +
                              " have none; set it to 0");
  }
  transform = std::make_unique<Mixup>(request.training ? request.data.mixup : 0, request.samples,
                                      image, label, request.classes);
  return transform;
}

}  // namespace kumo
