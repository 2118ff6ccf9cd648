#include "data/program/contact_sheet.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/pictures/drawing.h"
#include "data/pictures/png_file.h"
#include "data/readers/image_decoder.h"
#include "data/samples/dataset.h"
#include "tests/data/test_files.h"
#include "tests/data/transforms/object_set.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

Datasets OneSet(const std::vector<int64_t>& extents, int classes, std::vector<int32_t> labels) {
  Datasets sets;
  std::vector<uint8_t> pixels;
  for (size_t i = 0; i < labels.size(); ++i) {
    pixels.insert(pixels.end(), extents[0] * extents[1] * extents[2], static_cast<uint8_t>(i));
  }
  sets.train = std::make_unique<MemoryDataset>("some", extents, classes, std::move(pixels),
                                               std::move(labels));
  return sets;
}

TEST(ContactSheetTest, RowsAreClassesAndGreyIsGrey) {
  const auto sheet = DrawContactSheet(OneSet({1, 64, 64}, 2, {1, 0, 1, 1}), 1, 2);
  ASSERT_TRUE(sheet.ok());
  ASSERT_EQ(sheet->height, 2 + 2 * 66);
  ASSERT_EQ(sheet->width, 2 + 2 * 66);
  const auto at = [&](int64_t y, int64_t x) {
    const uint8_t* rgb = sheet->pixels.data() + (y * sheet->width + x) * 3;
    return std::vector<int>{rgb[0], rgb[1], rgb[2]};
  };
  EXPECT_THAT(at(30, 30), testing::Each(1)) << "class 0 has the second sample";
  EXPECT_THAT(at(30, 96), testing::Each(255)) << "and no other";
  EXPECT_THAT(at(96, 30), testing::Each(0));
  EXPECT_THAT(at(96, 96), testing::Each(2)) << "class 1 has one more than there is room for";
  EXPECT_THAT(at(0, 0), testing::Each(255));
}

TEST(ContactSheetTest, NeitherLargeImagesNorManyClassesMakeItLarge) {
  const auto large = DrawContactSheet(OneSet({3, 1000, 500}, 2, {0, 1}), 1, 1);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->height, 2 + 2 * 258);
  EXPECT_EQ(large->width, 2 + 130);
  const auto many = DrawContactSheet(OneSet({1, 64, 64}, 100000, {5, 99999}), 1, 1);
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(many->height, 2 + kMostSheetRows * 66);
}

TEST(ContactSheetTest, SamplesWithObjectsHaveBoxesNamesAndTints) {
  auto set = std::make_unique<test::ObjectSet>(7, 1, 64);
  const test::ObjectSet& objects = *set;
  Experiment::Data data;
  data.image_size = "3x96x96";
  Datasets sets;
  sets.transforms = MakeTransforms({data, set->fields(), "a set"}).value();
  sets.train = std::move(set);
  const auto sheet = DrawContactSheet(sets, 1, 3);
  ASSERT_TRUE(sheet.ok()) << sheet.status().message();
  ASSERT_EQ(sheet->width, 2 + 3 * 98);
  ASSERT_EQ(sheet->height, 2 + 3 * 98) << "in the order of the set";
  const auto at = [&](int64_t y, int64_t x) {
    const uint8_t* rgb = sheet->pixels.data() + (y * sheet->width + x) * 3;
    return Colour{rgb[0], rgb[1], rgb[2]};
  };
  for (int64_t i = 0; i < 7; ++i) {
    const auto [height, width] = objects.SizeOf(i);
    GeometricMap map;
    map.from = {0, 0, height, width};
    map.size = {96, 96};
    const Box box = MovedBox(map, test::ObjectSet::BoxOf(objects.ObjectsOf(i)[0].place));
    const int64_t top = 2 + i / 3 * 98, left = 2 + i % 3 * 98;
    const auto middle = static_cast<int64_t>((box.top + box.bottom) / 2);
    const auto edge = static_cast<int64_t>(std::lround(box.right)) - 1;
    EXPECT_EQ(at(top + middle, left + edge), ColourOfClass(0)) << "sample " << i;
    const auto below = static_cast<int64_t>(std::lround(box.bottom)) - 5;
    const auto inside = static_cast<int64_t>((box.left + box.right) / 2);
    const int half = (test::kPainted + ColourOfClass(0)[0]) / 2;
    EXPECT_EQ(at(top + below, left + inside)[0], half) << "the tint of sample " << i;
  }
  EXPECT_THAT(at(2 + 2 * 98 + 40, 2 + 98 + 40), testing::Each(255)) << "there is no eighth";
}

TEST(ContactSheetTest, ThePngHasItsPixels) {
  const test::ScratchDirectory scratch;
  auto sheet = DrawContactSheet(OneSet({3, 64, 64}, 2, {0, 1}), 1, 1);
  ASSERT_TRUE(sheet.ok());
  ASSERT_TRUE(WritePng(sheet->canvas(), scratch / "sheet.png").ok());
  ImageDecoder decoder;
  const auto decoded = decoder.Decode(test::ReadFile(scratch / "sheet.png"), 1);
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size() * 3, sheet->pixels.size());
  for (size_t i = 0; i < decoded->size(); ++i) EXPECT_EQ((*decoded)[i], sheet->pixels[3 * i]);
}

}  // namespace
}  // namespace kumo
