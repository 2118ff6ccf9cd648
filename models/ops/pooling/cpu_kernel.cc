// Pooling of one channel, a vector of samples at a time.
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

template <int kLanes>
void MaxLanes(const PoolPlane& plane, const float* input, float* output, uint8_t* place) {
  using Vectors = Lanes<kLanes>;
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      const float* first = input + InputAt(plane, rows, columns, rows.begin, columns.begin);
      typename Vectors::Floats best = Vectors::Load(first + lane);
      typename Vectors::Ints winner =
          typename Vectors::Ints{} + (rows.begin * plane.kernel_width + columns.begin);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          const auto x = Vectors::Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
          const typename Vectors::Ints better = x > best;
          best = better ? x : best;
          const auto here = typename Vectors::Ints{} + (ky * plane.kernel_width + kx);
          winner = better ? here : winner;
        }
      }
      Vectors::Store(best, output + out + lane);
      const auto bytes = __builtin_convertvector(winner, typename Vectors::Bytes);
      __builtin_memcpy(place + out + lane, &bytes, sizeof(bytes));
    }
  });
}

void Max(const PoolPlane& plane, const float* input, float* output, uint8_t* place) {
  WithLanes(plane.lanes, [&]<int kLanes>() { MaxLanes<kLanes>(plane, input, output, place); });
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

KUMO_ALWAYS_INLINE float InverseCount(const Window& rows, const Window& columns) {
  return 1.0f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <int kLanes>
void AverageLanes(const PoolPlane& plane, const float* input, float* output) {
  using Vectors = Lanes<kLanes>;
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kLanes) {
      typename Vectors::Floats sum{};
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          sum += Vectors::Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
        }
      }
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
