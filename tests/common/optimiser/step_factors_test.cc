// Factors of a step: an optimiser's numbers with factors are those of a learning rate and a weight
// decay that were multiplied beforehand.
#include "common/optimiser/step_factors.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <gtest/gtest.h>

#include "common/base/rng.h"

// As a source that compiles kernels (common/optimiser/kernel.h).
#define KUMO_ISA of_factors_test
#define KUMO_STEP inline
#include "common/optimiser/scaled.h"

namespace kumo {
namespace {

StepNumbers AnyNumbers(Rng* rng) {
  StepNumbers numbers{};
  numbers.scale = rng->NextUniform();
  numbers.learning_rate = rng->NextUniform();
  numbers.weight_decay = rng->NextUniform();
  numbers.momentum = rng->NextUniform();
  numbers.beta1 = rng->NextUniform();
  numbers.beta2 = rng->NextUniform();
  numbers.one_minus_beta1 = 1.0f - numbers.beta1;
  numbers.one_minus_beta2 = 1.0f - numbers.beta2;
  numbers.epsilon = rng->NextUniform();
  numbers.adam_rate = rng->NextUniform();
  numbers.adam_inverse = rng->NextUniform();
  numbers.shrink = static_cast<float>(1.0 - static_cast<double>(numbers.learning_rate) *
                                                static_cast<double>(numbers.weight_decay));
  return numbers;
}

void ExpectSameBits(const StepNumbers& a, const StepNumbers& b) {
  struct Bits {
    uint32_t of[sizeof(StepNumbers) / sizeof(uint32_t)];
  };
  const Bits found = std::bit_cast<Bits>(a), expected = std::bit_cast<Bits>(b);
  for (size_t i = 0; i < std::size(found.of); ++i) {
    EXPECT_EQ(found.of[i], expected.of[i]) << "number " << i;
  }
}

TEST(ScaledTest, FactorsOfOneLeaveEachBit) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 100; ++i) {
    const StepNumbers numbers = AnyNumbers(&rng);
    ExpectSameBits(of_factors_test::Scaled(numbers, 1.0f, 1.0f), numbers);
  }
}

TEST(ScaledTest, ChangesTheRatesTheDecayAndWhatFollowsFromThem) {
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 100; ++i) {
    const StepNumbers numbers = AnyNumbers(&rng);
    const float rate = 4.0f * rng.NextUniform(), decay = 4.0f * rng.NextUniform();
    StepNumbers expected = numbers;
    expected.learning_rate = numbers.learning_rate * rate;
    expected.adam_rate = numbers.adam_rate * rate;
    expected.weight_decay = numbers.weight_decay * decay;
    expected.shrink = static_cast<float>(1.0 - static_cast<double>(expected.learning_rate) *
                                                   static_cast<double>(expected.weight_decay));
    ExpectSameBits(of_factors_test::Scaled(numbers, rate, decay), expected);
  }
}

TEST(ScaledTest, AFrozenPartNeitherMovesNorDecays) {
  Rng rng(3, RngPurpose::kTest);
  const StepNumbers frozen = of_factors_test::Scaled(AnyNumbers(&rng), 0.0f, 5.0f);
  EXPECT_EQ(frozen.learning_rate, 0.0f);
  EXPECT_EQ(frozen.adam_rate, 0.0f);
  EXPECT_EQ(frozen.shrink, 1.0f);
}

TEST(StepFactorsTest, OnlyARateOfZeroFreezes) {
  EXPECT_FALSE(StepFactors{}.frozen());
  EXPECT_FALSE((StepFactors{.rate = 1e-30f, .decay = 0.0f}.frozen()));
  EXPECT_TRUE((StepFactors{.rate = 0.0f, .decay = 1.0f}.frozen()));
  EXPECT_EQ(StepFactors{}, (StepFactors{.rate = 1.0f, .decay = 1.0f}));
  EXPECT_NE(StepFactors{}, (StepFactors{.rate = 1.0f, .decay = 0.5f}));
}

}  // namespace
}  // namespace kumo
