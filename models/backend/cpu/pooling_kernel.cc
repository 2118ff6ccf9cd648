// Pooling of one channel, 16 samples at a time.
#include <cstdint>

#include "models/backend/cpu/kernels.h"
#include "models/backend/cpu/vector.h"

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

void Max(const PoolPlane& plane, const float* input, float* output, uint8_t* place) {
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kWidth) {
      const float* first = input + InputAt(plane, rows, columns, rows.begin, columns.begin);
      Vector best = Load(first + lane);
      IntVector winner = IntVector{} + (rows.begin * plane.kernel_width + columns.begin);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          const Vector x = Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
          const IntVector better = x > best;
          best = Select(better, x, best);
          const IntVector here = IntVector{} + (ky * plane.kernel_width + kx);
          winner = better ? here : winner;
        }
      }
      Store(best, output + out + lane);
      const ByteVector bytes = __builtin_convertvector(winner, ByteVector);
      __builtin_memcpy(place + out + lane, &bytes, sizeof(bytes));
    }
  });
}

void MaxBackward(const PoolPlane& plane, const uint8_t* place, const float* dy, float* dx) {
  Zero(plane, dx);
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kWidth) {
      ByteVector bytes;
      __builtin_memcpy(&bytes, place + out + lane, sizeof(bytes));
      const IntVector winner = __builtin_convertvector(bytes, IntVector);
      const Vector gradient = Load(dy + out + lane);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          float* to = dx + InputAt(plane, rows, columns, ky, kx) + lane;
          const IntVector won = winner == ky * plane.kernel_width + kx;
          Store(Load(to) + Select(won, gradient, Broadcast(0.0f)), to);
        }
      }
    }
  });
}

KUMO_ALWAYS_INLINE float InverseCount(const Window& rows, const Window& columns) {
  return 1.0f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

void Average(const PoolPlane& plane, const float* input, float* output) {
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kWidth) {
      Vector sum = Broadcast(0.0f);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          sum += Load(input + InputAt(plane, rows, columns, ky, kx) + lane);
        }
      }
      Store(sum * InverseCount(rows, columns), output + out + lane);
    }
  });
}

void AverageBackward(const PoolPlane& plane, const float* dy, float* dx) {
  Zero(plane, dx);
  ForEachOutput(plane, [&](const Window& rows, const Window& columns, int64_t out) {
    for (int64_t lane = 0; lane < plane.lanes; lane += kWidth) {
      const Vector gradient = Load(dy + out + lane) * InverseCount(rows, columns);
      for (int ky = rows.begin; ky < rows.end; ++ky) {
        for (int kx = columns.begin; kx < columns.end; ++kx) {
          float* to = dx + InputAt(plane, rows, columns, ky, kx) + lane;
          Store(Load(to) + gradient, to);
        }
      }
    }
  });
}

}  // namespace

extern const PoolingKernels kPooling;
const PoolingKernels kPooling = {Max, MaxBackward, Average, AverageBackward};

}  // namespace kumo::KUMO_ISA
