// Synthetic digits: handwritten-looking images, to try everything without a download.
//
// Algorithm. Each image takes one of the styles of its digit, moves the knots, bends the whole by a
// smooth field, stretches, slants and rotates it, fits it into the 28 x 28 pixels as MNIST does
// (about 20 pixels high, centred), and draws it with a pen of varying width and pressure; then
// speckles, stray marks and noise are added. The sloppiness varies from image to image: most are
// easy, some are not.
//
// Image `index` of a set depends on (seed, split, index) alone, not on the thread or the order.
// (Across C libraries sin() may differ in its last bit, and so, rarely, a pixel by one.)
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace kumo {

constexpr int kDigitSide = 28;  // pixels
constexpr int kDigitPixels = kDigitSide * kDigitSide;

enum class DigitSplit : uint32_t { kTrain = 0, kValidation = 1 };

// Draws images [first, first + labels.size()), row by row, 0 (paper) to 255 (ink), and their digits
// on `threads` threads. Requires threads >= 1 and pixels.size() == labels.size() * kDigitPixels.
void DrawDigits(uint64_t seed, DigitSplit split, int64_t first, int threads,
                std::span<uint8_t> pixels, std::span<uint8_t> labels);

}  // namespace kumo
