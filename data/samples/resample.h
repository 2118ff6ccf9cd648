// Resampling: images of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/samples/pixel_kernels.h"

namespace kumo {

// A rectangle of an image, in pixels.
struct Rectangle {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const Rectangle&) const = default;
};

// The largest centred rectangle of an image with the proportions of the wanted size, rounded down
// to pixels.
Rectangle LargestWithin(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width);

// The centred part of an image that becomes wanted_height x wanted_width when the image is scaled
// until its shorter side is shorter_side, to the nearest pixel. Requires wanted sides of at most
// shorter_side.
Rectangle MiddleOf(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width,
                   int64_t shorter_side);

// Weights of the source pixels along each axis. Distances are in pixels of the coarser image, so
// that the filters are also low-pass filters (as Pillow's and torchvision's with antialiasing).
enum class Interpolation : uint8_t {
  kNearest,  // the source pixel at the centre
  kLinear,   // a triangle two pixels wide
  kArea,     // mean over the area of the pixel
  kCubic,    // Keys 1981, "Cubic convolution interpolation", a = -1/2; four pixels wide
  kLanczos,  // sinc(t) sinc(t / 3) (Duchon 1979); six pixels wide
};
inline constexpr int kInterpolations = 5;

// The source pixel for pixel `o` of `out` pixels that are the nearest of `in` pixels.
inline int64_t NearestPixel(int64_t o, int64_t in, int64_t out) {
  return (2 * o + 1) * in / (2 * out);
}

struct ResampleOptions {
  Interpolation interpolation = Interpolation::kLinear;
  bool mirrored = false;  // left to right, after resampling
  // Level of the pixels outside the image, by channel; further channels have the last one's.
  std::span<const uint8_t> outside = {};

  uint8_t LevelOutside(int64_t channel) const {
    if (outside.empty()) return 0;
    return outside[static_cast<size_t>(channel) < outside.size() ? channel : outside.size() - 1];
  }
};

// Owned and used by one thread; reuses its memory.
class Resampler {
 public:
  // Resamples a rectangle of an image (`channels` planes of height x width) to planes of out_height
  // x out_width. Integer arithmetic: the same bits on every machine. The rectangle may extend
  // beyond the image, as if that were surrounded by options.outside.
  void Resample(std::span<const uint8_t> image, int64_t channels, int64_t height, int64_t width,
                const Rectangle& from, int64_t out_height, int64_t out_width,
                std::span<uint8_t> out, const ResampleOptions& options = {});

 private:
  // Taps of all pixels along one axis; equally many per pixel, some perhaps with weight 0.
  struct Taps {
    std::vector<int32_t> first;
    std::vector<int32_t> weights;  // 2^16 in total per pixel
    int64_t count = 0;
    // Taps of the pixels from `begin` on.
    PixelTaps view(int64_t begin) const {
      return {first.data() + begin, weights.data() + begin * count, count};
    }
    // Reverses the order of pixels [begin, end).
    void Mirror(int64_t begin, int64_t end);
  };
  static void FindTaps(Interpolation interpolation, int64_t in, int64_t out, Taps* taps);
  // Result pixels [begin, end) along an axis, the only ones that depend on the image, and the
  // source pixels [first, last) of their taps, counted from the rectangle's first one.
  struct Touched {
    int64_t begin = 0, end = 0;
    int64_t first = 0, last = 0;
  };
  // [inside, end_inside): source pixels in the image. The taps of touched pixels count from
  // Touched::first afterwards.
  static Touched Touch(int64_t inside, int64_t end_inside, Taps* taps);
  // Rows of a source with the columns of `across`, at most kRowsAtOnce, from row y of the image on;
  // sets their distance.
  const uint8_t* Rows(std::span<const uint8_t> plane, int64_t width, int64_t left, int64_t y,
                      int rows, const Touched& across, uint8_t outside, int64_t* stride);

  Taps across_, down_;
  std::vector<uint8_t> columns_;  // scratch of the kernel
  std::vector<uint8_t> rows_;     // after the horizontal pass: the rows that touched ones need
  std::vector<uint8_t> padded_;   // rows with columns outside the image
};

}  // namespace kumo
