// JPEG and PNG into pixels.
//
// Whatever the bytes are, decoding takes no more memory than kMaxImagePixels need. Owned and used
// by one thread, which decodes image after image with the same memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// Of an image; a photograph of 8192 x 8192.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// What an image's header says.
struct ImageHeader {
  int channels = 0;  // as stored: 1 of grey, 3 of colour; transparency is none
  int64_t height = 0;
  int64_t width = 0;
};

class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // DataLoss where the bytes begin like no image or the header is damaged, InvalidArgument for
  // images that cannot be taken: too many pixels, or CMYK.
  Result<ImageHeader> ReadHeader(std::span<const uint8_t> file);

  // channels x height x width, the channels in the order red, green, blue; valid until the next
  // call. `channels` is 1 or 3: grey is Y of ITU-R BT.601, and a grey image has three equal
  // channels. Errors as ReadHeader's; DataLoss also where a part of the image is missing or
  // damaged.
  Result<std::span<const uint8_t>> Decode(std::span<const uint8_t> file, int channels);
  // The same, of an image with this header (ReadHeader), to `pixels`. Requires as many.
  Status DecodeTo(std::span<const uint8_t> file, const ImageHeader& header, int channels,
                  std::span<uint8_t> pixels);

 private:
  Status DecodeJpeg(std::span<const uint8_t> file, const ImageHeader& header, int channels,
                    std::span<uint8_t> pixels);
  Status JpegDamaged(const std::string& what);
  Status DecodePng(std::span<const uint8_t> file, const ImageHeader& header, int channels,
                   std::span<uint8_t> pixels);

  struct CloseJpeg {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, CloseJpeg> jpeg_;
  std::vector<uint8_t> interleaved_;
  std::vector<uint8_t> pixels_;
};

}  // namespace kumo
