#include "data/transforms/mixup.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/settings/option_value.h"

namespace kumo {
namespace {

class Mixup final : public Transform {
 public:
  // alpha: 0 disables mixing. numbers: fields of float32.
  Mixup(double alpha, int64_t samples, std::vector<int> pictures, std::vector<int> numbers,
        int label, int classes)
      : alpha_(alpha),
        samples_(samples),
        pictures_(std::move(pictures)),
        numbers_(std::move(numbers)),
        label_(label),
        classes_(classes) {}

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
    for (const int picture : pictures_) {
      const std::span<const uint8_t> from = sample->pixels(picture);
      const std::span<const uint8_t> other = partner.pixels(picture);
      const std::span<std::byte> room = sample->Make(picture, from.size());
      for (size_t i = 0; i < from.size(); ++i) {
        const int64_t mean =
            (own * from[i] + others * other[i] + Mixture::kWhole / 2) / Mixture::kWhole;
        room[i] = static_cast<std::byte>(mean);
      }
    }
    const auto share = static_cast<float>(own) / static_cast<float>(Mixture::kWhole);
    MixNumbers(share, label_, partner, sample);
    for (const int numbers : numbers_) MixNumbers(share, numbers, partner, sample);
  }

 private:
  std::span<float> SharesOf(Sample* sample) const {
    const std::span<std::byte> room = sample->Make(label_, classes_ * sizeof(float));
    return {reinterpret_cast<float*>(room.data()), static_cast<size_t>(classes_)};
  }
  static std::vector<float> NumbersOf(const Sample& sample, int field) {
    const std::span<const std::byte> bytes = sample.field(field);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  static void MixNumbers(float share, int field, const Sample& partner, Sample* sample) {
    std::vector<float> mixed = NumbersOf(*sample, field);
    const std::vector<float> theirs = NumbersOf(partner, field);
    for (size_t i = 0; i < mixed.size(); ++i) {
      mixed[i] = share * mixed[i] + (1.0f - share) * theirs[i];
    }
    std::ranges::copy(std::as_bytes(std::span(mixed)),
                      sample->Make(field, mixed.size() * sizeof(float)).begin());
  }

  const double alpha_;
  const int64_t samples_;
  const std::vector<int> pictures_;  // fields
  const std::vector<int> numbers_;
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
  if (request.data.mixup == 0 || FindPicture(request.fields) < 0) return transform;
  KUMO_RETURN_IF_ERROR(CheckInBytes(request));
  const int label = FindField(request.fields, kLabelField);
  const bool of_class = label >= 0 && request.fields[label].type == NumberType::kInt32 &&
                        request.fields[label].numbers() == 1;
  if (!of_class || request.classes == 0) {
    return FailedPrecondition("data.mixup requires classes, but samples of " + request.name +
                              " have none; set it to 0");
  }
  std::vector<int> pictures, numbers;
  for (int f = 0; f < std::ssize(request.fields); ++f) {
    const Field& field = request.fields[f];
    if (field.kind == FieldKind::kPicture) {
      pictures.push_back(f);
    } else if (field.kind == FieldKind::kNumbers && field.type == NumberType::kFloat32 &&
               !field.list) {
      numbers.push_back(f);
    } else if (f != label) {
      return FailedPrecondition("data.mixup = " + WriteValue(request.data.mixup) +
                                ": there is no mean of the field " + field.name +
                                " of two samples of " + request.name + "; set data.mixup = 0");
    }
  }
  transform =
      std::make_unique<Mixup>(request.training ? request.data.mixup : 0, request.samples,
                              std::move(pictures), std::move(numbers), label, request.classes);
  return transform;
}

}  // namespace kumo
