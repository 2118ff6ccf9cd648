#include "data/readers/image_decoder.h"

#include <spng.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <glog/logging.h>

#include "common/job/fields.h"
#include "data/readers/jpeg_decoder.h"
#include "data/samples/pixel_kernels.h"

namespace kumo {

namespace {

constexpr std::array<uint8_t, 3> kJpegStart = {0xff, 0xd8, 0xff};
constexpr std::array<uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool StartsWith(std::span<const uint8_t> file, std::span<const uint8_t> start) {
  return file.size() >= start.size() && std::ranges::equal(file.first(start.size()), start);
}

Status CheckSize(const ImageHeader& header) {
  if (header.height * header.width <= kMaxImagePixels) return OkStatus();
  return InvalidArgument(std::to_string(header.height) + " x " + std::to_string(header.width) +
                         " pixels exceed the limit of " + std::to_string(kMaxImagePixels) +
                         "; reduce the image");
}

struct FreeDecoder {
  void operator()(spng_ctx* png) const { spng_ctx_free(png); }
};
using Png = std::unique_ptr<spng_ctx, FreeDecoder>;

Status PngDamaged(int code) {
  return DataLoss(std::string("the PNG is damaged (") + spng_strerror(code) + ")");
}

// A PNG decoder that has read the header.
Result<Png> OpenPng(std::span<const uint8_t> file, spng_ihdr* header) {
  Png png(spng_ctx_new(0));
  if (png == nullptr) return ResourceExhausted("no memory to decode a PNG");
  // Sizes with too large a product are reported with their numbers by CheckSize.
  spng_set_image_limits(png.get(), 1 << 30, 1 << 30);
  // Limits the memory for comments and profiles, which are ignored.
  spng_set_chunk_limits(png.get(), 1 << 20, 4 << 20);
  int code = spng_set_png_buffer(png.get(), file.data(), file.size());
  if (code == 0) code = spng_get_ihdr(png.get(), header);
  if (code != 0) return PngDamaged(code);
  return png;
}

// The content of a PNG's chunk eXIf, which may stand before or behind the pixels; empty if there is
// none. A chunk is its length, its name, its content and a checksum, which decoding verifies.
std::span<const uint8_t> ExifOfPng(std::span<const uint8_t> file) {
  constexpr std::array<uint8_t, 4> kExif = {'e', 'X', 'I', 'f'};
  constexpr size_t kAround = 12;  // bytes of a chunk beside its content
  std::span<const uint8_t> rest = file.subspan(kPngStart.size());
  while (rest.size() >= kAround) {
    size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | rest[i];
    if (length > rest.size() - kAround) break;
    if (std::ranges::equal(rest.subspan(4, kExif.size()), kExif)) return rest.subspan(8, length);
    rest = rest.subspan(kAround + length);
  }
  return {};
}

Result<ImageHeader> ReadPngHeader(std::span<const uint8_t> file) {
  spng_ihdr png{};
  KUMO_RETURN_IF_ERROR(OpenPng(file, &png).status());
  const bool grey = png.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                    png.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
  ImageHeader header;
  header.channels = grey ? 1 : kColours;
  header.height = png.height;
  header.width = png.width;
  header.orientation = OrientationIn(ExifOfPng(file));
  header.deep = png.bit_depth > 8;
  if (header.swaps_sides()) std::swap(header.height, header.width);
  return header;
}

// To red, green and blue in turn.
Status DecodePng(std::span<const uint8_t> file, std::span<uint8_t> pixels) {
  spng_ihdr unused{};
  KUMO_ASSIGN_OR_RETURN(const Png png, OpenPng(file, &unused));
  int code = spng_decode_image(png.get(), pixels.data(), pixels.size(), SPNG_FMT_RGB8, 0);
  // The data after the pixels show that the file is complete.
  if (code == 0) code = spng_decode_chunks(png.get());
  return code == 0 ? OkStatus() : PngDamaged(code);
}

// The numbers that a PNG stores for its pixels: levels of grey, or indices of its palette.
Status DecodeNumbers(std::span<const uint8_t> file, std::span<uint8_t> numbers) {
  spng_ihdr header{};
  KUMO_ASSIGN_OR_RETURN(const Png png, OpenPng(file, &header));
  const bool grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE;
  if (!grey && header.color_type != SPNG_COLOR_TYPE_INDEXED) {
    return InvalidArgument(
        "is a PNG of colours or with transparency, but in a mask the number of a pixel is its "
        "class; store it in grey or with a palette, of 8 bits");
  }
  if (header.bit_depth > 8) {
    return InvalidArgument(
        "is a PNG of 16 bits, but a mask has classes up to 255; store it in 8 "
        "bits");
  }
  const int bits = header.bit_depth;
  const size_t row_bytes = (static_cast<size_t>(header.width) * bits + 7) / 8;
  std::vector<uint8_t> packed(row_bytes * header.height);
  int code = spng_decode_image(png.get(), packed.data(), packed.size(), SPNG_FMT_RAW, 0);
  if (code == 0) code = spng_decode_chunks(png.get());
  if (code != 0) return PngDamaged(code);
  // The first pixel of a byte is in its upper bits.
  const unsigned most = (1u << bits) - 1;
  for (size_t y = 0; y < header.height; ++y) {
    for (size_t x = 0; x < header.width; ++x) {
      const size_t bit = x * bits;
      const unsigned byte = packed[y * row_bytes + bit / 8];
      numbers[y * header.width + x] = static_cast<uint8_t>(byte >> (8 - bits - bit % 8) & most);
    }
  }
  return OkStatus();
}

// Splits interleaved pixels into one plane per channel.
void Separate(std::span<const uint8_t> interleaved, std::span<uint8_t> planes) {
  KUMO_AT_ISA(DetectIsa(), kPixels)
      .separate(interleaved.data(), std::ssize(planes) / kColours, planes.data());
}

// Y of ITU-R BT.601 with 16 fraction bits, rounded, as JPEG defines it.
void ToGrey(std::span<const uint8_t> interleaved, std::span<uint8_t> grey) {
  for (size_t i = 0; i < grey.size(); ++i) {
    const uint8_t* rgb = interleaved.data() + i * kColours;
    grey[i] = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
}

}  // namespace

Result<ImageHeader> ImageDecoder::ReadHeader(std::span<const uint8_t> file) {
  ImageHeader header;
  if (StartsWith(file, kJpegStart)) {
    KUMO_ASSIGN_OR_RETURN(header, ReadJpegHeader(file));
  } else if (StartsWith(file, kPngStart)) {
    KUMO_ASSIGN_OR_RETURN(header, ReadPngHeader(file));
  } else {
    return DataLoss("is neither JPEG nor PNG");
  }
  KUMO_RETURN_IF_ERROR(CheckSize(header));
  return header;
}

Result<std::span<const uint8_t>> ImageDecoder::Decode(std::span<const uint8_t> file, int channels) {
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(file));
  pixels_.resize(channels * header.height * header.width);
  KUMO_RETURN_IF_ERROR(DecodeTo(file, header, channels, pixels_));
  return std::span<const uint8_t>(pixels_);
}

Status ImageDecoder::DecodeTo(std::span<const uint8_t> file, const ImageHeader& header,
                              int channels, std::span<uint8_t> pixels) {
  const int64_t plane = header.height * header.width;
  CHECK_EQ(std::ssize(pixels), channels * plane);
  if (header.orientation == 1) return DecodeStored(file, header, channels, pixels);
  stored_.resize(pixels.size());
  KUMO_RETURN_IF_ERROR(DecodeStored(file, header, channels, stored_));
  for (int c = 0; c < channels; ++c) {
    TurnUpright(header, std::span(stored_).subspan(c * plane, plane),
                pixels.subspan(c * plane, plane));
  }
  return OkStatus();
}

Status ImageDecoder::DecodeMaskTo(std::span<const uint8_t> file, const ImageHeader& header,
                                  std::span<uint8_t> classes) {
  CHECK_EQ(std::ssize(classes), header.height * header.width);
  if (!StartsWith(file, kPngStart)) {
    return InvalidArgument("is a JPEG, which changes the numbers of a mask; store masks as PNG");
  }
  if (header.orientation == 1) return DecodeNumbers(file, classes);
  stored_.resize(classes.size());
  KUMO_RETURN_IF_ERROR(DecodeNumbers(file, stored_));
  TurnUpright(header, stored_, classes);
  return OkStatus();
}

Status ImageDecoder::DecodeStored(std::span<const uint8_t> file, const ImageHeader& header,
                                  int channels, std::span<uint8_t> pixels) {
  const bool jpeg = StartsWith(file, kJpegStart);
  if (jpeg && channels == 1 && !header.inks) {
    return DecodeJpeg(file, header, /*grey=*/true, pixels);
  }
  interleaved_.resize(kColours * header.height * header.width);
  KUMO_RETURN_IF_ERROR(jpeg ? DecodeJpeg(file, header, /*grey=*/false, interleaved_)
                            : DecodePng(file, interleaved_));
  if (channels == 1) {
    ToGrey(interleaved_, pixels);
  } else {
    Separate(interleaved_, pixels);
  }
  return OkStatus();
}

namespace {

// The part of the image that is scaled to the target's size.
Rectangle PartFor(const ImageTarget& target, const ImageHeader& header) {
  const int64_t height = target.extents[1], width = target.extents[2];
  if (target.shorter_side > 0) {
    return MiddleOf(header.height, header.width, height, width, target.shorter_side);
  }
  if (target.stretch) return {0, 0, header.height, header.width};
  return LargestWithin(header.height, header.width, height, width);
}

}  // namespace

Result<ImageHeader> ImageMaker::Make(std::span<const uint8_t> file, const ImageTarget& target,
                                     std::span<uint8_t> pixels) {
  const std::vector<int64_t>& wanted = target.extents;
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ImageDecoder::ReadHeader(file));
  const bool same =
      target.shorter_side == 0 && header.height == wanted[1] && header.width == wanted[2];
  const int64_t stored_channels = target.mask ? 1 : header.channels;
  if (!target.scale && (!same || stored_channels != wanted[0])) {
    const std::vector<int64_t> found = {stored_channels, header.height, header.width};
    return FailedPrecondition(
        "it is " + ExtentsText(found) + ", but the first image is " + ExtentsText(wanted) +
        "; set data.image_size = " + ExtentsText(wanted) + " to scale all to one size");
  }
  if (target.mask) {
    if (same) {
      KUMO_RETURN_IF_ERROR(decoder_.DecodeMaskTo(file, header, pixels));
      return header;
    }
    mask_.resize(header.height * header.width);
    KUMO_RETURN_IF_ERROR(decoder_.DecodeMaskTo(file, header, mask_));
    resampler_.Resample(mask_, 1, header.height, header.width, PartFor(target, header), wanted[1],
                        wanted[2], pixels, {.interpolation = Interpolation::kNearest});
    return header;
  }
  const int channels = static_cast<int>(wanted[0]);
  if (same) {
    KUMO_RETURN_IF_ERROR(decoder_.DecodeTo(file, header, channels, pixels));
    return header;
  }
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> decoded, decoder_.Decode(file, channels));
  resampler_.Resample(decoded, channels, header.height, header.width, PartFor(target, header),
                      wanted[1], wanted[2], pixels);
  return header;
}

}  // namespace kumo
