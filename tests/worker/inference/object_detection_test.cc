#include "worker/inference/object_detection.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(JsonOf({"b.png", 1, 2, {}}, {}),
            "{\"file\":\"b.png\",\"width\":2,\"height\":1,\"objects\":[]}");
}

}  // namespace
}  // namespace kumo
