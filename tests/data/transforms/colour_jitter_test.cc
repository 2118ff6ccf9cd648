#include "data/transforms/colour_jitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using Pixels = std::vector<uint8_t>;

int64_t Factor(double x) { return std::llround(x * static_cast<double>(kColourOne)); }

Pixels Brighter(Pixels pixels, double factor) {
  ChangeBrightness(pixels, Factor(factor));
  return pixels;
}
Pixels Contrasted(Pixels pixels, double factor, int64_t channels = 3) {
  ChangeContrast(channels, pixels, Factor(factor));
  return pixels;
}
Pixels Saturated(Pixels pixels, double factor, int64_t channels = 3) {
  ChangeSaturation(channels, pixels, Factor(factor));
  return pixels;
}
Pixels Turned(Pixels pixels, double turn, int64_t channels = 3) {
  TurnHue(channels, pixels, Factor(turn));
  return pixels;
}

Experiment::Data Jitter(double brightness, double contrast, double saturation, double hue) {
  Experiment::Data data;
  data.brightness = brightness;
  data.contrast = contrast;
  data.saturation = saturation;
  data.hue = hue;
  return data;
}

// By hand, of the formulas of torchvision's adjust_brightness, adjust_contrast, adjust_saturation
// and adjust_hue.
TEST(ColourJitterTest, ValuesAreThoseOfTheFormulas) {
  EXPECT_THAT(Brighter({0, 10, 100, 200}, 1.5), ElementsAre(0, 15, 150, 255));
  EXPECT_THAT(Brighter({0, 10, 101, 200}, 0.25), ElementsAre(0, 3, 25, 50));
  // The mean is 100.
  EXPECT_THAT(Contrasted({50, 100, 150, 100}, 0.5, 1), ElementsAre(75, 100, 125, 100));
  EXPECT_THAT(Contrasted({0, 100, 255, 45}, 2, 1), ElementsAre(0, 100, 255, 0));
  // One pixel of (200, 100, 50): Y = .299 * 200 + .587 * 100 + .114 * 50 = 124.2.
  EXPECT_THAT(Saturated({200, 100, 50}, 0), ElementsAre(124, 124, 124));
  EXPECT_THAT(Saturated({200, 100, 50}, 0.5), ElementsAre(162, 112, 87));
  EXPECT_THAT(Saturated({200, 100, 50}, 2), ElementsAre(255, 76, 0));
  EXPECT_THAT(Contrasted({200, 100, 50}, 0), ElementsAre(124, 124, 124)) << "the mean of one pixel";
  // Red is green a third of the circle on, and blue two thirds; half around it is cyan.
  EXPECT_THAT(Turned({255, 0, 0}, 1.0 / 3), ElementsAre(0, 255, 0));
  EXPECT_THAT(Turned({255, 0, 0}, -1.0 / 3), ElementsAre(0, 0, 255));
  EXPECT_THAT(Turned({255, 0, 0}, 0.5), ElementsAre(0, 255, 255));
  // Hue 20 degrees of (200, 100, 50), and 90 degrees on: 110 degrees, between green and yellow.
  EXPECT_THAT(Turned({200, 100, 50}, 0.25), ElementsAre(75, 200, 50));
}

// The conversions to HSV and back, as they are written everywhere, in double.
std::array<double, 3> TurnedInDouble(double r, double g, double b, double turn) {
  const double v = std::max({r, g, b}), range = v - std::min({r, g, b});
  double h = 0;
  if (range > 0) {
    if (v == r) {
      h = (g - b) / range;
    } else if (v == g) {
      h = 2 + (b - r) / range;
    } else {
      h = 4 + (r - g) / range;
    }
  }
  h += 6 * turn;
  h -= 6 * std::floor(h / 6);
  const double f = h - std::floor(h);
  const double p = v - range, q = v - range * f, t = v - range * (1 - f);
  const std::array<std::array<double, 3>, 6> sixths = {
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  return sixths[static_cast<size_t>(h) % 6];
}

TEST(ColourJitterTest, AnyHueOfAnyColourIsWithinALevelOfTheFormula) {
  Rng rng(1, RngPurpose::kTest);
  for (int trial = 0; trial < 20000; ++trial) {
    const Pixels colour = test::RandomBytes(rng, 3);
    const int64_t turn = static_cast<int64_t>(rng.NextBelow(kColourOne + 1)) - kColourOne / 2;
    const double exact_turn = static_cast<double>(turn) / static_cast<double>(kColourOne);
    Pixels turned = colour;
    TurnHue(3, turned, turn);
    const auto exact = TurnedInDouble(colour[0], colour[1], colour[2], exact_turn);
    for (size_t c = 0; c < 3; ++c) {
      ASSERT_NEAR(turned[c], exact[c], 0.51) << testing::PrintToString(colour) << " by " << turn;
    }
    EXPECT_EQ(*std::ranges::max_element(turned), *std::ranges::max_element(colour));
    EXPECT_EQ(*std::ranges::min_element(turned), *std::ranges::min_element(colour));
  }
}

TEST(ColourJitterTest, AFactorOfOneAndTheSmallestTurnChangeNothing) {
  Rng rng(2, RngPurpose::kTest);
  const Pixels image = test::RandomBytes(rng, 3 * 500);
  EXPECT_EQ(Brighter(image, 1), image);
  EXPECT_EQ(Contrasted(image, 1), image);
  EXPECT_EQ(Saturated(image, 1), image);
  EXPECT_EQ(Turned(image, 0), image);
  EXPECT_EQ(Turned(image, 1), image) << "once around";
  EXPECT_EQ(Turned(image, -1), image);
}

TEST(ColourJitterTest, GreyStaysGrey) {
  Rng rng(3, RngPurpose::kTest);
  const Pixels plane = test::RandomBytes(rng, 100);
  Pixels image;
  for (int c = 0; c < 3; ++c) image.insert(image.end(), plane.begin(), plane.end());
  EXPECT_EQ(Turned(image, 0.3), image);
  EXPECT_EQ(Saturated(image, 1.7), image);
  EXPECT_EQ(Saturated(plane, 1.7, 1), plane);
  EXPECT_EQ(Turned(plane, 0.3, 1), plane);
  const Pixels grey = Contrasted(plane, 0.4, 1), colours = Contrasted(image, 0.4);
  EXPECT_TRUE(std::equal(grey.begin(), grey.end(), colours.begin()));
}

TEST(ColourJitterTest, ChangesOfPixelsCommuteWithFlipping) {
  Rng rng(4, RngPurpose::kTest);
  const test::Extents extents = {3, 6, 5};
  const Fields fields = {{kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
  const Experiment::Data data = Jitter(0.4, 0.4, 0.4, 0.1);
  const auto jitter = MakeColourJitter({data, fields, "a set"}).value();
  const auto apply = [&](const Pixels& pixels, int64_t i) {
    Sample sample(fields);
    sample.Borrow(0, std::as_bytes(std::span(pixels)));
    jitter->Apply({1, 2, i}, &sample);
    return Pixels(sample.pixels(0).begin(), sample.pixels(0).end());
  };
  for (int64_t i = 0; i < 20; ++i) {
    const Pixels image = test::RandomBytes(rng, test::Numbers(extents));
    const Window mirror{0, 0, true};
    EXPECT_EQ(apply(test::CutOf(extents, image, mirror, 0), i),
              test::CutOf(extents, apply(image, i), mirror, 0));
  }
}

TEST(ColourJitterTest, NothingAskedForIsNoTransformNorIsAnyOfEvaluation) {
  const Fields fields = {{kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture}};
  EXPECT_EQ(MakeColourJitter({Experiment::Data(), fields, "a set"}).value(), nullptr);
  for (const Experiment::Data& data :
       {Jitter(.1, 0, 0, 0), Jitter(0, .1, 0, 0), Jitter(0, 0, .1, 0), Jitter(0, 0, 0, .1)}) {
    EXPECT_NE(MakeColourJitter({data, fields, "a set"}).value(), nullptr);
    EXPECT_EQ(MakeColourJitter({data, fields, "a set", /*training=*/false}).value(), nullptr);
  }
}

// They are part of a job's mathematics: other colours would be other weights.
TEST(ColourJitterTest, DrawsAreTheSameForEver) {
  using enum ColourChange;
  const Experiment::Data data = Jitter(0.4, 0.4, 0.4, 0.1);
  EXPECT_EQ(DrawColours(data, {1, 0, 0}),
            (ColourDraw{{kBrightness, kSaturation, kContrast, kHue}, 70420, 53025, 72142, 4902}));
  EXPECT_EQ(DrawColours(data, {7, 19, 49999}),
            (ColourDraw{{kHue, kSaturation, kContrast, kBrightness}, 69593, 82932, 54493, -3604}));
}

TEST(ColourJitterTest, OneSettingChangesNothingOfTheOthers) {
  for (int64_t i = 0; i < 100; ++i) {
    const ColourDraw all = DrawColours(Jitter(0.4, 0.3, 2, 0.1), {5, 0, i});
    const ColourDraw hue = DrawColours(Jitter(0, 0, 0, 0.1), {5, 0, i});
    EXPECT_EQ(hue, (ColourDraw{all.order, kColourOne, kColourOne, kColourOne, all.turn}));
    const ColourDraw contrast = DrawColours(Jitter(0, 0.3, 0, 0), {5, 0, i});
    EXPECT_EQ(contrast, (ColourDraw{all.order, kColourOne, all.contrast, kColourOne, 0}));
  }
}

TEST(ColourJitterTest, OrdersAndFactorsAreUniform) {
  constexpr int kDraws = 24000;
  std::map<std::array<ColourChange, 4>, int> orders;
  double brightness = 0, turn = 0;
  int64_t least = kColourOne;
  for (int64_t i = 0; i < kDraws; ++i) {
    const ColourDraw draw = DrawColours(Jitter(0.5, 2, 0, 0.25), {5, 0, i});
    ++orders[draw.order];
    ASSERT_LE(std::abs(draw.brightness - kColourOne), kColourOne / 2);
    ASSERT_LE(std::abs(draw.turn), kColourOne / 4);
    brightness += static_cast<double>(draw.brightness) / kColourOne / kDraws;
    turn += static_cast<double>(draw.turn) / kColourOne / kDraws;
    least = std::min(least, draw.contrast);
  }
  EXPECT_EQ(orders.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : orders) chi_square += std::pow(count - 1000, 2) / 1000;
  EXPECT_NEAR(chi_square, 23, 5 * std::sqrt(2.0 * 23));
  EXPECT_NEAR(brightness, 1, 5 / std::sqrt(12.0 * kDraws));
  EXPECT_NEAR(turn, 0, 0.5 * 5 / std::sqrt(12.0 * kDraws));
  EXPECT_GE(least, 0);
  EXPECT_LT(least, kColourOne / 100) << "1 - 2 is below 0, which no factor is";
}

TEST(ColourJitterTest, ASampleIsChangedInItsDrawsOrder) {
  Rng rng(6, RngPurpose::kTest);
  const test::Extents extents = {3, 4, 5};
  const Fields fields = {{kLabelField, NumberType::kInt32, {}},
                         {kImageField, NumberType::kUint8, extents, FieldKind::kPicture}};
  const Experiment::Data data = Jitter(0.8, 0.8, 0.8, 0.4);
  const auto jitter = MakeColourJitter({data, fields, "a set"}).value();
  Sample sample(fields);
  for (int64_t i = 0; i < 50; ++i) {
    const Pixels image = test::RandomBytes(rng, test::Numbers(extents));
    sample.Borrow(1, std::as_bytes(std::span(image)));
    jitter->Apply({1, 2, i}, &sample);
    const ColourDraw draw = DrawColours(data, {1, 2, i});
    Pixels expected = image;
    for (const ColourChange change : draw.order) {
      if (change == ColourChange::kBrightness) ChangeBrightness(expected, draw.brightness);
      if (change == ColourChange::kContrast) ChangeContrast(3, expected, draw.contrast);
      if (change == ColourChange::kSaturation) ChangeSaturation(3, expected, draw.saturation);
      if (change == ColourChange::kHue) TurnHue(3, expected, draw.turn);
    }
    ASSERT_TRUE(std::ranges::equal(sample.pixels(1), expected)) << i;
  }
}

}  // namespace
}  // namespace kumo
