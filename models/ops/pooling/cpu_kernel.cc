// Max and average pooling of one channel. Each output position is the maximum or the mean of its
// window, as far as the window lies in the input: padding is no element, so an average divides by
// the number of elements that exist.
//
// A vector holds the samples of one position (all lanes, or 4 or 8 of few samples), so kernels have
// no shuffle, and windows of any shape and stride cost the same for each element. One sample alone
// would fill one lane. Then a vector of max pooling holds neighbouring output positions instead, if
// their windows lie within the row; a stride of 2 takes every other float of two vectors.
//
// Max pooling notes the winner's place in its window (row * kernel width + column) as a byte for
// each output, so the backward pass needs neither input nor output. Of equal elements the first
// wins, and NaN before all others, the last one of several, as in PyTorch. The backward pass adds
// each output's gradient to its winner. Lanes may have different winners, so every element of the
// window adds the gradient or zero, chosen by a comparison, instead of a scatter. Windows may
// overlap, so dx starts from zeros.
//
// A mean of many elements is added up in three levels (LongSum), since one float32 sum of a whole
// plane would lose the last digits of each element.
//
// Compiled without fused multiply-adds: every instruction-set level gives the same bits.
#include <cstdint>

#include "models/backend/cpu/vector.h"
#include "models/ops/pooling/cpu_kernel.h"

namespace kumo::KUMO_ISA {
namespace {

// The part of an output's window that lies in the input: elements [begin, end) of one axis, and
// the input's coordinate of element 0.
struct Window {
  int origin;
  int begin;
  int end;
};

KUMO_ALWAYS_INLINE Window WindowAt(int out, int kernel, int stride, int pad, int size) {
  Window window;
  window.origin = out * stride - pad;
  window.begin = window.origin < 0 ? -window.origin : 0;
  window.end = window.origin + kernel > size ? size - window.origin : kernel;
  return window;
}

// Calls body(window over rows, window over columns, first float of the output position).
template <typename Body>
KUMO_ALWAYS_INLINE void ForEachOutput(const PoolPlane& plane, Body body) {
  for (int y = 0; y < plane.out_height; ++y) {
    const Window rows = WindowAt(y, plane.kernel_height, plane.stride, plane.pad, plane.in_height);
    for (int x = 0; x < plane.out_width; ++x) {
      const Window columns =
          WindowAt(x, plane.kernel_width, plane.stride, plane.pad, plane.in_width);
      body(rows, columns, (int64_t{y} * plane.out_width + x) * plane.lanes);
    }
  }
}

KUMO_ALWAYS_INLINE int64_t InputAt(const PoolPlane& plane, const Window& rows,
                                   const Window& columns, int ky, int kx) {
  return (int64_t{rows.origin + ky} * plane.in_width + columns.origin + kx) * plane.lanes;
}

void Zero(const PoolPlane& plane, float* dx) {
  __builtin_memset(dx, 0, sizeof(float) * plane.in_height * plane.in_width * plane.lanes);
}

// One output position.
template <int kLanes>
KUMO_ALWAYS_INLINE void MaxAt(const PoolPlane& plane, const Window& rows, const Window& columns,
                              const float* input, float* output, uint8_t* place) {
  using Vectors = Lanes<kLanes>;
  for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
    const float* first = input + InputAt(plane, rows, columns, rows.begin, columns.begin);
    typename Vectors::Floats best = Vectors::Load(first + lane);
    typename Vectors::Ints winner =
        typename Vectors::Ints{} + (rows.begin * plane.kernel_width + columns.begin);
    for (int ky = rows.begin; ky < rows.end; ++ky) {
      for (int kx = columns.begin; kx < columns.end; ++kx) {
        const auto x = Vectors::Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
        const typename Vectors::Ints better = (x > best) | (x != x);
        best = better ? x : best;
        const auto here = typename Vectors::Ints{} + (ky * plane.kernel_width + kx);
        winner = better ? here : winner;
      }
    }
    Vectors::Store(best, output + lane);
    const auto bytes = __builtin_convertvector(winner, typename Vectors::Bytes);
    __builtin_memcpy(place + lane, &bytes, sizeof(bytes));
  }
}

// kWidth numbers that lie kStride apart. It reads kStride x kWidth numbers.
template <int kStride>
KUMO_ALWAYS_INLINE Vector LoadApart(const float* from) {
  static_assert(kStride == 1 || kStride == 2);
  if constexpr (kStride == 1) return Load(from);
  return EvenOnes(Load(from), Load(from + kWidth));
}

// Max pooling of one sample alone: a vector holds neighbouring output positions whose windows lie
// in the plane, and the rest of a row goes one by one.
template <int kStride>
void MaxOfOneSample(const PoolPlane& plane, const float* input, float* output, uint8_t* place) {
  for (int y = 0; y < plane.out_height; ++y) {
    const Window rows = WindowAt(y, plane.kernel_height, plane.stride, plane.pad, plane.in_height);
    int x = 0;
    while (x < plane.out_width) {
      const int64_t out = int64_t{y} * plane.out_width + x;
      const Window columns =
          WindowAt(x, plane.kernel_width, plane.stride, plane.pad, plane.in_width);
      const int read = kStride * kWidth + plane.kernel_width - 1;  // numbers of a row
      if (x + kWidth > plane.out_width || columns.begin > 0 ||
          columns.origin + read > plane.in_width) {
        MaxAt<1>(plane, rows, columns, input, output + out, place + out);
        ++x;
        continue;
      }
      Vector best = LoadApart<kStride>(input + InputAt(plane, rows, columns, rows.begin, 0));
      IntVector winner = IntVector{} + rows.begin * plane.kernel_width;
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = 0; kx < plane.kernel_width; ++kx) {
          const Vector v = LoadApart<kStride>(input + InputAt(plane, rows, columns, ky, kx));
          const IntVector better = (v > best) | (v != v);
          best = better ? v : best;
          winner = better ? IntVector{} + (ky * plane.kernel_width + kx) : winner;
        }
      }
      Store(best, output + out);
      const auto bytes = __builtin_convertvector(winner, Lanes<kWidth>::Bytes);
      __builtin_memcpy(place + out, &bytes, sizeof(bytes));
      x += kWidth;
    }
  }
}

void Max(const PoolPlane& plane, const float* input, float* output, uint8_t* place) {
  if (plane.lanes == 1 && plane.stride == 1) return MaxOfOneSample<1>(plane, input, output, place);
  if (plane.lanes == 1 && plane.stride == 2) return MaxOfOneSample<2>(plane, input, output, place);
  WithLanes(plane.lanes, [&]<int kLanes>() {
    ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
      MaxAt<kLanes>(plane, rows, columns, input, output + out, place + out);
    });
  });
}

template <int kLanes>
void MaxBackwardLanes(const PoolPlane& plane, const uint8_t* place, const float* dy, float* dx) {
  using Vectors = Lanes<kLanes>;
  Zero(plane, dx);
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      typename Vectors::Bytes bytes;
      __builtin_memcpy(&bytes, place + out + lane, sizeof(bytes));
      const auto winner = __builtin_convertvector(bytes, typename Vectors::Ints);
      const auto gradient = Vectors::Load(dy + out + lane);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          float* to = dx + InputAt(plane, rows, columns, ky, kx) + lane;
          const typename Vectors::Ints won = winner == ky * plane.kernel_width + kx;
          Vectors::Store(Vectors::Load(to) + (won ? gradient : typename Vectors::Floats{}), to);
        }
      }
    }
  });
}

void MaxBackward(const PoolPlane& plane, const uint8_t* place, const float* dy, float* dx) {
  WithLanes(plane.lanes, [&]<int kLanes>() { MaxBackwardLanes<kLanes>(plane, place, dy, dx); });
}

KUMO_ALWAYS_INLINE int Count(const Window& rows, const Window& columns) {
  return (rows.end - rows.begin) * (columns.end - columns.begin);
}
KUMO_ALWAYS_INLINE float InverseCount(const Window& rows, const Window& columns) {
  return 1.0f / static_cast<float>(Count(rows, columns));
}

// Sum of up to 2^24 vectors, whose error is that of some hundreds of additions.
template <typename Floats>
class LongSum {
 public:
  static constexpr int kOfLevel = 256;

  KUMO_ALWAYS_INLINE void operator+=(const Floats& element) {
    few_ += element;
    if (++count_ % kOfLevel != 0) return;
    many_ += few_;
    few_ = Floats{};
    if (count_ % (kOfLevel * kOfLevel) != 0) return;
    all_ += many_;
    many_ = Floats{};
  }
  KUMO_ALWAYS_INLINE Floats total() const { return all_ + (many_ + few_); }

 private:
  Floats few_{};   // less than kOfLevel vectors
  Floats many_{};  // sums of kOfLevel vectors
  Floats all_{};   // sums of kOfLevel^2 vectors
  unsigned count_ = 0;
};

// The elements of a window at `lane`, added up by Sum.
template <int kLanes, typename Sum>
KUMO_ALWAYS_INLINE auto SumOfWindow(const PoolPlane& plane, const Window& rows,
                                    const Window& columns, const float* input, int64_t lane) {
  Sum sum{};
  for (int ky = rows.begin; ky < rows.end; ++ky) {
    for (int kx = columns.begin; kx < columns.end; ++kx) {
      sum += Lanes<kLanes>::Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
    }
  }
  return sum;
}

template <int kLanes>
void AverageLanes(const PoolPlane& plane, const float* input, float* output) {
  using Vectors = Lanes<kLanes>;
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    using Floats = typename Vectors::Floats;
    const bool is_long = Count(rows, columns) > LongSum<Floats>::kOfLevel;
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const Floats sum =
          is_long ? SumOfWindow<kLanes, LongSum<Floats>>(plane, rows, columns, input, lane).total()
                  : SumOfWindow<kLanes, Floats>(plane, rows, columns, input, lane);
      Vectors::Store(sum * InverseCount(rows, columns), output + out + lane);
    }
  });
}

void Average(const PoolPlane& plane, const float* input, float* output) {
  WithLanes(plane.lanes, [&]<int kLanes>() { AverageLanes<kLanes>(plane, input, output); });
}

template <int kLanes>
void AverageBackwardLanes(const PoolPlane& plane, const float* dy, float* dx) {
  using Vectors = Lanes<kLanes>;
  Zero(plane, dx);
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const auto gradient = Vectors::Load(dy + out + lane) * InverseCount(rows, columns);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          float* to = dx + InputAt(plane, rows, columns, ky, kx) + lane;
          Vectors::Store(Vectors::Load(to) + gradient, to);
        }
      }
    }
  });
}

void AverageBackward(const PoolPlane& plane, const float* dy, float* dx) {
  WithLanes(plane.lanes, [&]<int kLanes>() { AverageBackwardLanes<kLanes>(plane, dy, dx); });
}

}  // namespace

extern const PoolingKernels kPooling;
const PoolingKernels kPooling = {Max, MaxBackward, Average, AverageBackward};

}  // namespace kumo::KUMO_ISA
