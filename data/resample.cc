#include "data/resample.h"

#include <algorithm>
#include <cstdlib>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr int kFractionBits = 16;
constexpr int64_t kOne = int64_t{1} << kFractionBits;

uint8_t Rounded(int64_t sum) { return static_cast<uint8_t>((sum + kOne / 2) >> kFractionBits); }

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

// In units of 1 / (2 out) of a pixel of `in`: pixel o of the result has its centre at (2o + 1) in,
// pixel i of the source at (2i + 1) out, and the triangle reaches to 2 max(in, out) on either side.
std::vector<Resampler::Taps> Resampler::TapsOf(int64_t in, int64_t out) {
  const int64_t reach = 2 * std::max(in, out);
  std::vector<Taps> all(out);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t centre = (2 * o + 1) * in;
    Taps& taps = all[o];
    std::vector<int64_t> parts;
    int64_t sum = 0;
    const int64_t begin = std::max<int64_t>(0, (centre - reach) / (2 * out) - 1);
    for (int64_t i = begin; i < in && (2 * i + 1) * out < centre + reach; ++i) {
      const int64_t part = reach - std::abs((2 * i + 1) * out - centre);
      if (part <= 0) continue;
      if (parts.empty()) taps.first = i;
      parts.push_back(part);
      sum += part;
    }
    // What rounding takes from one weight the next gets.
    int64_t before = 0, given = 0;
    for (const int64_t part : parts) {
      before += part;
      const int64_t until = (before * kOne + sum / 2) / sum;
      taps.weights.push_back(static_cast<int32_t>(until - given));
      given = until;
    }
  }
  return all;
}

void Resampler::Resample(std::span<const uint8_t> image, int64_t channels, int64_t height,
                         int64_t width, const Rectangle& from, int64_t out_height,
                         int64_t out_width, std::span<uint8_t> out) {
  CHECK(from.top >= 0 && from.left >= 0 && from.height > 0 && from.width > 0);
  CHECK(from.top + from.height <= height && from.left + from.width <= width);
  CHECK_EQ(std::ssize(image), channels * height * width);
  CHECK_EQ(std::ssize(out), channels * out_height * out_width);
  const std::vector<Taps> across = TapsOf(from.width, out_width);
  const std::vector<Taps> down = TapsOf(from.height, out_height);
  rows_.resize(from.height * out_width);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < from.height; ++y) {
      const uint8_t* row = image.data() + (c * height + from.top + y) * width + from.left;
      for (int64_t x = 0; x < out_width; ++x) {
        int64_t sum = 0;
        const uint8_t* pixel = row + across[x].first;
        for (const int32_t weight : across[x].weights) sum += int64_t{weight} * *pixel++;
        rows_[y * out_width + x] = Rounded(sum);
      }
    }
    for (int64_t y = 0; y < out_height; ++y) {
      uint8_t* row = out.data() + (c * out_height + y) * out_width;
      for (int64_t x = 0; x < out_width; ++x) {
        int64_t sum = 0;
        const uint8_t* pixel = rows_.data() + down[y].first * out_width + x;
        for (const int32_t weight : down[y].weights) {
          sum += int64_t{weight} * *pixel;
          pixel += out_width;
        }
        row[x] = Rounded(sum);
      }
    }
  }
}

}  // namespace kumo
