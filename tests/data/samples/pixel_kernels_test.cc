// The loops over pixels give the same bits on every instruction-set level: those of the sums that
// they are.
#include "data/samples/pixel_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

class PixelKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > DetectIsa()) GTEST_SKIP() << "this processor has no such instructions";
  }
  const PixelKernels& kernels() const { return KUMO_AT_ISA(GetParam(), kPixels); }
  int64_t Below(int64_t n) { return static_cast<int64_t>(rng_.NextBelow(n)); }

  // Taps of `out` pixels that read `in`.
  PixelTaps DrawTaps(int trial, int64_t in, int64_t out) {
    const int64_t count = 1 + Below(std::min<int64_t>(in, 9));
    first_.clear();
    weights_.clear();
    for (int64_t o = 0; o < out; ++o) {
      first_.push_back(static_cast<int32_t>(Below(in - count + 1)));
      int32_t left = 1 << 16;
      for (int64_t t = 1; t < count; ++t) {
        // Some weights are negative, as those of filters that sharpen.
        weights_.push_back(static_cast<int32_t>(Below(left + 1)) - (trial % 2 == 0 ? 0 : 9000));
        left -= weights_.back();
      }
      weights_.push_back(left);
    }
    return {first_.data(), weights_.data(), count};
  }
  // The weighted sum for pixel o of what lies `stride` apart.
  uint8_t Sum(const PixelTaps& taps, int64_t o, const uint8_t* in, int64_t stride) const {
    int64_t sum = 1 << 15;
    for (int64_t t = 0; t < taps.count; ++t) {
      sum += int64_t{taps.weights[o * taps.count + t]} * in[(taps.first[o] + t) * stride];
    }
    return static_cast<uint8_t>(std::clamp<int64_t>(sum >> 16, 0, 255));
  }

  Rng rng_{9, RngPurpose::kTest};
  std::vector<int32_t> first_, weights_;
};

TEST_P(PixelKernelsTest, RowsAndColumnsAreTheSumsOfTheirTaps) {
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t width = 1 + Below(70), out = 1 + Below(70);
    const int rows = static_cast<int>(1 + Below(kRowsAtOnce));
    const int64_t stride = width + Below(3);
    const std::vector<uint8_t> in = test::RandomBytes(rng_, (rows - 1) * stride + width);
    const PixelTaps across = DrawTaps(trial, width, out);
    std::vector<uint8_t> columns(width * kRowsAtOnce);
    std::vector<uint8_t> result(rows * out);
    kernels().across(in.data(), stride, rows, width, across, out, columns.data(), result.data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t x = 0; x < out; ++x) {
        ASSERT_EQ(result[r * out + x], Sum(across, x, in.data() + r * stride, 1))
            << "trial " << trial << ", row " << r << ", pixel " << x;
      }
    }
    const PixelTaps down = DrawTaps(trial, rows, 1);
    std::vector<uint8_t> row(out);
    kernels().down(result.data(), out, down, 0, row.data());
    for (int64_t x = 0; x < out; ++x) {
      ASSERT_EQ(row[x], Sum(down, 0, result.data() + x, out)) << "trial " << trial << ", " << x;
    }
  }
}

// HSV and back, as written everywhere, in double.
std::array<double, 3> DistortedInDouble(const Distortion& d, std::array<double, 3> rgb) {
  const auto times = [](double level, int32_t factor) {
    return std::clamp(std::floor(level * factor / 65536 + 0.5), 0.0, 255.0);
  };
  for (double& level : rgb) {
    level = times(std::clamp(level + d.brightness, 0.0, 255.0), d.contrast_first);
  }
  const auto [r, g, b] = rgb;
  const double v = std::max({r, g, b}), range = v - std::min({r, g, b});
  double h = 0;
  if (range > 0 && v == r) h = (g - b) / range;
  if (range > 0 && v != r && v == g) h = 2 + (b - r) / range;
  if (range > 0 && v != r && v != g) h = 4 + (r - g) / range;
  const double s = v == 0 ? 0 : std::min(1.0, range / v * d.saturation);
  h = std::fmod(h + d.turn + 6, 6.0);
  const double f = h - std::floor(h);
  const double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  const std::array<std::array<double, 3>, 6> sixths = {
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  std::array<double, 3> result = sixths[static_cast<size_t>(h) % 6];
  for (double& level : result) level *= d.contrast_last / 65536.0;
  return result;
}

TEST_P(PixelKernelsTest, DistortedColoursAreThoseOfTheFormulas) {
  uint64_t hash = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const int64_t pixels = 1 + Below(200);
    const std::vector<uint8_t> in = test::RandomBytes(rng_, 3 * pixels);
    Distortion distortion;
    if (trial % 2 == 1) distortion.brightness = static_cast<int32_t>(Below(65)) - 32;
    if (trial % 3 == 1) distortion.contrast_first = static_cast<int32_t>(32768 + Below(65537));
    if (trial % 3 == 2) distortion.contrast_last = static_cast<int32_t>(32768 + Below(65537));
    if (trial % 5 > 0) distortion.saturation = rng_.NextUniform(0.5f, 1.5f);
    if (trial % 7 > 0) distortion.turn = rng_.NextUniform(0.0f, 6.0f);
    std::vector<uint8_t> out(3 * pixels);
    kernels().distort(in.data(), pixels, distortion, out.data());
    if (distortion == Distortion()) {
      EXPECT_EQ(out, in);
    }
    for (int64_t i = 0; i < pixels; ++i) {
      const auto at = [&](int c) { return static_cast<double>(in[c * pixels + i]); };
      const auto expected = DistortedInDouble(distortion, {at(0), at(1), at(2)});
      for (int c = 0; c < 3; ++c) {
        const double level = out[c * pixels + i];
        // Rounded before and after the last contrast.
        ASSERT_NEAR(level, std::min(expected[c], 255.0), 1.27) << "trial " << trial;
        hash = hash * 31 + out[c * pixels + i];
      }
    }
  }
  EXPECT_EQ(hash, 15813048946560158088u) << "on every level";
}

TEST_P(PixelKernelsTest, ColoursAreSeparated) {
  for (int64_t pixels = 1; pixels < 200; pixels += 7) {
    const std::vector<uint8_t> in = test::RandomBytes(rng_, 3 * pixels);
    std::vector<uint8_t> planes(3 * pixels);
    kernels().separate(in.data(), pixels, planes.data());
    for (int64_t i = 0; i < 3 * pixels; ++i) {
      ASSERT_EQ(planes[i % 3 * pixels + i / 3], in[i]) << pixels << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PixelKernelsTest,
                         testing::Values(Isa::kBaseline, Isa::kV3, Isa::kV4));

}  // namespace
}  // namespace kumo
