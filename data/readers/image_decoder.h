// Image decoder: JPEG and PNG to pixels.
//
// Decoding takes no more memory than kMaxImagePixels need, whatever the bytes are. Owned and used
// by one thread; reuses its memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_header.h"
#include "data/samples/resample.h"

namespace kumo {

// Limit for one image; a photograph of 8192 x 8192.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

class ImageDecoder {
 public:
  // DataLoss if the format is unknown or the header damaged, InvalidArgument for unsupported
  // images: too many pixels, or unknown colours.
  static Result<ImageHeader> ReadHeader(std::span<const uint8_t> file);

  // Returns channels x height x width in the order red, green, blue, upright (image_header.h);
  // valid until the next call. `channels` is 1 or 3: grey is Y of ITU-R BT.601, and a grey image
  // gets three equal channels. The errors of ReadHeader; DataLoss also if a part of the image is
  // missing or damaged.
  Result<std::span<const uint8_t>> Decode(std::span<const uint8_t> file, int channels);
  // Decodes an image with this header (ReadHeader) to `pixels`, which has the right size.
  Status DecodeTo(std::span<const uint8_t> file, const ImageHeader& header, int channels,
                  std::span<uint8_t> pixels);
  // Decodes a mask to the classes of its pixels: what a PNG stores in grey of up to 8 bits, or its
  // indices of a palette. InvalidArgument for other images; the errors of Decode.
  Status DecodeMaskTo(std::span<const uint8_t> file, const ImageHeader& header,
                      std::span<uint8_t> classes);

 private:
  // As the image is stored.
  Status DecodeStored(std::span<const uint8_t> file, const ImageHeader& header, int channels,
                      std::span<uint8_t> pixels);

  std::vector<uint8_t> interleaved_;
  std::vector<uint8_t> stored_;
  std::vector<uint8_t> pixels_;
};

// Format of all images of a set.
struct ImageTarget {
  // channels, height, width; height and width are 0 if each image keeps its own size.
  std::vector<int64_t> extents;
  bool scale = false;  // scale images of other sizes instead of refusing them
  // Scaled images keep all of their content instead of their proportions.
  bool stretch = false;
  // For scaled images: 0, or the shorter side for MiddleOf, at least each wanted side.
  int64_t shorter_side = 0;
  // Masks, with one channel: scaled by nearest neighbour.
  bool mask = false;

  bool of_any_size() const { return extents[1] == 0; }
};

// Image maker: converts encoded images to the pixels of a set's samples. Owned and used by one
// thread; reuses its memory.
class ImageMaker {
 public:
  // Returns the image's header. DataLoss or InvalidArgument if the file is damaged or unsupported
  // (ImageDecoder); FailedPrecondition if it has another size and target.scale is not set. Requires
  // a target of one size.
  Result<ImageHeader> Make(std::span<const uint8_t> file, const ImageTarget& target,
                           std::span<uint8_t> pixels);

  ImageDecoder& decoder() { return decoder_; }

 private:
  ImageDecoder decoder_;
  Resampler resampler_;
  std::vector<uint8_t> mask_;
};

}  // namespace kumo
