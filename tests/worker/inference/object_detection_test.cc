#include "worker/inference/object_detection.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "worker/inference/object_pictures.h"

namespace kumo {
namespace {

TEST(ObjectDetection, JsonHasTheNamesThatThereAreAndShortNumbers) {
  const ImageObjects image = {
      "a \"b\".jpg", 375, 500, {{{0.1f, -2, 30.5f, 40}, 1, 0.9f}, {{1, 2, 3, 4}, 2, 0.5f}}};
  const std::vector<std::string> names = {"cat", "dog"};
  EXPECT_EQ(JsonOf(image, names),
            "{\"file\":\"a \\\"b\\\".jpg\",\"width\":500,\"height\":375,\"objects\":["
            "{\"class\":1,\"name\":\"dog\",\"score\":0.9,\"box\":[0.1,-2,30.5,40]},"
            "{\"class\":2,\"score\":0.5,\"box\":[1,2,3,4]}]}");
  EXPECT_EQ(JsonOf({"b.png", 1, 2, {}, "drawn/b.png"}, {}),
            "{\"file\":\"b.png\",\"width\":2,\"height\":1,\"objects\":[],"
            "\"picture\":\"drawn/b.png\"}");
}

// Of a grey picture.
struct DrawnPicture {
  DrawnPicture(int64_t height, int64_t width, std::span<const Detection> objects)
      : pixels(height * width * 3, 90), canvas{height, width, pixels} {
    DrawObjects(canvas, objects, kNames);
  }
  Colour At(int64_t y, int64_t x) const {
    const uint8_t* const pixel = pixels.data() + (y * canvas.width + x) * 3;
    return {pixel[0], pixel[1], pixel[2]};
  }
  // Number of pixels of a colour.
  int64_t Count(const Colour& colour) const {
    int64_t count = 0;
    for (size_t i = 0; i < pixels.size(); i += 3) {
      count += Colour{pixels[i], pixels[i + 1], pixels[i + 2]} == colour ? 1 : 0;
    }
    return count;
  }
  static inline const std::vector<std::string> kNames = {"cat", "dog"};
  std::vector<uint8_t> pixels;
  Canvas canvas;
};

constexpr Colour kGrey = {90, 90, 90};

TEST(ObjectPictures, ABetterObjectIsDrawnOverAWorseOne) {
  const std::vector<Detection> objects = {{{10, 10, 110, 60}, 1, 0.9f},
                                          {{10, 10, 110, 90}, 0, 0.6f}};
  const DrawnPicture drawn(100, 120, objects);
  EXPECT_EQ(drawn.At(10, 100), ColourOfClass(1)) << "the sides that they share";
  EXPECT_EQ(drawn.At(30, 109), ColourOfClass(1));
  EXPECT_EQ(drawn.At(89, 60), ColourOfClass(0));
  EXPECT_EQ(drawn.At(40, 60), kGrey) << "inside";
}

TEST(ObjectPictures, LinesAndLettersGrowWithTheImage) {
  const std::vector<Detection> small_object = {{{20, 20, 180, 180}, 0, 0.6f}};
  const std::vector<Detection> large_object = {{{80, 80, 720, 720}, 0, 0.6f}};
  const DrawnPicture small(300, 300, small_object), large(1200, 1200, large_object);
  constexpr int64_t kLarger = 5;
  const Colour white = {255, 255, 255};
  EXPECT_GT(small.Count(white), 0) << "letters";
  EXPECT_EQ(large.Count(white), kLarger * kLarger * small.Count(white));
  EXPECT_EQ(small.At(178, 100), ColourOfClass(0));
  EXPECT_EQ(small.At(177, 100), kGrey);
  EXPECT_EQ(large.At(720 - 2 * kLarger, 400), ColourOfClass(0));
  EXPECT_EQ(large.At(719 - 2 * kLarger, 400), kGrey);
}

TEST(ObjectPictures, WhatLiesPartlyOutsideHasItsLabelInside) {
  const std::vector<Detection> objects = {{{-50, -50, 30, 30}, 7, 1.0f},
                                          {{60, 98, 300, 400}, 0, 0.5f}};
  const DrawnPicture drawn(100, 120, objects);
  EXPECT_EQ(drawn.At(0, 0), ColourOfClass(7));
  EXPECT_EQ(drawn.At(91, 60), ColourOfClass(0));
  const std::vector<Detection> beyond = {{{500, 500, 600, 600}, 0, 0.5f}};
  EXPECT_GT(DrawnPicture(5, 5, beyond).Count(kGrey), 0);
}

}  // namespace
}  // namespace kumo
