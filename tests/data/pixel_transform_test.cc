#include "data/pixel_transform.h"

#include <bit>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

std::vector<float> Transform(const SampleShape& shape, const std::vector<uint8_t>& image,
                             const PixelFormula& formula, const Window* window) {
  std::vector<float> inputs(image.size());
  PixelTransform(shape, formula).Apply(image, window, inputs);
  return inputs;
}

// Windows that lie wholly outside are among them: nobody draws such, and nothing breaks.
TEST(PixelTransformTest, AnyWindowOfAnyImageIsTheFormulas) {
  Rng rng(1, RngPurpose::kTest);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto extent = [&] { return static_cast<int64_t>(1 + rng.NextBelow(40)); };
    const SampleShape shape = {static_cast<int64_t>(1 + rng.NextBelow(4)), extent(), extent()};
    const PixelFormula formula = test::RandomFormula(rng, shape.size(), trial % 2 == 0);
    const std::vector<uint8_t> image = test::RandomBytes(rng, shape.size());
    const Window window = test::RandomWindow(rng, static_cast<int>(rng.NextBelow(50)));
    SCOPED_TRACE(testing::Message()
                 << shape.channels << "x" << shape.height << "x" << shape.width << " from "
                 << window.top << "," << window.left << (window.mirrored ? " mirrored" : ""));
    ASSERT_EQ(Bits(Transform(shape, image, formula, &window)),
              Bits(test::InputsOf(shape, image, formula, window)));
  }
}

TEST(PixelTransformTest, OneTransformServesManyImages) {
  Rng rng(2, RngPurpose::kTest);
  const SampleShape shape = {3, 9, 7};
  const PixelFormula formula = test::RandomFormula(rng, shape.size(), true);
  PixelTransform transform(shape, formula);
  std::vector<float> inputs(shape.size());
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<uint8_t> image = test::RandomBytes(rng, shape.size());
    const Window window = test::RandomWindow(rng, 4);
    const bool whole = trial % 5 == 0;
    transform.Apply(image, whole ? nullptr : &window, inputs);
    ASSERT_EQ(Bits(inputs), Bits(test::InputsOf(shape, image, formula, whole ? Window() : window)));
  }
}

TEST(PixelTransformTest, WithoutAMeanAWholeImageIsItsScaledPixels) {
  std::vector<uint8_t> image(256);
  for (int i = 0; i < 256; ++i) image[i] = static_cast<uint8_t>(i);
  const SampleShape shape = {1, 16, 16};
  for (const float scale : {1.0f, 1.0f / 255.0f, 1.0f / 256.0f, 0.3f}) {
    std::vector<float> expected;
    for (int i = 0; i < 256; ++i) expected.push_back(scale * static_cast<float>(i));
    const Window whole;
    EXPECT_EQ(Bits(Transform(shape, image, {.scale = scale}, nullptr)), Bits(expected));
    EXPECT_EQ(Bits(Transform(shape, image, {.scale = scale}, &whole)), Bits(expected));
  }
}

// The mean stays where it is when the image moves.
TEST(PixelTransformTest, TheMeanIsThatOfThePlaceAPixelHasComeTo) {
  const SampleShape shape = {1, 1, 3};
  const PixelFormula formula = {.scale = 2, .pad_value = 100, .mean = {1, 10, 20}};
  const std::vector<uint8_t> image = {50, 60, 70};
  const Window right = {.top = 0, .left = 1, .mirrored = false};
  EXPECT_THAT(Transform(shape, image, formula, &right), testing::ElementsAre(118, 120, 160));
  const Window mirrored = {.top = 0, .left = 1, .mirrored = true};
  EXPECT_THAT(Transform(shape, image, formula, &mirrored), testing::ElementsAre(198, 120, 80));
}

}  // namespace
}  // namespace kumo
