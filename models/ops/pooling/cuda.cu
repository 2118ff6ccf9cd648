// Max and average pooling: by cuDNN, and by own kernels for windows of which only a part lies in
// the input, as ceil mode has them.
//
// Kernels: Forward has one thread for each output. Backward has one thread for each input; the
// thread adds up the gradients from all windows around the input, always in one order.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"
#include "models/backend/cuda/plane_element.cuh"
#include "models/ops/pooling/cuda.h"

namespace kumo::cuda {
namespace {

// Geometry of windows that may reach beyond the padded input.
struct PoolWindows {
  int64_t channels = 0;
  int batch = 0;
  int in_height = 0, in_width = 0;
  int out_height = 0, out_width = 0;
  int kernel_height = 0, kernel_width = 0;
  int stride = 1, pad = 0;
};

// Along one axis: the part of an output's window that lies in the input.
struct Part {
  int origin;  // the input's place of element 0
  int begin;
  int end;
  __device__ Part(int out, int kernel, const PoolWindows& windows, int size)
      : origin(out * windows.stride - windows.pad),
        begin(origin < 0 ? -origin : 0),
        end(origin + kernel > size ? size - origin : kernel) {}
};

// The outputs whose windows an input is in.
struct Outputs {
  int begin;
  int end;
  __device__ Outputs(int in, int kernel, const PoolWindows& windows, int outputs) {
    const int place = in + windows.pad;
    begin = place < kernel ? 0 : (place - kernel) / windows.stride + 1;
    end = place / windows.stride + 1;
    if (end > outputs) end = outputs;
  }
};

__host__ __device__ inline int64_t InputsOf(const PoolWindows& w) {
  return w.batch * w.channels * w.in_height * w.in_width;
}
__host__ __device__ inline int64_t OutputsOf(const PoolWindows& w) {
  return w.batch * w.channels * w.out_height * w.out_width;
}

template <typename T>
__global__ void MaxKernel(PoolWindows w, const T* x, T* y, uint8_t* place) {
  for (int64_t i = FirstOfThread(); i < OutputsOf(w); i += ThreadsOfGrid()) {
    const auto out = PlaneElement<T>::Of(i, w.channels, w.out_height, w.out_width);
    const Part rows(out.row, w.kernel_height, w, w.in_height);
    const Part columns(out.column, w.kernel_width, w, w.in_width);
    float best = -INFINITY;
    int winner = rows.begin * w.kernel_width + columns.begin;
    for (int ky = rows.begin; ky < rows.end; ++ky) {
      for (int kx = columns.begin; kx < columns.end; ++kx) {
        const float here = ToFloat(
            x[out.At(rows.origin + ky, columns.origin + kx, w.channels, w.in_height, w.in_width)]);
        if (!(here > best) && here == here) continue;
        best = here;
        winner = ky * w.kernel_width + kx;
      }
    }
    Store(best, y + i);
    place[i] = static_cast<uint8_t>(winner);
  }
}

template <typename T>
__global__ void AverageKernel(PoolWindows w, const T* x, T* y) {
  for (int64_t i = FirstOfThread(); i < OutputsOf(w); i += ThreadsOfGrid()) {
    const auto out = PlaneElement<T>::Of(i, w.channels, w.out_height, w.out_width);
    const Part rows(out.row, w.kernel_height, w, w.in_height);
    const Part columns(out.column, w.kernel_width, w, w.in_width);
    float sum = 0;
    for (int ky = rows.begin; ky < rows.end; ++ky) {
      for (int kx = columns.begin; kx < columns.end; ++kx) {
        sum += ToFloat(
            x[out.At(rows.origin + ky, columns.origin + kx, w.channels, w.in_height, w.in_width)]);
      }
    }
    const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
    Store(sum / static_cast<float>(count), y + i);
  }
}

// The share of an output's gradient that one element of its window gets.
struct Winner {
  const uint8_t* place;
  __device__ float operator()(const PoolWindows& w, const Part& rows, const Part& columns, int row,
                              int column, int64_t output) const {
    const int element = (row - rows.origin) * w.kernel_width + column - columns.origin;
    return place[output] == element ? 1.0f : 0.0f;
  }
};
struct Even {
  __device__ float operator()(const PoolWindows&, const Part& rows, const Part& columns, int, int,
                              int64_t) const {
    const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
    return 1.0f / static_cast<float>(count);
  }
};

template <typename T, typename Share>
__global__ void BackwardKernel(PoolWindows w, Share share, const T* dy, T* dx) {
  for (int64_t i = FirstOfThread(); i < InputsOf(w); i += ThreadsOfGrid()) {
    const auto in = PlaneElement<T>::Of(i, w.channels, w.in_height, w.in_width);
    const Outputs ys(in.row, w.kernel_height, w, w.out_height);
    const Outputs xs(in.column, w.kernel_width, w, w.out_width);
    float sum = 0;
    for (int y = ys.begin; y < ys.end; ++y) {
      const Part rows(y, w.kernel_height, w, w.in_height);
      for (int x = xs.begin; x < xs.end; ++x) {
        const Part columns(x, w.kernel_width, w, w.in_width);
        const int64_t output = in.At(y, x, w.channels, w.out_height, w.out_width);
        const float part = share(w, rows, columns, in.row, in.column, output);
        if (part != 0.0f) sum += part * ToFloat(dy[output]);
      }
    }
    Store(sum, dx + i);
  }
}

template <typename Share>
cudaError_t Backward(const Launch& launch, Precision precision, const PoolWindows& windows,
                     const Share& share, const void* dy, void* dx) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BackwardKernel<T, Share>, BlocksFor(launch, InputsOf(windows)), windows,
                 share, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

// place[i]: which element of window i won (row * kernel_width + column).
cudaError_t MaxPool(const Launch& launch, Precision precision, const PoolWindows& windows,
                    const void* x, void* y, uint8_t* place) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, MaxKernel<T>, BlocksFor(launch, OutputsOf(windows)), windows,
                 static_cast<const T*>(x), static_cast<T*>(y), place);
  });
}

cudaError_t MaxPoolBackward(const Launch& launch, Precision precision, const PoolWindows& windows,
                            const uint8_t* place, const void* dy, void* dx) {
  return Backward(launch, precision, windows, Winner{place}, dy, dx);
}

cudaError_t AveragePool(const Launch& launch, Precision precision, const PoolWindows& windows,
                        const void* x, void* y) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, AverageKernel<T>, BlocksFor(launch, OutputsOf(windows)), windows,
                 static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t AveragePoolBackward(const Launch& launch, Precision precision,
                                const PoolWindows& windows, const void* dy, void* dx) {
  return Backward(launch, precision, windows, Even{}, dy, dx);
}

cudnnPoolingMode_t ModeOf(PoolingSpec::Kind kind) {
  // One of equal maxima gets the gradient, the same one each time; padding does not count.
  return kind == PoolingSpec::Kind::kMax ? CUDNN_POOLING_MAX_DETERMINISTIC
                                         : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

}  // namespace

Pooling::Pooling(CudaEngine& engine, const PoolingSpec& spec) : engine_(engine), spec_(spec) {
  KUMO_CUDA(engine, cudnnCreatePoolingDescriptor(pooling_.receive()));
  KUMO_CUDA(engine, cudnnSetPooling2dDescriptor(
                        pooling_.get(), ModeOf(spec.kind), CUDNN_PROPAGATE_NAN, spec.kernel_height,
                        spec.kernel_width, spec.pad, spec.pad, spec.stride, spec.stride));
}

const Pooling::Tensors& Pooling::Of(int batch) {
  const auto [entry, fresh] = tensors_.try_emplace(batch);
  if (fresh) {
    entry->second.input = Describe(engine_, spec_.input, batch);
    entry->second.output = Describe(engine_, spec_.output(), batch);
  }
  return entry->second;
}

void Pooling::Forward(int batch, const void* input, void* output) {
  const float one = 1.0f;
  const float zero = 0.0f;
  const Tensors& tensors = Of(batch);
  KUMO_CUDA(engine_, cudnnPoolingForward(engine_.cudnn(), pooling_.get(), &one, tensors.input.get(),
                                         input, &zero, tensors.output.get(), output));
}

void Pooling::Backward(int batch, const void* input, const void* output, const void* grad_output,
                       void* grad_input) {
  const float one = 1.0f;
  const float zero = 0.0f;
  const Tensors& tensors = Of(batch);
  KUMO_CUDA(engine_,
            cudnnPoolingBackward(engine_.cudnn(), pooling_.get(), &one, tensors.output.get(),
                                 output, tensors.output.get(), grad_output, tensors.input.get(),
                                 input, &zero, tensors.input.get(), grad_input));
}

namespace {

class PoolingOp final : public UnaryOp {
 public:
  PoolingOp(CudaEngine& engine, const PoolingSpec& spec) : pooling_(engine, spec) {}

  bool reads_input() const override { return true; }
  bool reads_output() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    pooling_.Forward(pass.batch, input, output);
  }
  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input != nullptr) {
      pooling_.Backward(pass.batch, input, output, grad_output, grad_input);
    }
  }

 private:
  Pooling pooling_;
};

// In ceil mode, by our own kernels: cuDNN's windows do not reach beyond the padded input.
class CeilPoolingOp final : public UnaryOp {
 public:
  CeilPoolingOp(CudaEngine& engine, const PoolingSpec& spec, int max_batch)
      : engine_(engine), max_(spec.kind == PoolingSpec::Kind::kMax) {
    const Shape out = spec.output();
    windows_ = {spec.input.channels(),
                0,
                static_cast<int>(spec.input.height()),
                static_cast<int>(spec.input.width()),
                static_cast<int>(out.height()),
                static_cast<int>(out.width()),
                spec.kernel_height,
                spec.kernel_width,
                spec.stride,
                spec.pad};
    if (max_) place_ = DeviceArray<uint8_t>(engine, out.size() * max_batch, "places of maxima");
  }

  int64_t bytes() const override { return place_.bytes(); }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    windows_.batch = pass.batch;
    const Launch launch = engine_.launch();
    if (max_) {
      KUMO_CUDA(engine_,
                MaxPool(launch, engine_.precision(), windows_, input, output, place_.data()));
    } else {
      KUMO_CUDA(engine_, AveragePool(launch, engine_.precision(), windows_, input, output));
    }
  }
  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    windows_.batch = pass.batch;
    const Launch launch = engine_.launch();
    if (max_) {
      KUMO_CUDA(engine_, MaxPoolBackward(launch, engine_.precision(), windows_, place_.data(),
                                         grad_output, grad_input));
    } else {
      KUMO_CUDA(engine_, AveragePoolBackward(launch, engine_.precision(), windows_, grad_output,
                                             grad_input));
    }
  }

 private:
  CudaEngine& engine_;
  bool max_;
  PoolWindows windows_;
  DeviceArray<uint8_t> place_;  // which element of the window won
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const PoolingSpec& spec, int max_batch) {
  if (spec.ceil) return NewOp<CeilPoolingOp>(engine, spec, max_batch);
  const Shape activations[] = {spec.input, spec.output()};
  KUMO_RETURN_IF_ERROR(CheckTakes(activations, max_batch, kMostPooledSamples));
  return NewOp<PoolingOp>(engine, spec);
}

}  // namespace kumo::cuda
