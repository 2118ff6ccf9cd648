// Boxes of objects in a picture, and the default boxes of a detector with their matching and
// coding (Liu et al. 2016, "SSD: Single Shot MultiBox Detector", arXiv 1512.02325).
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kumo {

// In pixels of the picture; left <= right, top <= bottom.
struct Box {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;

  float width() const { return right - left; }
  float height() const { return bottom - top; }
  float area() const { return width() * height(); }
  bool operator==(const Box&) const = default;
};

bool IsFinite(const Box& box);
// Area of the intersection over area of the union; 0 if both areas are 0.
float IntersectionOverUnion(const Box& a, const Box& b);
// The share of a box's area that lies in another one; 0 if it has none.
float ShareInside(const Box& box, const Box& other);

// Default boxes of one map of a detector. Each cell of the grid has 2 + 2 x ratios boxes around its
// centre: a square of `size`, a square of sqrt(size x next_size), and for each ratio r a wide one
// (size sqrt(r) x size / sqrt(r)) and a tall one.
struct BoxGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  float step = 0;  // pixels between the centres of two cells
  float size = 0;  // pixels
  float next_size = 0;
  std::vector<float> ratios = {};  // above 1

  int64_t boxes_per_cell() const { return 2 + 2 * std::ssize(ratios); }
  int64_t boxes() const { return rows * columns * boxes_per_cell(); }
  bool operator==(const BoxGrid&) const = default;
};

// The default boxes, not clipped to the picture: grid by grid, box by box of a cell, row by row,
// column by column.
std::vector<Box> DefaultBoxes(std::span<const BoxGrid> grids);

// Divisors of BoxOffsets.
inline constexpr float kCentreVariance = 0.1f;
inline constexpr float kSizeVariance = 0.2f;

// Value of MatchBoxes: a default box without object.
inline constexpr int32_t kNoObject = -1;

// Objects of an image that a detector's loss matches, the first ones: their number bounds the work
// of MatchBoxes.
inline constexpr int32_t kMostMatchedObjects = 4096;

// The object of each default box. First the pairs of an object and a default box of the largest
// overlap, greedily, each object and each default box once, until the overlap is 1e-6 or less; then
// for each default box left over the object of the largest overlap, if that is at least
// `threshold`. Of equal overlaps the first object and the first default box count.
void MatchBoxes(std::span<const Box> defaults, std::span<const Box> objects, float threshold,
                std::span<int32_t> matches);

// Offsets of a box from a default box, as a network predicts them: the distance of the centres
// (x, y) in sizes of the default box, divided by kCentreVariance, and the logarithm of the ratio of
// the sizes (width, height), divided by kSizeVariance.
struct BoxOffsets {
  float x = 0;
  float y = 0;
  float width = 0;
  float height = 0;
};
BoxOffsets EncodeBox(const Box& box, const Box& of);
Box DecodeBox(const BoxOffsets& offsets, const Box& of);

}  // namespace kumo
