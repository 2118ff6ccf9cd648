#include "data/pictures/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/printable.h"

namespace kumo {
namespace {

constexpr int64_t kGlyphWidth = 5;
constexpr int64_t kGlyphHeight = 7;

struct Glyph {
  char character;
  // From top to bottom; the highest of five bits is the leftmost pixel.
  std::array<uint8_t, kGlyphHeight> rows;
};

constexpr Glyph kGlyphs[] = {
    {'A', {0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}},
    {'B', {0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e}},
    {'C', {0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e}},
    {'D', {0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e}},
    {'E', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f}},
    {'F', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10}},
    {'G', {0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f}},
    {'H', {0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}},
    {'I', {0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'J', {0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c}},
    {'K', {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11}},
    {'L', {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f}},
    {'M', {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}},
    {'N', {0x11, 0x11, 0x19, 0x15, 0x13, 0x11, 0x11}},
    {'O', {0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}},
    {'P', {0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10}},
    {'Q', {0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d}},
    {'R', {0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11}},
    {'S', {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e}},
    {'T', {0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04}},
    {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}},
    {'V', {0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04}},
    {'W', {0x11, 0x11, 0x11, 0x15, 0x15, 0x15, 0x0a}},
    {'X', {0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11}},
    {'Y', {0x11, 0x11, 0x11, 0x0a, 0x04, 0x04, 0x04}},
    {'Z', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f}},
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}},
    {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}},
    {'3', {0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}},
    {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}},
    {'7', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'8', {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}},
    {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}},
    {'-', {0x00, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x00}},
    {'_', {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1f}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}},
    {':', {0x00, 0x0c, 0x0c, 0x00, 0x0c, 0x0c, 0x00}},
    {'%', {0x18, 0x19, 0x02, 0x04, 0x08, 0x13, 0x03}},
    {' ', {}},
    {'?', {0x0e, 0x11, 0x01, 0x02, 0x04, 0x00, 0x04}},
};

const Glyph& GlyphOf(char character) {
  if (character >= 'a' && character <= 'z') character = static_cast<char>(character - 'a' + 'A');
  const Glyph* const found = std::ranges::find(kGlyphs, character, &Glyph::character);
  return found == std::end(kGlyphs) ? *(std::end(kGlyphs) - 1) : *found;
}

// Black or white, whichever stands out more on a colour; luma as in ITU-R BT.601.
Colour LettersOn(const Colour& colour) {
  constexpr int kMiddle = 110'000;
  const int luma = 299 * colour[0] + 587 * colour[1] + 114 * colour[2];
  return luma < kMiddle ? Colour{255, 255, 255} : Colour{0, 0, 0};
}

void Fill(const Canvas& canvas, const Rectangle& part, const Colour& colour) {
  const int64_t top = std::max<int64_t>(0, part.top);
  const int64_t left = std::max<int64_t>(0, part.left);
  for (int64_t y = top; y < std::min(canvas.height, part.top + part.height); ++y) {
    for (int64_t x = left; x < std::min(canvas.width, part.left + part.width); ++x) {
      std::ranges::copy(colour, canvas.pixels.begin() + (y * canvas.width + x) * 3);
    }
  }
}

// Shorter side of an image whose lines and letters have their plain size.
constexpr int64_t kPlainSide = 250;

std::string LabelOf(const Detection& object, std::span<const std::string> class_names) {
  return NameOrNumber(class_names, object.class_index) + " " +
         std::to_string(std::lround(100 * object.score)) + "%";
}

}  // namespace

// Steps of the golden section around the circle of hues are far from all hues before.
Colour ColourOfClass(int64_t number) {
  constexpr int64_t kTurn = 1530;       // levels around the circle
  constexpr int64_t kGoldenStep = 946;  // kTurn * 0.618
  const int64_t hue = number * kGoldenStep % kTurn;
  const auto level = [hue](int64_t peak) {
    int64_t distance = std::abs(hue - peak);
    distance = std::min(distance, kTurn - distance);
    return static_cast<uint8_t>(std::clamp<int64_t>(510 - distance, 0, 255));
  };
  return {level(0), level(kTurn / 3), level(2 * kTurn / 3)};
}

void DrawBox(const Canvas& canvas, const Box& box, const Colour& colour, int64_t thickness) {
  const auto pixel = [](float place, int64_t extent) {
    const auto limit = static_cast<float>(extent);
    return static_cast<int64_t>(std::lround(std::clamp(place, 0.0f, limit)));
  };
  const int64_t left = pixel(box.left, canvas.width), right = pixel(box.right, canvas.width);
  const int64_t top = pixel(box.top, canvas.height), bottom = pixel(box.bottom, canvas.height);
  const int64_t across = std::min(thickness, right - left);
  const int64_t down = std::min(thickness, bottom - top);
  Fill(canvas, {top, left, down, right - left}, colour);
  Fill(canvas, {bottom - down, left, down, right - left}, colour);
  Fill(canvas, {top, left, bottom - top, across}, colour);
  Fill(canvas, {top, right - across, bottom - top, across}, colour);
}

void DrawLabel(const Canvas& canvas, int64_t top, int64_t left, std::string_view text,
               const Colour& colour, int64_t enlarged) {
  constexpr int64_t kAdvance = kGlyphWidth + 1;
  const Colour letters = LettersOn(colour);
  Fill(canvas, {top, left, kLabelHeight * enlarged, (std::ssize(text) * kAdvance + 1) * enlarged},
       colour);
  for (const char character : text) {
    const Glyph& glyph = GlyphOf(character);
    for (int64_t y = 0; y < kGlyphHeight; ++y) {
      for (int64_t x = 0; x < kGlyphWidth; ++x) {
        if ((glyph.rows[y] >> (kGlyphWidth - 1 - x) & 1) == 0) continue;
        Fill(canvas, {top + (1 + y) * enlarged, left + (1 + x) * enlarged, enlarged, enlarged},
             letters);
      }
    }
    left += kAdvance * enlarged;
  }
}

void DrawObjects(const Canvas& canvas, std::span<const Detection> objects,
                 std::span<const std::string> class_names) {
  const int64_t enlarged =
      std::max<int64_t>(1, (std::min(canvas.height, canvas.width) + kPlainSide / 2) / kPlainSide);
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    const Colour colour = ColourOfClass(object->class_index);
    DrawBox(canvas, object->box, colour, 2 * enlarged);
    const auto corner = [&](float place, int64_t last) {
      const auto limit = static_cast<float>(std::max<int64_t>(0, last));
      return static_cast<int64_t>(std::lround(std::clamp(place, 0.0f, limit)));
    };
    DrawLabel(canvas, corner(object->box.top, canvas.height - kLabelHeight * enlarged),
              corner(object->box.left, canvas.width - 1), LabelOf(*object, class_names), colour,
              enlarged);
  }
}

void DrawMask(const Canvas& canvas, const Rectangle& part, std::span<const uint8_t> mask) {
  for (int64_t y = 0; y < part.height; ++y) {
    for (int64_t x = 0; x < part.width; ++x) {
      const uint8_t number = mask[y * part.width + x];
      if (number == 0) continue;
      const Colour colour = number == kIgnoredClass ? Colour{} : ColourOfClass(number - 1);
      uint8_t* const pixel =
          canvas.pixels.data() + ((part.top + y) * canvas.width + part.left + x) * 3;
      for (size_t c = 0; c < colour.size(); ++c) {
        pixel[c] = static_cast<uint8_t>((pixel[c] + colour[c]) / 2);
      }
    }
  }
}

}  // namespace kumo
