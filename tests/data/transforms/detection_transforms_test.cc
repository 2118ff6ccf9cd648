// SSD's augmentation of samples with boxes, step by step and as a whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/difficult.h"
#include "data/transforms/expand.h"
#include "data/transforms/object_crop.h"
#include "data/transforms/photometric.h"
#include "data/transforms/resize.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/transforms/object_set.h"

namespace kumo {
namespace {

using testing::HasSubstr;

const PictureSize kPhotograph = {375, 500};

Experiment::Data SsdData() {
  Experiment::Data data;
  data.train_difficult = true;
  data.photometric = true;
  data.expand = 4;
  data.object_crop = true;
  data.image_size = "3x60x60";
  data.resize = ResizeMode::kStretch;
  data.random_interpolation = true;
  data.flip = true;
  data.scale = 1;
  data.mean = {12, 11, 10};
  return data;
}

TEST(ExpandTest, HalfOfTheImagesLieOnACanvasOfUniformSize) {
  constexpr int kDraws = 4000;
  int expanded = 0;
  double ratio = 0, place = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const Rectangle canvas = DrawCanvas(4, kPhotograph, {5, 0, i});
    if (canvas == Rectangle{0, 0, 375, 500}) continue;
    ++expanded;
    ASSERT_TRUE(canvas.top <= 0 && canvas.top + canvas.height >= 375);
    ASSERT_TRUE(canvas.left <= 0 && canvas.left + canvas.width >= 500);
    ratio += static_cast<double>(canvas.width) / 500;
    if (canvas.width > 500) {
      place += static_cast<double>(-canvas.left) / static_cast<double>(canvas.width - 500);
    }
    ASSERT_NEAR(static_cast<double>(canvas.height) / 375, static_cast<double>(canvas.width) / 500,
                0.005);
  }
  EXPECT_NEAR(expanded, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
  EXPECT_NEAR(ratio / expanded, 2.5, 5 * 3 / std::sqrt(12.0 * expanded));
  EXPECT_NEAR(place / expanded, 0.5, 5 / std::sqrt(12.0 * expanded));
}

TEST(ExpandTest, TheCanvasIsOfTheMeanColourAndBoxesMoveWithTheImage) {
  const test::ObjectSet set(20, 1);
  const Experiment::Data data = SsdData();
  const auto expand = MakeExpand({data, set.fields(), "a set"}).value();
  Sample sample(set.fields());
  for (int64_t i = 0; i < set.size(); ++i) {
    const SampleKey key = {2, 0, i};
    sample.Reset(set.fields());
    ASSERT_TRUE(set.ReadKey(key, &sample).ok());
    expand->Apply(key, &sample);
    const Rectangle canvas = DrawCanvas(4, set.SizeOf(i), key);
    ASSERT_THAT(sample.extents(0), testing::ElementsAre(3, canvas.height, canvas.width));
    const Rectangle object = set.ObjectsOf(i)[0].place;
    const auto boxes = test::ValuesOf<Box>(sample, test::kObjectBoxes);
    ASSERT_EQ(boxes.size(), 1u);
    EXPECT_EQ(boxes[0], test::ObjectSet::BoxOf({object.top - canvas.top, object.left - canvas.left,
                                                object.height, object.width}));
    if (canvas.top == 0 && canvas.left == 0) continue;
    const int64_t plane = canvas.height * canvas.width;
    EXPECT_EQ(sample.pixels(0)[0], 12);
    EXPECT_EQ(sample.pixels(0)[plane], 11);
    EXPECT_EQ(sample.pixels(0)[2 * plane], 10);
    EXPECT_EQ(sample.pixels(test::kObjectMask)[0], kIgnoredClass);
  }
  EXPECT_EQ(MakeExpand({Experiment::Data(), set.fields(), "a set"}).value(), nullptr);
  EXPECT_EQ(MakeExpand({data, set.fields(), "a set", /*training=*/false}).value(), nullptr);
}

// They are part of a job's mathematics: other parts would be other weights.
TEST(DetectionTransformsTest, DrawsAreTheSameForEver) {
  const std::vector<Box> boxes = {{100, 80, 300, 280}};
  EXPECT_EQ(DrawCanvas(4, kPhotograph, {1, 0, 0}), (Rectangle{-11, -876, 1172, 1563}));
  EXPECT_EQ(DrawCanvas(4, kPhotograph, {1, 0, 1}), (Rectangle{-137, -957, 1116, 1489}));
  EXPECT_EQ(DrawPart({kPhotograph, boxes}, {1, 0, 0}), (Rectangle{33, 62, 202, 325}));
  EXPECT_EQ(DrawPart({kPhotograph, boxes}, {7, 19, 49999}), (Rectangle{25, 201, 262, 268}));
  EXPECT_EQ(DrawInterpolation({1, 0, 0}), Interpolation::kArea);
  EXPECT_EQ(DrawInterpolation({1, 0, 1}), Interpolation::kLanczos);
  EXPECT_EQ(DrawDistortion({1, 0, 0}), (Distortion{0, 65536, 0.932312012f, 0.0f, 49258}));
  EXPECT_EQ(DrawDistortion({1, 0, 1}), (Distortion{0, 65536, 1.48628235f, 5.83108521f, 65536}));
}

// One box of a quarter of the image: the parts that overlap with it by at least .5 are found
// nearly always, so that all kinds are about equally frequent, and the overlaps show which.
TEST(ObjectCropTest, PartsSatisfyTheirOverlapWithAllBoxes) {
  const std::vector<Box> boxes = {{100, 75, 350, 300}, {120, 100, 340, 280}};
  constexpr int kDraws = 4000;
  int whole = 0, low = 0;
  for (int64_t i = 0; i < kDraws; ++i) {
    const Rectangle part = DrawPart({kPhotograph, boxes}, {3, 0, i});
    ASSERT_TRUE(part.top >= 0 && part.left >= 0 && part.top + part.height <= 375 &&
                part.left + part.width <= 500);
    if (part == Rectangle{0, 0, 375, 500}) {
      ++whole;
      continue;
    }
    const double scale = std::sqrt(static_cast<double>(part.height * part.width) / (375.0 * 500));
    ASSERT_GT(scale, 0.295);
    const double aspect =
        (static_cast<double>(part.width) / 500) / (static_cast<double>(part.height) / 375);
    ASSERT_GT(aspect, 0.49);
    ASSERT_LT(aspect, 2.03);
    const Box area = test::ObjectSet::BoxOf(part);
    const float least =
        std::min(IntersectionOverUnion(area, boxes[0]), IntersectionOverUnion(area, boxes[1]));
    low += least < 0.1f ? 1 : 0;
  }
  // A seventh, or more as .7 and .9 are rarely found.
  EXPECT_GT(whole, kDraws / 7 - 5 * 22);
  EXPECT_LT(whole, kDraws / 3);
  EXPECT_GT(low, 0) << "any part";
  EXPECT_LT(low, kDraws / 5);
}

TEST(DropDifficultTest, OnlyTrainingImagesLoseTheirDifficultObjects) {
  const test::ObjectSet dataset(50, test::kMostObjects);
  Experiment::Data data;
  const auto make = [&](bool training) {
    return MakeDropDifficult({data, dataset.fields(), dataset.name(), training}).value();
  };
  EXPECT_EQ(make(/*training=*/false), nullptr);
  const auto drops = make(/*training=*/true);
  ASSERT_NE(drops, nullptr);
  Sample sample(dataset.fields());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    sample.Reset(dataset.fields());
    ASSERT_TRUE(dataset.Read(i, &sample).ok());
    drops->Apply({.sample = i}, &sample);
    std::vector<Box> boxes;
    std::vector<int32_t> classes;
    for (const test::ObjectSet::Object& object : dataset.ObjectsOf(i)) {
      if (object.number % 2 == 1) continue;
      boxes.push_back(test::ObjectSet::BoxOf(object.place));
      classes.push_back(object.number);
    }
    EXPECT_EQ(test::ValuesOf<Box>(sample, test::kObjectBoxes), boxes) << i;
    EXPECT_EQ(test::ValuesOf<int32_t>(sample, test::kObjectClasses), classes) << i;
    EXPECT_EQ(test::ValuesOf<uint8_t>(sample, test::kObjectFlags),
              std::vector<uint8_t>(boxes.size()))
        << i;
    for (const int field : {test::kObjectBoxes, test::kObjectClasses, test::kObjectFlags}) {
      EXPECT_EQ(sample.extents(field)[0], std::ssize(boxes)) << i;
    }
  }
  data.train_difficult = true;
  EXPECT_EQ(make(/*training=*/true), nullptr);
}

TEST(ObjectCropTest, AnImageWithoutObjectsStaysWhole) {
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(DrawPart({kPhotograph, {}}, {3, 0, i}), (Rectangle{0, 0, 375, 500}));
  }
}

TEST(ObjectCropTest, DegenerateImagesAndBoxesGiveAPart) {
  const std::vector<Box> boxes = {{0, 0, 0, 0}, {0, 0, 1, 1}};
  for (int64_t i = 0; i < 100; ++i) {
    const Rectangle part = DrawPart({{1, 1}, boxes}, {3, 0, i});
    EXPECT_EQ(part, (Rectangle{0, 0, 1, 1}));
  }
}

TEST(ObjectCropTest, SamplesWithoutBoxesAreRefused) {
  const Fields fields = LabelledImage({3, 8, 8});
  const Status status = MakeTransforms({SsdData(), fields, "a set"}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("data.object_crop = true requires boxes"));
}

TEST(PhotometricTest, ValuesAreThoseOfTheFormulas) {
  const auto distorted = [](const Distortion& distortion, const std::vector<uint8_t>& from,
                            int64_t channels = 3) {
    std::vector<uint8_t> to(from.size());
    Distort(distortion, channels, from, to);
    return to;
  };
  using testing::ElementsAre;
  constexpr int32_t kOne = 1 << 16;
  EXPECT_THAT(distorted({.brightness = 30}, {0, 100, 250}), ElementsAre(30, 130, 255));
  EXPECT_THAT(distorted({.brightness = -30}, {0, 100, 250}, 1), ElementsAre(0, 70, 220));
  EXPECT_THAT(distorted({.contrast_first = kOne * 3 / 2}, {3, 100, 200}), ElementsAre(5, 150, 255));
  EXPECT_THAT(distorted({.contrast_last = kOne / 2}, {3, 100, 200}, 1), ElementsAre(2, 50, 100));
  // V = 200, R = 150: the distances from V are halved, or grow until the smallest is 0.
  EXPECT_THAT(distorted({.saturation = 0.5f}, {200, 100, 50}), ElementsAre(200, 150, 125));
  EXPECT_THAT(distorted({.saturation = 1.5f}, {200, 100, 50}), ElementsAre(200, 67, 0));
  // Red, green a third of the circle on, blue two thirds.
  EXPECT_THAT(distorted({.turn = 2}, {255, 0, 0}), ElementsAre(0, 255, 0));
  EXPECT_THAT(distorted({.turn = 4}, {255, 0, 0}), ElementsAre(0, 0, 255));
  EXPECT_THAT(distorted({.saturation = 1.3f, .turn = 1}, {90, 90, 90}), ElementsAre(90, 90, 90));
  EXPECT_THAT(distorted({.saturation = 1.3f, .turn = 1}, {90, 80}, 1), ElementsAre(90, 80));
}

TEST(PhotometricTest, EachChangeIsMadeForHalfOfTheSamples) {
  constexpr int kDraws = 4000;
  std::map<std::string, int> changed;
  for (int64_t i = 0; i < kDraws; ++i) {
    const Distortion d = DrawDistortion({5, 1, i});
    ASSERT_LE(std::abs(d.brightness), 32);
    for (const int32_t factor : {d.contrast_first, d.contrast_last}) {
      ASSERT_TRUE(factor >= 1 << 15 && factor <= 3 << 15);
    }
    ASSERT_TRUE(d.contrast_first == 1 << 16 || d.contrast_last == 1 << 16);
    ASSERT_TRUE(d.saturation >= 0.5f && d.saturation <= 1.5f);
    ASSERT_TRUE((d.turn >= 0 && d.turn < 0.6001f) || (d.turn > 5.3999f && d.turn < 6));
    changed["brightness"] += d.brightness != 0 ? 1 : 0;
    changed["contrast"] += d.contrast_first != d.contrast_last ? 1 : 0;
    changed["saturation"] += d.saturation != 1 ? 1 : 0;
    changed["hue"] += d.turn != 0 ? 1 : 0;
    changed["first"] += d.contrast_first != 1 << 16 ? 2 : 0;
  }
  for (const auto& [change, count] : changed) {
    // A drawn brightness is 0 for one of 65 draws.
    EXPECT_NEAR(count, kDraws / 2, 6 * std::sqrt(kDraws / 4.0)) << change;
  }
}

TEST(PhotometricTest, PairsGetTheSameColoursAndMasksNone) {
  const test::ObjectSet set(10, 3);
  Experiment::Data data;
  data.photometric = true;
  Transforms transforms;
  transforms.push_back(MakePhotometric({data, set.fields(), "a set"}).value());
  ASSERT_NE(transforms[0], nullptr);
  Sample plain(set.fields()), sample(set.fields());
  bool changed = false;
  for (int64_t i = 0; i < set.size(); ++i) {
    ASSERT_TRUE(ReadTransformed(set, {}, {1, 0, i}, &plain).ok());
    ASSERT_TRUE(ReadTransformed(set, transforms, {1, 0, i}, &sample).ok());
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), sample.pixels(1)));
    changed = changed || !std::ranges::equal(sample.pixels(0), plain.pixels(0));
    for (int f = 2; f < std::ssize(set.fields()); ++f) {
      EXPECT_TRUE(std::ranges::equal(sample.field(f), plain.field(f)));
    }
  }
  EXPECT_TRUE(changed);
}

TEST(ResizeTest, EveryInterpolationIsDrawnAboutEquallyOften) {
  std::vector<int> counts(kInterpolations);
  for (int64_t i = 0; i < 1000; ++i) ++counts[static_cast<int>(DrawInterpolation({1, 0, i}))];
  for (const int count : counts) EXPECT_NEAR(count, 200, 5 * 13);
}

TEST(ResizeTest, EvaluatedImagesWithBoxesAreStretchedLinearly) {
  const test::ObjectSet set(8, 1);
  Sample original(set.fields()), sample(set.fields());
  Experiment::Data data = SsdData();
  data.resize = ResizeMode::kCrop;
  const Transforms transforms =
      MakeTransforms({data, set.fields(), "a set", /*training=*/false}).value();
  ASSERT_EQ(transforms.size(), 1u) << "neither colours nor crops";
  EXPECT_THAT(FieldsAfter(set.fields(), transforms)[0].extents, testing::ElementsAre(3, 60, 60));
  EXPECT_THAT(FieldsAfter(set.fields(), transforms)[2].extents, testing::ElementsAre(60, 60));
  for (int64_t i = 0; i < set.size(); ++i) {
    ASSERT_TRUE(ReadTransformed(set, {}, {1, 0, i}, &original).ok());
    ASSERT_TRUE(ReadTransformed(set, transforms, {1, 0, i}, &sample).ok());
    const auto [height, width] = set.SizeOf(i);
    std::vector<uint8_t> expected(3 * 60 * 60);
    Resampler().Resample(original.pixels(0), 3, height, width, {0, 0, height, width}, 60, 60,
                         expected);
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), expected));
  }
}

TEST(ResizeTest, OtherImagesAreCroppedOrStretched) {
  const Fields fields = {{kImageField, NumberType::kUint8, {1, 0, 0}, FieldKind::kPicture}};
  for (const ResizeMode mode : {ResizeMode::kCrop, ResizeMode::kStretch}) {
    Experiment::Data data;
    data.image_size = "1x10x10";
    data.resize = mode;
    const auto resize = MakeResize({data, fields, "a set"}).value();
    const GeometricMap map = resize->geometric()->MapOf({}, {{20, 40}, {}});
    const bool crops = mode == ResizeMode::kCrop;
    EXPECT_EQ(map.from, crops ? (Rectangle{0, 10, 20, 20}) : (Rectangle{0, 0, 20, 40}));
    EXPECT_EQ(map.size, (PictureSize{10, 10}));
    EXPECT_EQ(map.interpolation, Interpolation::kLinear);
  }
}

TEST(ResizeTest, ImagesOfSeveralSizesNeedOne) {
  const test::ObjectSet set(8, 1);
  const Status status =
      MakeTransforms({Experiment::Data(), set.fields(), "a set", /*training=*/false}).status();
  EXPECT_THAT(status.message(), HasSubstr("set data.image_size, such as 3x300x300"));
}

TEST(ResizeTest, AnExpandedImageOfOneSizeGetsItBack) {
  const Fields fields = LabelledImage({1, 28, 28});
  Experiment::Data data;
  data.expand = 2;
  const Transforms transforms = MakeTransforms({data, fields, "a set"}).value();
  EXPECT_EQ(transforms.size(), 2u);
  EXPECT_EQ(FieldsAfter(fields, transforms), fields);
}

// Columns of a table have any name.
TEST(DropDifficultTest, OtherFieldsOfThatNameAreNoFlags) {
  const Field image = {kImageField, NumberType::kUint8, {3, 9, 7}, FieldKind::kPicture};
  const Field number = {kDifficultField, NumberType::kFloat32, {1}};
  const Field flags = {
      kDifficultField, NumberType::kUint8, {test::kMostObjects}, FieldKind::kNumbers, true};
  const Field boxes = {
      kBoxesField, NumberType::kFloat32, {test::kMostObjects, 4}, FieldKind::kBoxes, true};
  const Experiment::Data data;
  for (const Fields& fields :
       {Fields{number}, Fields{image, number}, Fields{image, boxes, number}, Fields{image, flags},
        Fields{{kBoxesField, NumberType::kFloat32, {1}}, number}}) {
    const auto transforms = MakeTransforms({data, fields, "a set"});
    ASSERT_TRUE(transforms.ok()) << transforms.status().message();
    EXPECT_TRUE(transforms->empty());
  }
  EXPECT_EQ(MakeTransforms({data, Fields{image, boxes, flags}, "a set"})->size(), 1u);
}

// Through all steps of the augmentation the painted rectangle is where its box says, and where the
// mask says, to within a pixel.
TEST(DetectionTransformsTest, APaintedRectangleFollowsItsBoxThroughAllSteps) {
  const test::ObjectSet set(150, 1, 60);
  const Experiment::Data data = SsdData();
  const Transforms transforms = MakeTransforms({data, set.fields(), "a set"}).value();
  EXPECT_EQ(transforms.size(), 5u);
  Sample sample(set.fields());
  int seen = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    ASSERT_TRUE(ReadTransformed(set, transforms, {8, 3, i}, &sample).ok());
    ASSERT_THAT(sample.extents(0), testing::ElementsAre(3, 60, 60));
    const auto boxes = test::ValuesOf<Box>(sample, test::kObjectBoxes);
    if (boxes.empty()) continue;
    ASSERT_EQ(boxes.size(), 1u);
    const Box& box = boxes[0];
    ASSERT_TRUE(0 <= box.left && box.left < box.right && box.right <= 60);
    ASSERT_TRUE(0 <= box.top && box.top < box.bottom && box.bottom <= 60);
    std::vector<uint8_t> mask(sample.pixels(test::kObjectMask).begin(),
                              sample.pixels(test::kObjectMask).end());
    for (uint8_t& number : mask) number = number == 1 ? 255 : 0;
    if (box.right - box.left < 3 || box.bottom - box.top < 3) continue;
    ++seen;
    const PictureSize size = {60, 60};
    const Rectangle masked = test::AroundPainted(mask, size, 128);
    // Colours change: half of the brightest level of the painted rectangle.
    const auto plane = sample.pixels(0).first(60 * 60);
    const int brightest = *std::ranges::max_element(plane);
    const Rectangle painted = test::AroundPainted(plane, size, brightest / 2);
    for (const Rectangle& found : {masked, painted}) {
      EXPECT_NEAR(static_cast<double>(found.left), box.left, 1.01) << "sample " << i;
      EXPECT_NEAR(static_cast<double>(found.top), box.top, 1.01) << "sample " << i;
      EXPECT_NEAR(static_cast<double>(found.left + found.width), box.right, 1.01) << i;
      EXPECT_NEAR(static_cast<double>(found.top + found.height), box.bottom, 1.01) << i;
    }
  }
  EXPECT_GT(seen, 60);
}

TEST(DetectionTransformsTest, DrawsDependOnSeedEpochAndSampleAlone) {
  const test::ObjectSet set(12, 3);
  const Experiment::Data data = SsdData();
  const Transforms transforms = MakeTransforms({data, set.fields(), "a set"}).value();
  const Transforms again = MakeTransforms({data, set.fields(), "another name"}).value();
  Sample one(set.fields()), other(set.fields());
  int differ = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    ASSERT_TRUE(ReadTransformed(set, transforms, {1, 2, i}, &one).ok());
    ASSERT_TRUE(ReadTransformed(set, again, {1, 2, i}, &other).ok());
    for (int f = 0; f < std::ssize(set.fields()); ++f) {
      EXPECT_TRUE(std::ranges::equal(one.field(f), other.field(f)));
    }
    ASSERT_TRUE(ReadTransformed(set, transforms, {1, 3, i}, &other).ok());
    differ += std::ranges::equal(one.pixels(0), other.pixels(0)) ? 0 : 1;
    ASSERT_TRUE(ReadTransformed(set, transforms, {2, 2, i}, &other).ok());
    differ += std::ranges::equal(one.pixels(0), other.pixels(0)) ? 0 : 1;
  }
  EXPECT_GT(differ, 20);
}

}  // namespace
}  // namespace kumo
