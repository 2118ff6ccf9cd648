#include "data/transforms/geometry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/crops.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/transforms/object_set.h"

namespace kumo {
namespace {

using testing::HasSubstr;

TEST(GeometryTest, BoxesAreMovedMirroredAndClipped) {
  const GeometricMap map = {.from = {10, 20, 50, 100}, .size = {100, 100}};
  EXPECT_EQ(MovedBox(map, {30, 20, 60, 35}), (Box{10, 20, 40, 50}));
  EXPECT_EQ(MovedBox(map, {0, 0, 70, 200}), (Box{0, 0, 50, 100})) << "clipped on three sides";
  GeometricMap mirrored = map;
  mirrored.mirrored = true;
  EXPECT_EQ(MovedBox(mirrored, {30, 20, 60, 35}), (Box{60, 20, 90, 50}));
  const GeometricMap canvas = {.from = {-5, -7, 60, 60}, .size = {60, 60}};
  EXPECT_EQ(MovedBox(canvas, {1.5, 2, 3.25, 4}), (Box{8.5, 7, 10.25, 9}));
}

TEST(GeometryTest, ABoxIsKeptIfItsCentreLiesInside) {
  const Rectangle part = {10, 20, 50, 100};
  EXPECT_TRUE(Keeps(part, {0, 0, 41, 21}));
  EXPECT_FALSE(Keeps(part, {0, 0, 40, 21})) << "the centre is on the edge";
  EXPECT_FALSE(Keeps(part, {0, 0, 41, 20}));
  EXPECT_TRUE(Keeps(part, {119, 59, 120, 60}));
  EXPECT_FALSE(Keeps(part, {120, 30, 121, 31}));
  EXPECT_FALSE(Keeps(part, {30, 60, 31, 61}));
}

// A map of pictures of `size` with all that maps can have.
GeometricMap DrawMap(Rng& rng, const PictureSize& size, std::span<const uint8_t> outside) {
  const auto between = [&rng](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.NextBelow(high - low + 1));
  };
  GeometricMap map;
  map.from = {0, 0, size.height, size.width};
  const uint64_t kind = rng.NextBelow(4);
  if (kind == 1) {  // a part
    map.from.height = between(1, size.height);
    map.from.width = between(1, size.width);
    map.from.top = between(0, size.height - map.from.height);
    map.from.left = between(0, size.width - map.from.width);
  } else if (kind == 2) {  // a canvas
    map.from = {-between(0, 20), -between(0, 20), size.height + 20, size.width + 20};
  } else if (kind == 3) {  // a window that may lie outside
    map.from.top = between(-size.height - 3, size.height + 3);
    map.from.left = between(-size.width - 3, size.width + 3);
  }
  map.size = {map.from.height, map.from.width};
  if (rng.NextBelow(3) == 0) map.size = {between(1, 50), between(1, 50)};
  map.mirrored = rng.NextBelow(2) == 1;
  map.interpolation = static_cast<Interpolation>(rng.NextBelow(kInterpolations));
  map.outside = outside;
  return map;
}

std::vector<uint8_t> Moved(const GeometricMap& map, const PictureSize& size,
                           std::span<const uint8_t> picture) {
  Resampler resampler;
  const int64_t channels = std::ssize(picture) / (size.height * size.width);
  std::vector<uint8_t> moved(channels * map.size.height * map.size.width);
  MovePicture(map, channels, size, picture, &resampler, moved);
  return moved;
}

TEST(GeometryTest, AnyWindowOfAnyImageIsTheFormulas) {
  Rng rng(1, RngPurpose::kTest);
  for (int trial = 0; trial < 1000; ++trial) {
    const auto extent = [&] { return static_cast<int64_t>(1 + rng.NextBelow(40)); };
    const test::Extents extents = {static_cast<int64_t>(1 + rng.NextBelow(4)), extent(), extent()};
    const std::vector<uint8_t> image = test::RandomBytes(rng, test::Numbers(extents));
    const Window window = test::RandomWindow(rng, static_cast<int>(rng.NextBelow(50)));
    const auto pad_value = static_cast<uint8_t>(rng.NextBelow(256));
    const PictureSize size = {extents[1], extents[2]};
    ASSERT_EQ(Moved(window.MapOf(size, std::span(&pad_value, 1)), size, image),
              test::CutOf(extents, image, window, pad_value))
        << ExtentsText(extents) << " from " << window.top << "," << window.left
        << (window.mirrored ? " mirrored" : "");
  }
}

TEST(GeometryTest, AMaskMovesLikeItsPictureByNearestNeighbour) {
  Rng rng(2, RngPurpose::kTest);
  const uint8_t ignored = kIgnoredClass;
  for (int trial = 0; trial < 500; ++trial) {
    const PictureSize size = {static_cast<int64_t>(1 + rng.NextBelow(40)),
                              static_cast<int64_t>(1 + rng.NextBelow(40))};
    const std::vector<uint8_t> mask = test::RandomBytes(rng, size.height * size.width);
    GeometricMap map = DrawMap(rng, size, std::span(&ignored, 1));
    map.interpolation = Interpolation::kNearest;
    std::vector<uint8_t> moved(map.size.height * map.size.width);
    MoveMask(map, size, mask, moved);
    ASSERT_EQ(moved, Moved(map, size, mask)) << "trial " << trial;
  }
}

TEST(GeometryTest, TwoMapsInOneGiveTheBitsOfBoth) {
  Rng rng(3, RngPurpose::kTest);
  const std::vector<uint8_t> colour = {10, 20}, other = {30};
  int composed = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const PictureSize size = {static_cast<int64_t>(1 + rng.NextBelow(40)),
                              static_cast<int64_t>(1 + rng.NextBelow(40))};
    const std::vector<uint8_t> picture = test::RandomBytes(rng, 3 * size.height * size.width);
    const GeometricMap first = DrawMap(rng, size, colour);
    const GeometricMap second = DrawMap(rng, first.size, other);
    const auto both = Composed(first, second);
    if (!both) continue;
    ++composed;
    ASSERT_EQ(Moved(*both, size, picture), Moved(second, first.size, Moved(first, size, picture)))
        << "trial " << trial;
    const Box box = {0.25f, 0.5f, static_cast<float>(size.width), static_cast<float>(size.height)};
    const Box once = MovedBox(*both, box), twice = MovedBox(second, MovedBox(first, box));
    EXPECT_NEAR(once.left, twice.left, 1e-3) << "trial " << trial;
    EXPECT_NEAR(once.bottom, twice.bottom, 1e-3) << "trial " << trial;
  }
  EXPECT_GT(composed, 500);
}

// As in training: expand, crop, scale, flip.
TEST(GeometryTest, ACanvasThatIsScaledIsNeverMade) {
  const GeometricMap canvas = {.from = {-100, -50, 400, 400}, .size = {400, 400}};
  const GeometricMap part = {.from = {10, 20, 300, 200}, .size = {300, 200}};
  const GeometricMap scaled = {.from = {0, 0, 300, 200}, .size = {30, 30}};
  const GeometricMap flipped = {.from = {0, 0, 30, 30}, .size = {30, 30}, .mirrored = true};
  auto map = Composed(canvas, part);
  for (const GeometricMap& next : {scaled, flipped}) {
    ASSERT_TRUE(map);
    map = Composed(*map, next);
  }
  ASSERT_TRUE(map);
  EXPECT_EQ(map->from, (Rectangle{-90, -30, 300, 200}));
  EXPECT_EQ(map->size, (PictureSize{30, 30}));
  EXPECT_TRUE(map->mirrored);
}

// Any map, drawn from the sample's key.
class AnyMap final : public GeometricTransform {
 public:
  AnyMap(const Fields& fields, uint64_t number)
      : GeometricTransform(fields, PictureSize{0, 0}), number_(number) {}
  GeometricMap MapOf(const SampleKey& key, const Scene& scene) const override {
    Rng rng(key.seed, RngPurpose::kTest, key.sample, number_);
    return DrawMap(rng, scene.size, black_);
  }

 private:
  const uint64_t number_;
  const std::vector<uint8_t> black_ = {0};
};

TEST(GeometryTest, ListsStayParallelAndPairsEqualThroughAnyTransforms) {
  const test::ObjectSet set(60, test::kMostObjects);
  Transforms transforms;
  for (uint64_t i = 0; i < 3; ++i) transforms.push_back(std::make_unique<AnyMap>(set.fields(), i));
  Sample together(set.fields()), apart(set.fields());
  int dropped = 0, kept = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    const SampleKey key = {4, 0, i};
    ASSERT_TRUE(ReadTransformed(set, transforms, key, &together).ok());
    apart.Reset(set.fields());
    ASSERT_TRUE(set.ReadKey(key, &apart).ok());
    for (const auto& transform : transforms) transform->Apply(key, &apart);
    for (int f = 0; f < std::ssize(set.fields()); ++f) {
      ASSERT_TRUE(std::ranges::equal(together.field(f), apart.field(f))) << "field " << f;
      ASSERT_TRUE(std::ranges::equal(together.extents(f), apart.extents(f))) << "field " << f;
    }
    EXPECT_TRUE(std::ranges::equal(together.pixels(test::kLeftPicture),
                                   together.pixels(test::kRightPicture)));
    const auto boxes = test::ValuesOf<Box>(together, test::kObjectBoxes);
    const auto classes = test::ValuesOf<int32_t>(together, test::kObjectClasses);
    const auto flags = test::ValuesOf<uint8_t>(together, test::kObjectFlags);
    ASSERT_EQ(boxes.size(), classes.size());
    ASSERT_EQ(boxes.size(), flags.size());
    for (const int f : {test::kObjectBoxes, test::kObjectClasses, test::kObjectFlags}) {
      EXPECT_EQ(together.extents(f)[0], std::ssize(boxes));
    }
    // The boxes of the objects that remain, one map after the other.
    for (size_t k = 0; k < boxes.size(); ++k) {
      EXPECT_EQ(flags[k], classes[k] % 2);
      Box box = test::ObjectSet::BoxOf(set.ObjectsOf(i)[classes[k]].place);
      PictureSize size = set.SizeOf(i);
      for (const auto& transform : transforms) {
        const GeometricMap map = transform->geometric()->MapOf(key, {size, {}});
        EXPECT_TRUE(Keeps(map.from, box));
        box = MovedBox(map, box);
        size = map.size;
      }
      EXPECT_EQ(box, boxes[k]);
    }
    kept += static_cast<int>(boxes.size());
    dropped += static_cast<int>(set.ObjectsOf(i).size() - boxes.size());
  }
  EXPECT_GT(kept, 30);
  EXPECT_GT(dropped, 30);
}

TEST(GeometryTest, PicturesAndMasksOfOtherSizesAreRefused) {
  const Fields fields = {{"left", NumberType::kUint8, {3, 8, 9}, FieldKind::kPicture},
                         {"mask", NumberType::kUint8, {4, 9}, FieldKind::kMask}};
  Experiment::Data data;
  data.flip = true;
  const Status status = MakeTransforms({data, fields, "a set"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("a set: left is 3x8x9, but mask is 4x9"));
  data.flip = false;
  EXPECT_TRUE(MakeTransforms({data, fields, "a set"}).ok()) << "nothing moves";
  Sample sample(fields);
  EXPECT_EQ(CheckOneSizeOf(fields, sample, "a set").code(), StatusCode::kDataLoss);
  sample.SetExtents(1, std::array<int64_t, 2>{8, 9});
  EXPECT_TRUE(CheckOneSizeOf(fields, sample, "a set").ok());
}

}  // namespace
}  // namespace kumo
