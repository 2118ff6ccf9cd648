// Boxes beside direct, slow definitions.
#include "common/detection/boxes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

// SSD300 of the paper.
const std::vector<BoxGrid> kSsd300 = {{38, 38, 8, 30, 60, {2}},       {19, 19, 16, 60, 111, {2, 3}},
                                      {10, 10, 32, 111, 162, {2, 3}}, {5, 5, 64, 162, 213, {2, 3}},
                                      {3, 3, 100, 213, 264, {2}},     {1, 1, 300, 264, 315, {2}}};

Box RandomBox(Rng* rng) {
  const float left = rng->NextUniform(-20, 300), top = rng->NextUniform(-20, 300);
  const float size = rng->NextUniform(0, 1) < 0.5f ? 40 : 200;
  return {left, top, left + rng->NextUniform(0, size), top + rng->NextUniform(0, size)};
}

TEST(Boxes, OverlapIsThatOfPixelsCounted) {
  Rng rng(1, RngPurpose::kTest);
  const auto side = [&] { return static_cast<float>(rng.NextBelow(12)); };
  for (int i = 0; i < 1000; ++i) {
    std::vector<Box> boxes;
    for (int b = 0; b < 2; ++b) {
      const float left = side(), top = side();
      boxes.push_back({left, top, left + side(), top + side()});
    }
    int both = 0, any = 0;
    for (int y = 0; y < 24; ++y) {
      for (int x = 0; x < 24; ++x) {
        const auto in = [&](const Box& box) {
          return x >= static_cast<int>(box.left) && x < static_cast<int>(box.right) &&
                 y >= static_cast<int>(box.top) && y < static_cast<int>(box.bottom);
        };
        both += in(boxes[0]) && in(boxes[1]) ? 1 : 0;
        any += in(boxes[0]) || in(boxes[1]) ? 1 : 0;
      }
    }
    const float expected = any == 0 ? 0 : static_cast<float>(both) / static_cast<float>(any);
    EXPECT_FLOAT_EQ(IntersectionOverUnion(boxes[0], boxes[1]), expected);
    EXPECT_EQ(IntersectionOverUnion(boxes[0], boxes[1]), IntersectionOverUnion(boxes[1], boxes[0]));
  }
}

TEST(Boxes, DefaultBoxesOfSsd300AreThePublished) {
  const std::vector<Box> boxes = DefaultBoxes(kSsd300);
  ASSERT_EQ(boxes.size(), 8732u);
  EXPECT_EQ(boxes[0], (Box{4 - 15, 4 - 15, 4 + 15, 4 + 15})) << "not clipped to the picture";
  // The second box of the second cell in the first row.
  const Box second = boxes[38 * 38 + 1];
  EXPECT_FLOAT_EQ(second.left, 12 - std::sqrt(30.0f * 60.0f) / 2);
  EXPECT_FLOAT_EQ(second.bottom, 4 + std::sqrt(30.0f * 60.0f) / 2);
  const Box wide = boxes[2 * 38 * 38];
  EXPECT_FLOAT_EQ(wide.width(), 30 * std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(wide.height(), 30 / std::sqrt(2.0f));
  const Box last = boxes.back();
  EXPECT_FLOAT_EQ(last.height(), 264 * std::sqrt(2.0f));
  EXPECT_FLOAT_EQ((last.left + last.right) / 2, 150);
}

// Grid by grid, box by box of a cell, row by row, column by column.
std::vector<Box> BoxesByTheDefinition(const std::vector<BoxGrid>& grids) {
  std::vector<Box> boxes;
  for (const BoxGrid& grid : grids) {
    const double size = double{grid.size};
    const double middle = std::sqrt(size * double{grid.next_size});
    std::vector<std::pair<double, double>> sizes = {{size, size}, {middle, middle}};
    for (const float ratio : grid.ratios) {
      const double root = std::sqrt(double{ratio});
      sizes.emplace_back(size * root, size / root);
      sizes.emplace_back(size / root, size * root);
    }
    for (const auto& [width, height] : sizes) {
      for (int64_t row = 0; row < grid.rows; ++row) {
        for (int64_t column = 0; column < grid.columns; ++column) {
          const double x = (static_cast<double>(column) + 0.5) * double{grid.step};
          const double y = (static_cast<double>(row) + 0.5) * double{grid.step};
          boxes.push_back({static_cast<float>(x - width / 2), static_cast<float>(y - height / 2),
                           static_cast<float>(x + width / 2), static_cast<float>(y + height / 2)});
        }
      }
    }
  }
  return boxes;
}

TEST(Boxes, DefaultBoxesAreThoseOfTheDefinitionOfAnyGrids) {
  Rng rng(4, RngPurpose::kTest);
  for (int i = 0; i < 500; ++i) {
    std::vector<BoxGrid> grids = kSsd300;
    if (i > 0) {
      grids.resize(1 + rng.NextBelow(4));
      for (BoxGrid& grid : grids) {
        grid = {1 + static_cast<int64_t>(rng.NextBelow(9)),
                1 + static_cast<int64_t>(rng.NextBelow(9)), rng.NextUniform(1, 100),
                rng.NextUniform(1, 300), rng.NextUniform(1, 300)};
        grid.ratios.resize(rng.NextBelow(4));
        for (float& ratio : grid.ratios) ratio = rng.NextUniform(1, 4);
      }
    }
    const std::vector<Box> found = DefaultBoxes(grids), expected = BoxesByTheDefinition(grids);
    ASSERT_EQ(found.size(), expected.size()) << i;
    for (size_t b = 0; b < found.size(); ++b) {
      ASSERT_NEAR(found[b].left, expected[b].left, 1e-3) << i << ", box " << b;
      ASSERT_NEAR(found[b].top, expected[b].top, 1e-3) << i << ", box " << b;
      ASSERT_NEAR(found[b].right, expected[b].right, 1e-3) << i << ", box " << b;
      ASSERT_NEAR(found[b].bottom, expected[b].bottom, 1e-3) << i << ", box " << b;
    }
  }
}

// The definition: all pairs of the table, the largest first.
std::vector<int32_t> MatchesByTheTable(const std::vector<Box>& defaults,
                                       const std::vector<Box>& objects, float threshold) {
  std::vector<int32_t> matches(defaults.size(), kNoObject);
  std::set<size_t> objects_done;
  while (objects_done.size() < objects.size()) {
    float most = 0;
    size_t object = 0, box = 0;
    for (size_t o = 0; o < objects.size(); ++o) {
      for (size_t d = 0; d < defaults.size(); ++d) {
        if (objects_done.contains(o) || matches[d] != kNoObject) continue;
        const float overlap = IntersectionOverUnion(defaults[d], objects[o]);
        if (overlap <= most) continue;
        most = overlap;
        object = o;
        box = d;
      }
    }
    if (most <= 1e-6f) break;
    matches[box] = static_cast<int32_t>(object);
    objects_done.insert(object);
  }
  for (size_t d = 0; d < defaults.size(); ++d) {
    if (matches[d] != kNoObject) continue;
    std::vector<float> overlaps;
    for (const Box& object : objects)
      overlaps.push_back(IntersectionOverUnion(defaults[d], object));
    const auto most = std::ranges::max_element(overlaps);
    if (most == overlaps.end() || *most < threshold || *most <= 0) continue;
    matches[d] = static_cast<int32_t>(most - overlaps.begin());
  }
  return matches;
}

TEST(Boxes, MatchingIsThatOfTheWholeTable) {
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 10000; ++i) {
    std::vector<Box> defaults, objects;
    const auto count = rng.NextBelow(12);
    for (uint64_t d = 0; d < count; ++d) defaults.push_back(RandomBox(&rng));
    for (uint64_t o = rng.NextBelow(7); o > 0; --o) {
      // Often the same box twice, or one without area.
      if (!objects.empty() && rng.NextBelow(4) == 0) {
        objects.push_back(objects.back());
      } else {
        objects.push_back(RandomBox(&rng));
      }
      if (rng.NextBelow(8) == 0) objects.back().right = objects.back().left;
    }
    const float threshold = rng.NextBelow(2) == 0 ? 0.5f : 0.1f;
    std::vector<int32_t> matches(defaults.size());
    MatchBoxes(defaults, objects, threshold, matches);
    ASSERT_EQ(matches, MatchesByTheTable(defaults, objects, threshold)) << i;
  }
}

TEST(Boxes, AnObjectWithoutAreaMatchesNothingAndADecodedBoxIsTheCodedOne) {
  const std::vector<Box> defaults = DefaultBoxes(kSsd300);
  std::vector<int32_t> matches(defaults.size());
  const Box flat[] = {{50, 50, 50, 90}};
  MatchBoxes(defaults, flat, 0.5f, matches);
  EXPECT_EQ(std::ranges::count(matches, kNoObject), std::ssize(defaults));
  Rng rng(3, RngPurpose::kTest);
  for (int i = 0; i < 1000; ++i) {
    Box box = RandomBox(&rng);
    box.right += 1;
    box.bottom += 1;
    const Box& of = defaults[rng.NextBelow(defaults.size())];
    const Box back = DecodeBox(EncodeBox(box, of), of);
    EXPECT_NEAR(back.left, box.left, 1e-2f);
    EXPECT_NEAR(back.top, box.top, 1e-2f);
    EXPECT_NEAR(back.right, box.right, 1e-2f);
    EXPECT_NEAR(back.bottom, box.bottom, 1e-2f);
  }
}

}  // namespace
}  // namespace kumo
