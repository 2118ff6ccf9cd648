// How each digit is written by hand: a few styles, each a list of pen strokes.
//
// Constant data; thread-safe.
#pragma once

#include <span>

namespace kumo {

// A point that the pen passes: (0, 0) is the digit's upper left, (1, 1) its lower right corner. The
// pen turns round smoothly at a knot, at a corner on the spot.
struct Knot {
  float x;
  float y;
  bool corner = false;
};

using Stroke = std::span<const Knot>;

// The strokes of one way to write a digit.
using DigitStyle = std::span<const Stroke>;

// The styles of `digit`, none empty. Requires 0 <= digit <= 9.
std::span<const DigitStyle> DigitStyles(int digit);

}  // namespace kumo
