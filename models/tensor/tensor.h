// Shape of an activation, and the names of one training step's random streams: the types that all
// rooms of models/ share. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace kumo {

// The extents of one sample's numbers: its channels, then the positions that each channel has a
// number at, of any rank: a vector is {n}, a sequence {channels, length}, an image {channels,
// height, width}. Extents of 1 at the end are left out, so a vector is also an image of one pixel.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::vector<int64_t>(extents)) {}
  // No extents: one number.
  explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {
    if (extents_.empty()) extents_.push_back(1);
    while (extents_.size() > 1 && extents_.back() == 1) extents_.pop_back();
  }

  const std::vector<int64_t>& extents() const { return extents_; }
  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t extent(int axis) const { return axis < rank() ? extents_[axis] : 1; }
  int64_t channels() const { return extents_.empty() ? 0 : extents_[0]; }
  // Height and width of an image.
  int64_t height() const { return extent(1); }
  int64_t width() const { return extent(2); }
  // Positions.
  int64_t plane() const {
    int64_t positions = 1;
    for (int axis = 1; axis < rank(); ++axis) positions *= extents_[axis];
    return positions;
  }
  int64_t size() const { return channels() * plane(); }
  // The same positions with other channels.
  Shape WithChannels(int64_t channels) const {
    std::vector<int64_t> extents = extents_;
    extents[0] = channels;
    return Shape(std::move(extents));
  }
  std::string ToString() const {
    std::string text = std::to_string(channels());
    for (int axis = 1; axis < rank(); ++axis) text += "x" + std::to_string(extents_[axis]);
    return text;
  }
  bool operator==(const Shape&) const = default;
  // Whether a sample of the other shape can stand for one of this: the same, or both are vectors of
  // as many numbers, whichever axis they lie along.
  bool Takes(const Shape& other) const {
    return *this == other || (IsVector() && other.IsVector() && size() == other.size());
  }

 private:
  bool IsVector() const {
    return std::ranges::count_if(extents_, [](int64_t extent) { return extent > 1; }) <= 1;
  }

  std::vector<int64_t> extents_;
};

// Name of the random streams of one training step. Every worker that computes step `step` of round
// `round` of partition `partition` draws the same numbers.
struct StepStreams {
  uint64_t seed = 0;
  uint64_t partition = 0;
  uint64_t round = 0;
  uint64_t step = 0;  // of the round, counted from 0
};

}  // namespace kumo
