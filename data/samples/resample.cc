#include "data/samples/resample.h"

#include <algorithm>
#include <cstdlib>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr int64_t kOne = int64_t{1} << 16;

}  // namespace

Rectangle LargestWithin(int64_t height, int64_t width, int64_t wanted_height,
                        int64_t wanted_width) {
  Rectangle most{0, 0, height, width};
  if (width * wanted_height > height * wanted_width) {
    most.width = std::max<int64_t>(1, height * wanted_width / wanted_height);
  } else {
    most.height = std::max<int64_t>(1, width * wanted_height / wanted_width);
  }
  most.top = (height - most.height) / 2;
  most.left = (width - most.width) / 2;
  return most;
}

Rectangle MiddleOf(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width,
                   int64_t shorter_side) {
  const int64_t shorter = std::min(height, width);
  const auto before = [&](int64_t wanted) {
    return std::max<int64_t>(1, (wanted * shorter + shorter_side / 2) / shorter_side);
  };
  Rectangle middle{0, 0, before(wanted_height), before(wanted_width)};
  middle.top = (height - middle.height) / 2;
  middle.left = (width - middle.width) / 2;
  return middle;
}

// Coordinates in units of 1 / (2 out) of a source pixel: result pixel o has its centre at (2o + 1)
// in, source pixel i at (2i + 1) out, and the triangle extends to 2 max(in, out) on both sides. In
// these units all weights are integers before normalisation.
void Resampler::FindTaps(int64_t in, int64_t out, Taps* taps) {
  const int64_t reach = 2 * std::max(in, out);
  taps->count = std::min(in, reach / out + 1);
  taps->first.assign(out, 0);
  taps->weights.assign(out * taps->count, 0);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t centre = (2 * o + 1) * in;
    const auto part = [&](int64_t i) { return reach - std::abs((2 * i + 1) * out - centre); };
    int64_t first = std::max<int64_t>(0, (centre - reach) / (2 * out) - 1);
    while (part(first) <= 0) ++first;
    int64_t end = first;
    int64_t sum = 0;
    for (; end < in && part(end) > 0; ++end) sum += part(end);
    CHECK_LE(end - first, taps->count);
    // Stay within the source.
    taps->first[o] = static_cast<int32_t>(std::min(first, in - taps->count));
    int32_t* const weights = taps->weights.data() + o * taps->count;
    // Rounding errors are carried to the next weight, so that the sum stays exact.
    int64_t before = 0, given = 0;
    for (int64_t i = first; i < end; ++i) {
      before += part(i);
      const int64_t until = (before * kOne + sum / 2) / sum;
      weights[i - taps->first[o]] = static_cast<int32_t>(until - given);
      given = until;
    }
  }
}

void Resampler::Resample(std::span<const uint8_t> image, int64_t channels, int64_t height,
                         int64_t width, const Rectangle& from, int64_t out_height,
                         int64_t out_width, std::span<uint8_t> out) {
  CHECK(from.top >= 0 && from.left >= 0 && from.height > 0 && from.width > 0);
  CHECK(from.top + from.height <= height && from.left + from.width <= width);
  CHECK_EQ(std::ssize(image), channels * height * width);
  CHECK_EQ(std::ssize(out), channels * out_height * out_width);
  static const PixelKernels& kernels = KUMO_AT_ISA(DetectIsa(), kPixels);
  FindTaps(from.width, out_width, &across_);
  FindTaps(from.height, out_height, &down_);
  columns_.resize(from.width * kRowsAtOnce);
  rows_.resize(from.height * out_width);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < from.height; y += kRowsAtOnce) {
      kernels.across(image.data() + (c * height + from.top + y) * width + from.left, width,
                     static_cast<int>(std::min<int64_t>(kRowsAtOnce, from.height - y)), from.width,
                     across_.view(), out_width, columns_.data(), rows_.data() + y * out_width);
    }
    for (int64_t y = 0; y < out_height; ++y) {
      kernels.down(rows_.data(), out_width, down_.view(), y,
                   out.data() + (c * out_height + y) * out_width);
    }
  }
}

}  // namespace kumo
