#include "data/pictures/drawing.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

struct Picture {
  Picture(int64_t rows, int64_t columns)
      : pixels(rows * columns * 3, 255), canvas{rows, columns, pixels} {}
  // A character by pixel: white, black, or another colour.
  std::string Row(int64_t y) const {
    std::string row;
    for (int64_t x = 0; x < canvas.width; ++x) {
      const uint8_t* rgb = pixels.data() + (y * canvas.width + x) * 3;
      const int sum = rgb[0] + rgb[1] + rgb[2];
      row += sum == 3 * 255 ? ' ' : sum == 0 ? '#' : '+';
    }
    return row;
  }
  std::vector<uint8_t> pixels;
  Canvas canvas;
};

TEST(DrawingTest, ABoxIsAFrameInsideItsEdges) {
  Picture picture(6, 9);
  DrawBox(picture.canvas, {1, 1, 8, 5}, {255, 0, 0}, 1);
  EXPECT_EQ(picture.Row(0), "         ");
  EXPECT_EQ(picture.Row(1), " +++++++ ");
  EXPECT_EQ(picture.Row(2), " +     + ");
  EXPECT_EQ(picture.Row(4), " +++++++ ");
  EXPECT_EQ(picture.Row(5), "         ");
}

TEST(DrawingTest, WhatLiesOutsideIsLeftOut) {
  Picture picture(5, 5);
  DrawBox(picture.canvas, {-10, -10, 3, 3}, {255, 0, 0}, 2);
  DrawBox(picture.canvas, {2, 2, 1e9f, 1e9f}, {255, 0, 0}, 9);
  DrawLabel(picture.canvas, -8, -3, "ab", {255, 0, 0});
  DrawLabel(picture.canvas, 100, 100, "ab", {255, 0, 0});
  EXPECT_EQ(picture.Row(4), "  +++");
}

TEST(DrawingTest, ALabelIsCapitalLettersOnItsColour) {
  Picture picture(9, 13);
  DrawLabel(picture.canvas, 0, 0, "tL", {255, 255, 0});
  const std::vector<std::string> expected = {"+++++++++++++", "+#####+#+++++", "+++#+++#+++++",
                                             "+++#+++#+++++", "+++#+++#+++++", "+++#+++#+++++",
                                             "+++#+++#+++++", "+++#+++#####+", "+++++++++++++"};
  for (int64_t y = 0; y < 9; ++y) EXPECT_EQ(picture.Row(y), expected[y]);
}

TEST(DrawingTest, AnEnlargedLabelHasItsPixelsSeveralTimes) {
  Picture small(9, 13), large(18, 26);
  DrawLabel(small.canvas, 0, 0, "a%", {255, 255, 0});
  DrawLabel(large.canvas, 0, 0, "a%", {255, 255, 0}, 2);
  for (int64_t y = 0; y < 18; ++y) {
    std::string row;
    for (const char pixel : small.Row(y / 2)) row += std::string(2, pixel);
    EXPECT_EQ(large.Row(y), row);
  }
}

TEST(DrawingTest, LettersAreWhiteOnDarkColours) {
  Picture dark(9, 7);
  DrawLabel(dark.canvas, 0, 0, "l", {0, 60, 255});
  EXPECT_EQ(dark.Row(4), "+ +++++");
}

TEST(DrawingTest, ClassesHaveColoursOfTheirOwn) {
  std::set<Colour> colours;
  for (int64_t i = 0; i < 80; ++i) colours.insert(ColourOfClass(i));
  EXPECT_EQ(colours.size(), 80u);
  EXPECT_EQ(ColourOfClass(0), (Colour{255, 0, 0}));
}

TEST(DrawingTest, MasksTintTheirClasses) {
  Picture picture(2, 3);
  const std::vector<uint8_t> mask = {0, 1, kIgnoredClass};
  DrawMask(picture.canvas, {1, 0, 1, 3}, mask);
  EXPECT_EQ(picture.Row(0), "   ");
  const auto at = [&](int64_t x) {
    return Colour{picture.pixels[9 + 3 * x], picture.pixels[10 + 3 * x],
                  picture.pixels[11 + 3 * x]};
  };
  EXPECT_EQ(at(0), (Colour{255, 255, 255}));
  EXPECT_EQ(at(1), (Colour{255, 127, 127}));
  EXPECT_EQ(at(2), (Colour{127, 127, 127}));
}

}  // namespace
}  // namespace kumo
