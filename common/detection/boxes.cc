#include "common/detection/boxes.h"

#include <algorithm>
#include <cmath>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr float kLeastOverlap = 1e-6f;

Box Around(float x, float y, float width, float height) {
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

// Area; 0 without one.
float Intersection(const Box& a, const Box& b) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

}  // namespace

bool IsFinite(const Box& box) {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) &&
         std::isfinite(box.bottom);
}

float IntersectionOverUnion(const Box& a, const Box& b) {
  const float both = Intersection(a, b);
  return both > 0 ? both / (a.area() + b.area() - both) : 0;
}

float ShareInside(const Box& box, const Box& other) {
  const float both = Intersection(box, other);
  return both > 0 ? both / box.area() : 0;
}

std::vector<Box> DefaultBoxes(std::span<const BoxGrid> grids) {
  std::vector<Box> boxes;
  for (const BoxGrid& grid : grids) {
    std::vector<std::pair<float, float>> sizes;  // widths and heights
    const float between = std::sqrt(grid.size * grid.next_size);
    sizes.emplace_back(grid.size, grid.size);
    sizes.emplace_back(between, between);
    for (const float ratio : grid.ratios) {
      const float root = std::sqrt(ratio);
      sizes.emplace_back(grid.size * root, grid.size / root);
      sizes.emplace_back(grid.size / root, grid.size * root);
    }
    for (const auto& [width, height] : sizes) {
      for (int64_t row = 0; row < grid.rows; ++row) {
        for (int64_t column = 0; column < grid.columns; ++column) {
          boxes.push_back(Around((static_cast<float>(column) + 0.5f) * grid.step,
                                 (static_cast<float>(row) + 0.5f) * grid.step, width, height));
        }
      }
    }
  }
  return boxes;
}

// The best default box of an object changes only when another object takes it, so a round of the
// greedy search looks at the objects' best boxes alone.
void MatchBoxes(std::span<const Box> defaults, std::span<const Box> objects, float threshold,
                std::span<int32_t> matches) {
  CHECK_EQ(matches.size(), defaults.size());
  std::ranges::fill(matches, kNoObject);
  struct Best {
    float overlap = 0;
    int64_t box = -1;
  };
  const auto best_of = [&](const Box& object) {
    Best best;
    for (size_t d = 0; d < defaults.size(); ++d) {
      if (matches[d] != kNoObject) continue;
      const float overlap = IntersectionOverUnion(defaults[d], object);
      if (overlap > best.overlap) best = {overlap, static_cast<int64_t>(d)};
    }
    return best;
  };
  std::vector<Best> best;
  for (const Box& object : objects) best.push_back(best_of(object));
  for (size_t round = 0; round < objects.size(); ++round) {
    const auto most = std::ranges::max_element(best, {}, &Best::overlap);
    if (most->overlap <= kLeastOverlap) break;
    const int64_t box = most->box;
    matches[box] = static_cast<int32_t>(most - best.begin());
    *most = {};
    for (size_t o = 0; o < objects.size(); ++o) {
      if (best[o].box == box) best[o] = best_of(objects[o]);
    }
  }
  for (size_t d = 0; d < defaults.size(); ++d) {
    if (matches[d] != kNoObject) continue;
    float most = 0;
    for (size_t o = 0; o < objects.size(); ++o) {
      const float overlap = IntersectionOverUnion(defaults[d], objects[o]);
      if (overlap < threshold || overlap <= most) continue;
      most = overlap;
      matches[d] = static_cast<int32_t>(o);
    }
  }
}

BoxOffsets EncodeBox(const Box& box, const Box& of) {
  const auto centre = [](float low, float high) { return (low + high) / 2; };
  return {(centre(box.left, box.right) - centre(of.left, of.right)) / of.width() / kCentreVariance,
          (centre(box.top, box.bottom) - centre(of.top, of.bottom)) / of.height() / kCentreVariance,
          std::log(box.width() / of.width()) / kSizeVariance,
          std::log(box.height() / of.height()) / kSizeVariance};
}

Box DecodeBox(const BoxOffsets& offsets, const Box& of) {
  return Around((of.left + of.right) / 2 + offsets.x * kCentreVariance * of.width(),
                (of.top + of.bottom) / 2 + offsets.y * kCentreVariance * of.height(),
                of.width() * std::exp(offsets.width * kSizeVariance),
                of.height() * std::exp(offsets.height * kSizeVariance));
}

}  // namespace kumo
