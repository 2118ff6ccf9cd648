// Upsampling of one channel, a vector of samples at a time: a result is a source, or is mixed of
// two sources in a row or of four in two rows.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/upsampling/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

template <typename Floats>
KUMO_ALWAYS_INLINE Floats Mixed(Floats first, Floats second, float share) {
  return (1.0f - share) * first + share * second;
}

// Calls body(row's source, column's source, first float of the result's position).
template <typename Body>
KUMO_ALWAYS_INLINE void ForEachResult(const UpsamplingPlane& plane, Body body) {
  for (int64_t y = 0; y < plane.out_height; ++y) {
    for (int64_t x = 0; x < plane.out_width; ++x) {
      body(plane.rows[y], plane.columns[x], (y * plane.out_width + x) * plane.lanes);
    }
  }
}

template <int kLanes>
void UpsampleLanes(const UpsamplingPlane& plane, const float* input, float* output) {
  using Vectors = Lanes<kLanes>;
  const int64_t row = plane.width * plane.lanes;
  ForEachResult(plane, [&](const UpsamplingSource& y, const UpsamplingSource& x, int64_t at) {
    const auto in_row = [&](int64_t number, int64_t lane) {
      const float* const from = input + number * row + lane;
      const auto first = Vectors::Load(from + x.first * plane.lanes);
      if (x.share == 0) return first;
      return Mixed(first, Vectors::Load(from + x.second * plane.lanes), x.share);
    };
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      auto result = in_row(y.first, lane);
      if (y.share != 0) result = Mixed(result, in_row(y.second, lane), y.share);
      Vectors::Store(result, output + at + lane);
    }
  });
}

void Upsample(const UpsamplingPlane& plane, const float* input, float* output) {
  WithLanes(plane.lanes, [&]<int kLanes>() { UpsampleLanes<kLanes>(plane, input, output); });
}

template <int kLanes>
void UpsampleBackwardLanes(const UpsamplingPlane& plane, const float* dy, float* dx) {
  using Vectors = Lanes<kLanes>;
  const int64_t row = plane.width * plane.lanes;
  ForEachResult(plane, [&](const UpsamplingSource& y, const UpsamplingSource& x, int64_t at) {
    const auto add = [](typename Vectors::Floats gradient, float* to) {
      Vectors::Store(Vectors::Load(to) + gradient, to);
    };
    const auto add_in_row = [&](typename Vectors::Floats gradient, int64_t number, int64_t lane) {
      float* const to = dx + number * row + lane;
      if (x.share == 0) return add(gradient, to + x.first * plane.lanes);
      add((1.0f - x.share) * gradient, to + x.first * plane.lanes);
      add(x.share * gradient, to + x.second * plane.lanes);
    };
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const auto gradient = Vectors::Load(dy + at + lane);
      if (y.share == 0) {
        add_in_row(gradient, y.first, lane);
      } else {
        add_in_row((1.0f - y.share) * gradient, y.first, lane);
        add_in_row(y.share * gradient, y.second, lane);
      }
    }
  });
}

void UpsampleBackward(const UpsamplingPlane& plane, const float* dy, float* dx) {
  WithLanes(plane.lanes, [&]<int kLanes>() { UpsampleBackwardLanes<kLanes>(plane, dy, dx); });
}

}  // namespace

extern const UpsamplingKernels kUpsampling;
const UpsamplingKernels kUpsampling = {Upsample, UpsampleBackward};

}  // namespace kumo::KUMO_ISA
