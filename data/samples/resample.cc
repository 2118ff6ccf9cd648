// Separable filter: each result pixel is sum_y down[y] sum_x across[x] pixel(y, x). The horizontal
// pass runs first, over the rows that the vertical pass needs, and its result is kept in bytes.
//
// All arithmetic is on integers, so that every machine gives the same bits. Coordinates are in
// units of 1 / (2 out) of a source pixel: centres of result and source pixels are integers there
// (FindTaps). The weights of a result pixel have 16 fraction bits and sum to exactly 2^16: each
// weight is the difference of two rounded prefix sums, so a plane of one level stays at that level.
//
// A filter for a smaller result is as much wider (its unit is the coarser pixel): it is a low-pass
// filter, too.
//
// The rectangle may reach beyond the image. Only result pixels whose taps touch the image are
// computed (Touch); the others have the level outside, exactly, as weights sum to one.
#include "data/samples/resample.h"

#include <algorithm>
#include <cstdlib>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr int64_t kOne = int64_t{1} << 16;

// Numbers of the filters below: positions with 16 fraction bits, weights with 24.
constexpr int kPositionBits = 16;
constexpr int kWeightBits = 24;

// Keys' cubic of a = -1/2 at a distance of t >= 0.
int64_t CubicAt(int64_t t) {
  const int64_t squared = t * t;
  const int64_t twice =
      t <= kOne ? 3 * squared * t - 5 * squared * kOne + 2 * kOne * kOne * kOne
                : -squared * t + 5 * squared * kOne - 8 * t * kOne * kOne + 4 * kOne * kOne * kOne;
  return twice >> (3 * kPositionBits + 1 - kWeightBits);
}

constexpr int kSineBits = 30;
constexpr int64_t kSineOne = int64_t{1} << kSineBits;
constexpr int64_t kPi = 3373259426;  // pi * 2^30

// sin(pi t / n), with 30 fraction bits; t >= 0. The Taylor series up to the eleventh power of an
// angle in the first quadrant: integers, because sines of C libraries differ in their last bits.
int64_t SineOfPi(int64_t t, int64_t n) {
  const int64_t half_turn = n * kOne;
  t %= 2 * half_turn;
  const bool negative = t >= half_turn;
  if (negative) t -= half_turn;
  t = std::min(t, half_turn - t);
  const int64_t angle = t * kPi / half_turn;
  const int64_t squared = (angle * angle) >> kSineBits;
  int64_t series = kSineOne;
  for (const int64_t factors : {10 * 11, 8 * 9, 6 * 7, 4 * 5, 2 * 3}) {
    series = kSineOne - ((series * squared) >> kSineBits) / factors;
  }
  const int64_t sine = (angle * series) >> kSineBits;
  return negative ? -sine : sine;
}

// sinc(t) sinc(t / 3) = 3 sin(pi t) sin(pi t / 3) / (pi t)^2 at a distance of t in [0, 3).
int64_t LanczosAt(int64_t t) {
  if (t == 0) return int64_t{1} << kWeightBits;
  constexpr int64_t kThreeByPiSquared = 326378378;  // 3 / pi^2 * 2^30
  // 28 fraction bits.
  const int64_t quotient = SineOfPi(t, 1) * SineOfPi(t, 3) / (t * t);
  return (quotient * kThreeByPiSquared) >> (28 + kSineBits - kWeightBits);
}

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
// in, source pixel i at (2i + 1) out, and a filter's unit is 2 max(in, out). In these units the
// weights of the triangle and of areas are integers before normalisation.
void Resampler::FindTaps(Interpolation interpolation, int64_t in, int64_t out, Taps* taps) {
  const int64_t unit = 2 * std::max(in, out);
  int64_t reach = unit;
  if (interpolation == Interpolation::kArea) reach = in + out;
  if (interpolation == Interpolation::kCubic) reach = 2 * unit;
  if (interpolation == Interpolation::kLanczos) reach = 3 * unit;
  // The weight at a distance below `reach`.
  const auto weight = [&](int64_t distance) -> int64_t {
    const auto position = [&] { return (distance << kPositionBits) / unit; };
    switch (interpolation) {
      case Interpolation::kNearest:
      case Interpolation::kLinear:
        break;
      case Interpolation::kArea:
        return std::min(reach - distance, 2 * std::min(in, out));
      case Interpolation::kCubic:
        return CubicAt(position());
      case Interpolation::kLanczos:
        return LanczosAt(position());
    }
    return reach - distance;
  };
  const bool nearest = interpolation == Interpolation::kNearest;
  taps->count = nearest ? 1 : std::min(in, reach / out + 1);
  taps->first.assign(out, 0);
  taps->weights.assign(out * taps->count, 0);
  for (int64_t o = 0; o < out; ++o) {
    if (nearest) {
      taps->first[o] = static_cast<int32_t>(NearestPixel(o, in, out));
      taps->weights[o] = kOne;
      continue;
    }
    const int64_t centre = (2 * o + 1) * in;
    const auto distance = [&](int64_t i) { return std::abs((2 * i + 1) * out - centre); };
    int64_t first = std::max<int64_t>(0, (centre - reach) / (2 * out) - 1);
    while (distance(first) >= reach) ++first;
    int64_t end = first;
    int64_t sum = 0;
    for (; end < in && distance(end) < reach; ++end) sum += weight(distance(end));
    CHECK_LE(end - first, taps->count);
    // Stay within the source.
    taps->first[o] = static_cast<int32_t>(std::min(first, in - taps->count));
    int32_t* const weights = taps->weights.data() + o * taps->count;
    // Rounding errors are carried to the next weight, so that the sum stays exact.
    int64_t before = 0, given = 0;
    for (int64_t i = first; i < end; ++i) {
      before += weight(distance(i));
      const int64_t until = (before * kOne + sum / 2) / sum;
      weights[i - taps->first[o]] = static_cast<int32_t>(until - given);
      given = until;
    }
  }
}

Resampler::Touched Resampler::Touch(int64_t inside, int64_t end_inside, Taps* taps) {
  Touched touched;
  const int64_t outputs = std::ssize(taps->first);
  const auto touches = [&](int64_t o) {
    return taps->first[o] < end_inside && taps->first[o] + taps->count > inside;
  };
  while (touched.begin < outputs && !touches(touched.begin)) ++touched.begin;
  touched.end = touched.begin;
  while (touched.end < outputs && touches(touched.end)) ++touched.end;
  if (touched.begin == touched.end) return touched;
  touched.first = taps->first[touched.begin];
  touched.last = taps->first[touched.end - 1] + taps->count;
  for (int64_t o = touched.begin; o < touched.end; ++o) {
    taps->first[o] -= static_cast<int32_t>(touched.first);
  }
  return touched;
}

const uint8_t* Resampler::Rows(std::span<const uint8_t> plane, int64_t width, int64_t left,
                               int64_t y, int rows, const Touched& across, uint8_t outside,
                               int64_t* stride) {
  const int64_t begin = left + across.first, end = left + across.last;
  if (begin >= 0 && end <= width) {
    *stride = width;
    return plane.data() + y * width + begin;
  }
  *stride = end - begin;
  padded_.assign(kRowsAtOnce * *stride, outside);
  const int64_t from = std::clamp<int64_t>(begin, 0, width);
  const int64_t to = std::clamp<int64_t>(end, from, width);
  for (int r = 0; r < rows; ++r) {
    std::ranges::copy(plane.subspan((y + r) * width + from, to - from),
                      padded_.begin() + r * *stride + (from - begin));
  }
  return padded_.data();
}

// Pixels whose taps lie outside the image have the level outside, since weights add up to exactly
// one. So a small image in a large rectangle costs little.
void Resampler::Resample(std::span<const uint8_t> image, int64_t channels, int64_t height,
                         int64_t width, const Rectangle& from, int64_t out_height,
                         int64_t out_width, std::span<uint8_t> out,
                         const ResampleOptions& options) {
  CHECK(from.height > 0 && from.width > 0 && out_height > 0 && out_width > 0);
  CHECK_EQ(std::ssize(image), channels * height * width);
  CHECK_EQ(std::ssize(out), channels * out_height * out_width);
  static const PixelKernels& kernels = KUMO_AT_ISA(DetectIsa(), kPixels);
  FindTaps(options.interpolation, from.width, out_width, &across_);
  FindTaps(options.interpolation, from.height, out_height, &down_);
  const Touched across = Touch(-from.left, width - from.left, &across_);
  const Touched down = Touch(-from.top, height - from.top, &down_);
  const int64_t columns = across.end - across.begin;
  if (columns == 0 || down.begin == down.end) {
    const int64_t plane = out_height * out_width;
    for (int64_t c = 0; c < channels; ++c) {
      std::ranges::fill(out.subspan(c * plane, plane), options.LevelOutside(c));
    }
    return;
  }
  if (options.mirrored) across_.Mirror(across.begin, across.end);
  const int64_t first_column = options.mirrored ? out_width - across.end : across.begin;
  const PixelTaps across_taps = across_.view(across.begin);
  columns_.resize((across.last - across.first) * kRowsAtOnce);
  rows_.resize((down.last - down.first) * columns);
  for (int64_t c = 0; c < channels; ++c) {
    const std::span<const uint8_t> plane = image.subspan(c * height * width, height * width);
    const uint8_t outside = options.LevelOutside(c);
    const int64_t top = std::clamp<int64_t>(from.top + down.first, 0, height);
    const int64_t bottom = std::clamp<int64_t>(from.top + down.last, top, height);
    uint8_t* const first_row = rows_.data() + (top - from.top - down.first) * columns;
    uint8_t* const end_row = first_row + (bottom - top) * columns;
    std::fill(rows_.data(), first_row, outside);
    std::fill(end_row, rows_.data() + rows_.size(), outside);
    for (int64_t y = top; y < bottom; y += kRowsAtOnce) {
      const int rows = static_cast<int>(std::min<int64_t>(kRowsAtOnce, bottom - y));
      int64_t stride = 0;
      const uint8_t* const in = Rows(plane, width, from.left, y, rows, across, outside, &stride);
      kernels.across(in, stride, rows, across.last - across.first, across_taps, columns,
                     columns_.data(), first_row + (y - top) * columns);
    }
    const std::span<uint8_t> result = out.subspan(c * out_height * out_width);
    for (int64_t y = 0; y < out_height; ++y) {
      const std::span<uint8_t> row = result.subspan(y * out_width, out_width);
      if (y < down.begin || y >= down.end) {
        std::ranges::fill(row, outside);
        continue;
      }
      std::ranges::fill(row.first(first_column), outside);
      std::ranges::fill(row.subspan(first_column + columns), outside);
      kernels.down(rows_.data(), columns, down_.view(0), y, row.data() + first_column);
    }
  }
}

void Resampler::Taps::Mirror(int64_t begin, int64_t end) {
  std::reverse(first.begin() + begin, first.begin() + end);
  for (int64_t a = begin, b = end - 1; a < b; ++a, --b) {
    std::swap_ranges(weights.begin() + a * count, weights.begin() + (a + 1) * count,
                     weights.begin() + b * count);
  }
}

}  // namespace kumo
