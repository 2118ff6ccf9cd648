#include "worker/training/found_picture.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/job/protocol.h"
#include "data/readers/image_decoder.h"

namespace kumo {
namespace {

// Pictures of one level each, or of noise if the level is negative, without detections.
struct Samples {
  Samples(const std::vector<int64_t>& extents, const std::vector<int>& levels) {
    Rng rng(5, RngPurpose::kTest);
    fields = {{.name = "image", .type = NumberType::kUint8, .extents = extents}};
    fields[0].kind = FieldKind::kPicture;
    for (const int level : levels) {
      for (int64_t i = 0; i < extents[0] * extents[1] * extents[2]; ++i) {
        bytes.push_back(static_cast<std::byte>(level < 0 ? rng.NextUint64() : level));
      }
    }
    compared.resize(levels.size());
  }
  std::string Draw() const {
    const std::span<const std::byte> all = bytes;
    return DrawFound(fields, {static_cast<int>(compared.size()), {&all, 1}}, compared, names);
  }

  Fields fields;
  std::vector<std::byte> bytes;
  std::vector<Detector::Compared> compared;
  std::vector<std::string> names = {"cat"};
};

struct Decoded {
  explicit Decoded(const std::string& png) {
    const std::span<const uint8_t> file(reinterpret_cast<const uint8_t*>(png.data()), png.size());
    const ImageHeader header = ImageDecoder::ReadHeader(file).value();
    height = header.height;
    width = header.width;
    ImageDecoder decoder;
    const auto all = decoder.Decode(file, 3).value();
    planes.assign(all.begin(), all.end());
  }
  std::vector<int> At(int64_t y, int64_t x) const {
    std::vector<int> colours;
    for (int64_t c = 0; c < 3; ++c) colours.push_back(planes[(c * height + y) * width + x]);
    return colours;
  }

  int64_t height, width;
  std::vector<uint8_t> planes;
};

TEST(FoundPictureTest, ShowsTheFirstFourSamples) {
  const Decoded four(Samples({3, 30, 40}, {10, 20, 30, 40, 50}).Draw());
  EXPECT_EQ(four.height, 64);
  EXPECT_EQ(four.width, 84);
  EXPECT_EQ(four.At(0, 0), (std::vector{10, 10, 10}));
  EXPECT_EQ(four.At(29, 44), (std::vector{20, 20, 20}));
  EXPECT_EQ(four.At(34, 0), (std::vector{30, 30, 30}));
  EXPECT_EQ(four.At(63, 83), (std::vector{40, 40, 40}));
  EXPECT_EQ(four.At(31, 10), (std::vector{255, 255, 255})) << "between two";
  const Decoded grey(Samples({1, 30, 40}, {10}).Draw());
  EXPECT_EQ(grey.width, 40);
  EXPECT_EQ(grey.At(5, 5), (std::vector{10, 10, 10}));
}

TEST(FoundPictureTest, DrawsCertainObjectsAndThoseOfTheData) {
  Samples one({3, 512, 512}, {0});  // reduced to half the size
  one.compared[0].objects = {{{100, 100, 200, 200}, 0, false}};
  const std::string objects = one.Draw();
  one.compared[0].found = {{{300, 300, 400, 400}, 0, 0.49f}};
  EXPECT_EQ(one.Draw(), objects) << "too uncertain to be shown";
  one.compared[0].found[0].score = 0.5f;
  const Decoded drawn(one.Draw());
  EXPECT_EQ(drawn.height, 256);
  const std::vector<int> black = {0, 0, 0};
  EXPECT_NE(drawn.At(50, 75), black) << "the object's upper edge";
  EXPECT_EQ(drawn.At(51, 75), black) << "which is thin";
  EXPECT_NE(drawn.At(198, 175), black) << "the detection's lower edge";
  EXPECT_NE(drawn.At(199, 175), black) << "which is thicker";
}

TEST(FoundPictureTest, ShowsFewerIfTheyTakeTooMuchRoom) {
  const std::string png = Samples({3, 256, 256}, {-1, -1, -1, -1}).Draw();
  EXPECT_GT(std::ssize(png), 0);
  EXPECT_LE(std::ssize(png), kMostPictureBytes);
  EXPECT_EQ(Decoded(png).height, 256);
}

TEST(FoundPictureTest, ThereIsNoneOfOtherSamples) {
  Samples numbers({3, 4, 4}, {1});
  numbers.fields[0].kind = FieldKind::kNumbers;
  EXPECT_EQ(numbers.Draw(), "");
  EXPECT_EQ(Samples({3, 4, 4}, {}).Draw(), "");
}

}  // namespace
}  // namespace kumo
