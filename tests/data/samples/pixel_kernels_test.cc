// The loops over pixels give the same bits on every instruction-set level: those of the sums that
// they are.
#include "data/samples/pixel_kernels.h"

#include <algorithm>
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
  PixelTaps DrawTaps(int64_t in, int64_t out) {
    const int64_t count = 1 + Below(std::min<int64_t>(in, 9));
    first_.clear();
    weights_.clear();
    for (int64_t o = 0; o < out; ++o) {
      first_.push_back(static_cast<int32_t>(Below(in - count + 1)));
      int32_t left = 1 << 16;
      for (int64_t t = 1; t < count; ++t) {
        weights_.push_back(static_cast<int32_t>(Below(left + 1)));
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
    return static_cast<uint8_t>(sum >> 16);
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
    const PixelTaps across = DrawTaps(width, out);
    std::vector<uint8_t> columns(width * kRowsAtOnce);
    std::vector<uint8_t> result(rows * out);
    kernels().across(in.data(), stride, rows, width, across, out, columns.data(), result.data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t x = 0; x < out; ++x) {
        ASSERT_EQ(result[r * out + x], Sum(across, x, in.data() + r * stride, 1))
            << "trial " << trial << ", row " << r << ", pixel " << x;
      }
    }
    const PixelTaps down = DrawTaps(rows, 1);
    std::vector<uint8_t> row(out);
    kernels().down(result.data(), out, down, 0, row.data());
    for (int64_t x = 0; x < out; ++x) {
      ASSERT_EQ(row[x], Sum(down, 0, result.data() + x, out)) << "trial " << trial << ", " << x;
    }
  }
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
