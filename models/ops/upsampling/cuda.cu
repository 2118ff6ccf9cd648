// Upsampling. Forward has one thread for each result. Backward has one thread for each source; the
// thread adds up the gradients of all results around the source, always in one order.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"
#include "models/backend/cuda/plane_element.cuh"

namespace kumo::cuda {
namespace {

struct UpsamplingGeometry {
  int64_t channels = 0;
  int batch = 0;
  int height = 0, width = 0;  // of the input
  int factor = 1;
  bool bilinear = false;

  __host__ __device__ int64_t inputs() const { return batch * channels * height * width; }
  __host__ __device__ int64_t outputs() const { return inputs() * factor * factor; }
};

// Sources of result i along an axis: (1 - share) x[first] + share x[second].
struct UpsamplingSources {
  int first;
  int second;
  float share;
  __device__ UpsamplingSources(const UpsamplingGeometry& geometry, int i, int size)
      : first(i / geometry.factor), second(first), share(0) {
    if (!geometry.bilinear) return;
    const int place = 2 * i + 1 - geometry.factor;  // in steps of 1 / (2 factor)
    const int step = 2 * geometry.factor;
    first = place < 0 ? 0 : place / step;
    second = first + 1 < size ? first + 1 : first;
    if (place > 0 && second > first) {
      share = static_cast<float>(place % step) / static_cast<float>(step);
    }
  }
  // The share of source i in the result.
  __device__ float Of(int i) const {
    return (i == first ? 1.0f - share : 0.0f) + (i == second ? share : 0.0f);
  }
};

// Results that a source may have a share in, along an axis of `size` sources.
struct UpsamplingResults {
  int begin;
  int end;
  __device__ UpsamplingResults(const UpsamplingGeometry& geometry, int source, int size)
      : begin(source * geometry.factor), end(begin + geometry.factor) {
    if (!geometry.bilinear) return;
    begin = begin > geometry.factor ? begin - geometry.factor : 0;
    end = source + 2 < size ? end + geometry.factor : size * geometry.factor;
  }
};

template <typename T>
__global__ void UpsampleKernel(UpsamplingGeometry g, const T* x, T* y) {
  for (int64_t i = FirstOfThread(); i < g.outputs(); i += ThreadsOfGrid()) {
    const auto out = PlaneElement<T>::Of(i, g.channels, g.height * g.factor, g.width * g.factor);
    const UpsamplingSources rows(g, out.row, g.height);
    const UpsamplingSources columns(g, out.column, g.width);
    const auto at = [&](int row, int column) {
      return ToFloat(x[out.At(row, column, g.channels, g.height, g.width)]);
    };
    const auto in_row = [&](int row) {
      const float first = at(row, columns.first);
      if (columns.share == 0.0f) return first;
      return (1.0f - columns.share) * first + columns.share * at(row, columns.second);
    };
    float result = in_row(rows.first);
    if (rows.share != 0.0f) {
      result = (1.0f - rows.share) * result + rows.share * in_row(rows.second);
    }
    Store(result, y + i);
  }
}

template <typename T>
__global__ void UpsampleBackwardKernel(UpsamplingGeometry g, const T* dy, T* dx) {
  for (int64_t i = FirstOfThread(); i < g.inputs(); i += ThreadsOfGrid()) {
    const auto in = PlaneElement<T>::Of(i, g.channels, g.height, g.width);
    const UpsamplingResults rows(g, in.row, g.height);
    const UpsamplingResults columns(g, in.column, g.width);
    float sum = 0;
    for (int y = rows.begin; y < rows.end; ++y) {
      const float of_row = UpsamplingSources(g, y, g.height).Of(in.row);
      if (of_row == 0.0f) continue;
      for (int x = columns.begin; x < columns.end; ++x) {
        const float share = of_row * UpsamplingSources(g, x, g.width).Of(in.column);
        if (share == 0.0f) continue;
        sum +=
            share * ToFloat(dy[in.At(y, x, g.channels, g.height * g.factor, g.width * g.factor)]);
      }
    }
    Store(sum, dx + i);
  }
}

class Upsampling final : public UnaryOp {
 public:
  Upsampling(CudaEngine& engine, const UpsamplingSpec& spec)
      : engine_(engine),
        geometry_{spec.input.channels(),
                  0,
                  static_cast<int>(spec.input.height()),
                  static_cast<int>(spec.input.width()),
                  spec.factor,
                  spec.interpolation == UpsamplingSpec::Interpolation::kBilinear} {}

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    geometry_.batch = pass.batch;
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, WithNumber(engine_.precision(), [&](auto number) {
                using T = decltype(number);
                return Queue(launch, UpsampleKernel<T>, BlocksFor(launch, geometry_.outputs()),
                             geometry_, static_cast<const T*>(input), static_cast<T*>(output));
              }));
  }

  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    geometry_.batch = pass.batch;
    const Launch launch = engine_.launch();
    KUMO_CUDA(engine_, WithNumber(engine_.precision(), [&](auto number) {
                using T = decltype(number);
                return Queue(launch, UpsampleBackwardKernel<T>,
                             BlocksFor(launch, geometry_.inputs()), geometry_,
                             static_cast<const T*>(grad_output), static_cast<T*>(grad_input));
              }));
  }

 private:
  CudaEngine& engine_;
  UpsamplingGeometry geometry_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const UpsamplingSpec& spec, int) {
  return NewOp<Upsampling>(engine, spec);
}

}  // namespace kumo::cuda
