// Drawing on colour images: boxes of objects with the names of their classes, and masks as a tint.
//
// Pure functions; parts outside the image are left out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/detection/detections.h"
#include "data/samples/resample.h"
#include "data/transforms/geometry.h"

namespace kumo {

// Borrowed pixels, height x width x 3 (red, green, blue).
struct Canvas {
  int64_t height = 0;
  int64_t width = 0;
  std::span<uint8_t> pixels;
};

using Colour = std::array<uint8_t, 3>;

// Bright colours that differ most for the first classes. Requires number >= 0.
Colour ColourOfClass(int64_t number);

// A frame of `thickness` pixels inside the box.
void DrawBox(const Canvas& canvas, const Box& box, const Colour& colour, int64_t thickness);

// Capital letters, digits and - _ . : % of 5 x 7 pixels, in black or white on a label of the
// colour; small letters become capital ones, and other characters question marks. (top, left): the
// corner of the label. All of it is enlarged by a factor.
inline constexpr int64_t kLabelHeight = 9;
void DrawLabel(const Canvas& canvas, int64_t top, int64_t left, std::string_view text,
               const Colour& colour, int64_t enlarged = 1);

// Draws each object's box in the colour of its class, with the class's name, or its number without
// one, and the score in percent; better ones over worse ones. Lines and letters grow with the
// canvas.
void DrawObjects(const Canvas& canvas, std::span<const Detection> objects,
                 std::span<const std::string> class_names);

// Blends a part of the canvas half and half with the colours of the classes of a mask of its size.
// Class 0, the background, stays; ignored pixels (kIgnoredClass) are darkened.
void DrawMask(const Canvas& canvas, const Rectangle& part, std::span<const uint8_t> mask);

}  // namespace kumo
