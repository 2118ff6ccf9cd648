#include "data/finders/found_dataset.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/settings/experiment.h"

namespace kumo {
namespace {

ImageSizes ColourImages(int64_t height, int64_t width, bool equal = true) {
  return {.first = {3, height, width},
          .equal = equal,
          .colour = true,
          .shorter_side = std::min(height, width)};
}

TEST(FoundDataset, NamesTellTheSet) {
  EXPECT_EQ(PartIn("Train.csv"), NamedPart::kTraining);
  EXPECT_EQ(PartIn("validation"), NamedPart::kValidation);
  EXPECT_EQ(PartIn("t10k-images"), NamedPart::kValidation);
  EXPECT_EQ(PartIn("TEST"), NamedPart::kValidation);
  EXPECT_EQ(PartIn("images"), NamedPart::kNone);
  // "train" counts first.
  EXPECT_EQ(PartIn("train_val"), NamedPart::kTraining);
}

TEST(FoundDataset, EqualSmallImagesKeepTheirSize) {
  Experiment::Data data;
  SetImageSize(ColourImages(64, 48), /*on_demand=*/true, &data);
  EXPECT_EQ(data.image_size, "");
  EXPECT_EQ(data.crop_pad, 6);
  EXPECT_TRUE(data.flip);
}

TEST(FoundDataset, OtherImagesAreScaledToTheNextSmallerSide) {
  for (const auto& [side, expected] : std::vector<std::pair<int64_t, std::string>>{
           {500, "3x96x96"}, {80, "3x64x64"}, {20, "3x20x20"}}) {
    Experiment::Data data;
    SetImageSize(ColourImages(side, side, /*equal=*/false), /*on_demand=*/false, &data);
    EXPECT_EQ(data.image_size, expected);
  }
}

TEST(FoundDataset, ImagesWithMasksHaveSidesThatAUNetTakes) {
  for (const auto& [height, width, expected] :
       std::vector<std::tuple<int64_t, int64_t, std::string>>{
           {64, 96, ""}, {60, 96, "3x32x32"}, {375, 500, "3x128x128"}}) {
    Experiment::Data data;
    SetMaskedImageSize(ColourImages(height, width), &data);
    EXPECT_EQ(data.image_size, expected);
    EXPECT_EQ(data.resize == ResizeMode::kStretch, !expected.empty());
  }
}

}  // namespace
}  // namespace kumo
