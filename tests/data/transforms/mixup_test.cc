#include "data/transforms/mixup.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

constexpr int kMixedClasses = 4;
constexpr int64_t kMixedSamples = 30;

class MixupTest : public testing::Test {
 protected:
  MixupTest() {
    Rng rng(3, RngPurpose::kTest);
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < kMixedSamples; ++i) {
      labels.push_back(static_cast<int32_t>(rng.NextBelow(kMixedClasses)));
    }
    set_ =
        std::make_unique<MemoryDataset>("a set", extents_, kMixedClasses,
                                        test::RandomBytes(rng, kMixedSamples * 3 * 5 * 4), labels);
    data_.mixup = 0.5;
  }
  Result<Transforms> Make(bool training) const {
    return MakeTransforms({data_, set_->fields(), "a set", training, kMixedClasses, kMixedSamples});
  }
  struct Read {
    std::vector<uint8_t> pixels;
    std::vector<float> shares;
  };
  Read ReadWith(const Transforms& transforms, const SampleKey& key) const {
    Sample sample(set_->fields());
    EXPECT_TRUE(ReadTransformed(*set_, transforms, key, &sample).ok());
    Read read;
    read.pixels.assign(sample.pixels(0).begin(), sample.pixels(0).end());
    if (sample.field(1).size() != kMixedClasses * sizeof(float)) return read;
    read.shares.resize(kMixedClasses);
    std::memcpy(read.shares.data(), sample.field(1).data(), sample.field(1).size());
    return read;
  }

  const std::vector<int64_t> extents_ = {3, 5, 4};
  std::unique_ptr<MemoryDataset> set_;
  Experiment::Data data_;
};

// They are part of a job's mathematics: other mixtures would be other weights.
TEST(DrawMixtureTest, MixturesAreTheSameForEver) {
  EXPECT_EQ(DrawMixture(1, 50000, {1, 0, 0}), (Mixture{10141, 57774}));
  EXPECT_EQ(DrawMixture(0.2, 50000, {7, 19, 49999}), (Mixture{6502, 65337}));
}

TEST(DrawMixtureTest, WeightsHaveTheMomentsOfTheBetaDistribution) {
  constexpr int kDraws = 20000;
  for (const double alpha : {0.05, 0.4, 1.0, 2.0}) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kDraws; ++i) {
      const Mixture mixture = DrawMixture(alpha, kMixedSamples, {5, 2, i});
      ASSERT_TRUE(mixture.partner >= 0 && mixture.partner < kMixedSamples);
      ASSERT_TRUE(mixture.weight >= 0 && mixture.weight <= Mixture::kWhole);
      const double weight = static_cast<double>(mixture.weight) / Mixture::kWhole;
      sum += weight;
      squares += (weight - 0.5) * (weight - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    // The fourth moment is at most a fourth of the second.
    EXPECT_NEAR(squares / kDraws, variance, 5 * std::sqrt(variance / 4 / kDraws)) << alpha;
  }
}

TEST_F(MixupTest, ASampleIsTheMeanOfItAndItsPartnerAndSoIsItsLabel) {
  data_.flip = true;
  data_.crop_pad = 1;
  const Transforms mixed = Make(true).value();
  data_.mixup = 0;
  const Transforms plain = Make(true).value();
  int both = 0;
  for (int64_t i = 0; i < kMixedSamples; ++i) {
    const SampleKey key = {9, 4, i};
    const Mixture mixture = DrawMixture(0.5, kMixedSamples, key);
    const double weight = static_cast<double>(mixture.weight) / Mixture::kWhole;
    const Read own = ReadWith(plain, key);
    const Read other = ReadWith(plain, {9, 4, mixture.partner});
    const Read found = ReadWith(mixed, key);
    ASSERT_EQ(found.pixels.size(), own.pixels.size());
    for (size_t p = 0; p < own.pixels.size(); ++p) {
      ASSERT_EQ(found.pixels[p],
                std::floor(weight * own.pixels[p] + (1 - weight) * other.pixels[p] + 0.5));
    }
    std::vector<double> expected(kMixedClasses);
    const test::Contents contents = test::ReadAll(*set_);
    expected[contents.labels[i]] += weight;
    expected[contents.labels[mixture.partner]] += 1 - weight;
    ASSERT_EQ(found.shares.size(), expected.size());
    for (int c = 0; c < kMixedClasses; ++c) EXPECT_NEAR(found.shares[c], expected[c], 1e-6);
    both += weight > 0.1 && weight < 0.9 ? 1 : 0;
  }
  EXPECT_GT(both, 5);
}

TEST_F(MixupTest, SamplesToEvaluateOnKeepTheirImageAndAreOfOneClass) {
  const Transforms transforms = Make(false).value();
  EXPECT_EQ(FieldsAfter(set_->fields(), transforms),
            FieldsAfter(set_->fields(), Make(true).value()));
  const test::Contents contents = test::ReadAll(*set_);
  for (int64_t i = 0; i < kMixedSamples; ++i) {
    const Read found = ReadWith(transforms, {9, 4, i});
    EXPECT_TRUE(std::equal(found.pixels.begin(), found.pixels.end(),
                           contents.pixels.begin() + i * std::ssize(found.pixels)));
    std::vector<float> expected(kMixedClasses);
    expected[contents.labels[i]] = 1;
    EXPECT_EQ(found.shares, expected);
  }
}

TEST_F(MixupTest, WithoutClassesThereIsNothingToMix) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 5, 4}, FieldKind::kPicture},
                         {kLabelField, NumberType::kFloat32, {2}}};
  EXPECT_THAT(MakeMixup({data_, fields, "a set", true, 0, 9}).status().message(),
              testing::HasSubstr("samples of a set have none"));
  data_.mixup = 0;
  EXPECT_EQ(MakeMixup({data_, fields, "a set", true, 0, 9}).value(), nullptr);
}

}  // namespace
}  // namespace kumo
