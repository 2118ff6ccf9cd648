#include "data/readers/image_decoder.h"

#include <spng.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <string>

#include <glog/logging.h>

#include "common/job/fields.h"
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

void ImageDecoder::CloseJpeg::operator()(void* handle) const { tjDestroy(handle); }

ImageDecoder::ImageDecoder() : jpeg_(tjInitDecompress()) {}
ImageDecoder::~ImageDecoder() = default;

// Replaces the decoder after an error: it would keep state from a damaged header and fail on the
// next, intact file.
Status ImageDecoder::JpegDamaged(const std::string& what) {
  Status status = DataLoss(what + " (" + tjGetErrorStr2(jpeg_.get()) + ")");
  jpeg_.reset(tjInitDecompress());
  return status;
}

Result<ImageHeader> ImageDecoder::ReadHeader(std::span<const uint8_t> file) {
  ImageHeader header;
  if (StartsWith(file, kJpegStart)) {
    if (jpeg_ == nullptr) return ResourceExhausted("no memory to decode a JPEG");
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(jpeg_.get(), file.data(), file.size(), &width, &height, &subsampling,
                            &colours) != 0) {
      return JpegDamaged("the JPEG's header is damaged");
    }
    // A file that ends before its image counts as one of tables only.
    if (width < 1 || height < 1) return DataLoss("the JPEG's header is damaged (no image in it)");
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
      return InvalidArgument("the JPEG is in CMYK (print colours); convert it to RGB");
    }
    header = {colours == TJCS_GRAY ? 1 : kColours, height, width};
  } else if (StartsWith(file, kPngStart)) {
    spng_ihdr png{};
    KUMO_RETURN_IF_ERROR(OpenPng(file, &png).status());
    const bool grey = png.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                      png.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    header = {grey ? 1 : kColours, png.height, png.width};
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
  CHECK_EQ(std::ssize(pixels), channels * header.height * header.width);
  return StartsWith(file, kJpegStart) ? DecodeJpeg(file, header, channels, pixels)
                                      : DecodePng(file, header, channels, pixels);
}

Status ImageDecoder::DecodeJpeg(std::span<const uint8_t> file, const ImageHeader& header,
                                int channels, std::span<uint8_t> pixels) {
  const bool grey = channels == 1;
  if (!grey) interleaved_.resize(pixels.size());
  uint8_t* out = grey ? pixels.data() : interleaved_.data();
  // A warning means damage: missing parts would be grey. The number of progressive scans is
  // limited; otherwise a small file could take minutes.
  const int code =
      tjDecompress2(jpeg_.get(), file.data(), file.size(), out, static_cast<int>(header.width), 0,
                    static_cast<int>(header.height), grey ? TJPF_GRAY : TJPF_RGB,
                    TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS);
  if (code != 0) return JpegDamaged("the JPEG is damaged");
  if (!grey) Separate(interleaved_, pixels);
  return OkStatus();
}

Status ImageDecoder::DecodePng(std::span<const uint8_t> file, const ImageHeader& header,
                               int channels, std::span<uint8_t> pixels) {
  spng_ihdr unused{};
  KUMO_ASSIGN_OR_RETURN(const Png png, OpenPng(file, &unused));
  interleaved_.resize(kColours * header.height * header.width);
  int code =
      spng_decode_image(png.get(), interleaved_.data(), interleaved_.size(), SPNG_FMT_RGB8, 0);
  // The data after the pixels show that the file is complete.
  if (code == 0) code = spng_decode_chunks(png.get());
  if (code != 0) return PngDamaged(code);
  if (channels == 1) {
    ToGrey(interleaved_, pixels);
  } else {
    Separate(interleaved_, pixels);
  }
  return OkStatus();
}

Status ImageMaker::Make(std::span<const uint8_t> file, const ImageTarget& target,
                        std::span<uint8_t> pixels) {
  const std::vector<int64_t>& wanted = target.extents;
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder_.ReadHeader(file));
  const bool same =
      target.shorter_side == 0 && header.height == wanted[1] && header.width == wanted[2];
  if (!target.scale && (!same || header.channels != wanted[0])) {
    const std::vector<int64_t> found = {header.channels, header.height, header.width};
    return FailedPrecondition(
        "it is " + ExtentsText(found) + ", but the first image is " + ExtentsText(wanted) +
        "; set data.image_size = " + ExtentsText(wanted) + " to scale all to one size");
  }
  const int channels = static_cast<int>(wanted[0]);
  if (same) return decoder_.DecodeTo(file, header, channels, pixels);
  KUMO_ASSIGN_OR_RETURN(const std::span<const uint8_t> decoded, decoder_.Decode(file, channels));
  const Rectangle part =
      target.shorter_side == 0
          ? LargestWithin(header.height, header.width, wanted[1], wanted[2])
          : MiddleOf(header.height, header.width, wanted[1], wanted[2], target.shorter_side);
  resampler_.Resample(decoded, channels, header.height, header.width, part, wanted[1], wanted[2],
                      pixels);
  return OkStatus();
}

}  // namespace kumo
