// The few words that the rooms of models/ share: the shape of an activation, and what names the
// random streams of one training step. Values.
#pragma once

#include <cstdint>
#include <string>

namespace kumo {

// The extents of one sample. A vector of n numbers is n x 1 x 1.
struct Shape {
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;

  int64_t size() const { return channels * height * width; }
  int64_t plane() const { return height * width; }
  std::string ToString() const {
    if (plane() == 1) return std::to_string(channels);
    return std::to_string(channels) + "x" + std::to_string(height) + "x" + std::to_string(width);
  }
  bool operator==(const Shape&) const = default;
};

// Names the random streams of one training step. Whoever computes partition `partition`'s step
// `step` of round `round` draws the same numbers.
struct StepStreams {
  uint64_t seed = 0;
  uint64_t partition = 0;
  uint64_t round = 0;
  uint64_t step = 0;  // of the round, counted from 0
};

// Sums over a minibatch, so that they can be added up.
struct StepResult {
  double loss_sum = 0;
  int64_t correct = 0;
};

}  // namespace kumo
