// PNG files of colour images and of masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/pictures/drawing.h"

namespace kumo {

// The bytes of a PNG file.
Result<std::vector<std::byte>> EncodePng(const Canvas& canvas);
// Likewise of a mask of height x width classes: their numbers are indices of a palette with a
// colour for each (ColourOfClass); class 0 is black.
Result<std::vector<std::byte>> EncodeMaskPng(int64_t height, int64_t width,
                                             std::span<const uint8_t> classes);

// Write a PNG atomically. The errors of AtomicFile.
Status WritePng(const Canvas& canvas, const std::string& path);
Status WriteMaskPng(int64_t height, int64_t width, std::span<const uint8_t> classes,
                    const std::string& path);

}  // namespace kumo
