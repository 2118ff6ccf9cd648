// JPEG decoder, by libjpeg-turbo.
//
// A fault of the file counts as damage only if pixels are lost: data that are missing or cannot be
// decoded. Other faults of a file, such as a wrong version number, bytes between two markers, or a
// missing end marker behind the last row, change no pixel and are passed over.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "data/readers/image_header.h"

namespace kumo {

// DataLoss if the header is damaged or there is no image; InvalidArgument if the colours are
// unknown.
Result<ImageHeader> ReadJpegHeader(std::span<const uint8_t> file);

// Decodes an image with this header, as it is stored, to bytes of grey, or of red, green and blue
// in turn. CMYK becomes red = (1 - cyan)(1 - black) and so on, never grey. DataLoss if a part of
// the image is missing or damaged. Requires the right number of pixels.
Status DecodeJpeg(std::span<const uint8_t> file, const ImageHeader& header, bool grey,
                  std::span<uint8_t> pixels);

}  // namespace kumo
