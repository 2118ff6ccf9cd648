// Draws handwritten-looking digits, so that everything can be tried without a download.
//
// Each image takes one of the styles of digit_strokes.h, moves its knots, bends the whole by a
// smooth field, stretches, slants and turns it, fits it into the 28 x 28 pixels as MNIST does
// (about 20 pixels high, centred) and draws it with a pen whose width and pressure vary; then come
// speckles, stray marks and noise on the ink. How sloppy the hand is differs from image to image:
// most are easy, some are not.
//
// Image `index` of a set depends on (seed, split, index) alone: it is the same whoever draws it, in
// whatever order, on however many threads. (Across C libraries sin() may differ in its last bit,
// and so, rarely, may a pixel by one.)
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace kumo {

constexpr int kDigitSide = 28;  // pixels
constexpr int kDigitPixels = kDigitSide * kDigitSide;

enum class DigitSplit : uint32_t { kTrain = 0, kValidation = 1 };

// Draws one image, row by row, 0 paper to 255 ink, and returns its digit. Requires pixels.size() ==
// kDigitPixels.
uint8_t DrawDigit(uint64_t seed, DigitSplit split, int64_t index, std::span<uint8_t> pixels);

// Draws images [first, first + labels.size()) on `threads` threads. Requires threads >= 1 and
// pixels.size() == labels.size() * kDigitPixels.
void DrawDigits(uint64_t seed, DigitSplit split, int64_t first, int threads,
                std::span<uint8_t> pixels, std::span<uint8_t> labels);

}  // namespace kumo
