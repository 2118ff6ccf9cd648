// L2 normalisation over the channels, with a trained scale for each channel (ParseNet, Liu et al.
// 2015; SSD). Kernels: one thread for each position of each sample.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

template <typename T>
__global__ void LengthForwardKernel(ActivationShape shape, const T* x, const float* scale,
                                    float under_root, float beside_root, float* inverse, T* y) {
  for (int64_t p = FirstOfThread(); p < shape.batch * shape.plane; p += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, p);
    float squares = under_root;
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float here = ToFloat(x[at.At(c)]);
      squares += here * here;
    }
    const float factor = 1.0f / (sqrtf(squares) + beside_root);
    inverse[p] = factor;
    for (int64_t c = 0; c < shape.channels; ++c) {
      Store(ToFloat(x[at.At(c)]) * factor * scale[c], y + at.At(c));
    }
  }
}

// With g = scale dy, x' = x inverse and the root r: dx = inverse (g - x' sum(g x') / (r inverse)),
// where r inverse = 1 - beside_root inverse, bounded as on the CPU.
template <typename T>
__global__ void LengthBackwardKernel(ActivationShape shape, const T* x, const T* dy,
                                     const float* scale, const float* inverse, float beside_root,
                                     T* dx) {
  constexpr float kLeastShare = 1e-6f;
  for (int64_t p = FirstOfThread(); p < shape.batch * shape.plane; p += ThreadsOfGrid()) {
    const ChannelsAt<T> at(shape, p);
    const float factor = inverse[p];
    float along = 0;
    for (int64_t c = 0; c < shape.channels; ++c) {
      along += ToFloat(dy[at.At(c)]) * scale[c] * (ToFloat(x[at.At(c)]) * factor);
    }
    along /= fmaxf(1.0f - beside_root * factor, kLeastShare);
    for (int64_t c = 0; c < shape.channels; ++c) {
      const float gradient = ToFloat(dy[at.At(c)]) * scale[c];
      const float normal = ToFloat(x[at.At(c)]) * factor;
      Store(factor * (gradient - normal * along), dx + at.At(c));
    }
  }
}

// A block for each channel.
template <typename T>
__global__ void LengthGradientKernel(ActivationShape shape, const T* x, const T* dy,
                                     const float* inverse, float* scale_gradient) {
  double sum = 0;
  for (int64_t p = threadIdx.x; p < shape.batch * shape.plane; p += kThreads) {
    const int64_t place = ChannelsAt<T>(shape, p).At(blockIdx.x);
    sum += static_cast<double>(ToFloat(dy[place]) * (ToFloat(x[place]) * inverse[p]));
  }
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) scale_gradient[blockIdx.x] = static_cast<float>(sum);
}

cudaError_t NormaliseLengths(const Launch& launch, const ActivationShape& shape, const void* x,
                             const float* scale, float under_root, float beside_root,
                             float* inverse, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, LengthForwardKernel<T>, BlocksFor(launch, shape.batch * shape.plane),
                 shape, static_cast<const T*>(x), scale, under_root, beside_root, inverse,
                 static_cast<T*>(y));
  });
}

// scale_gradient[c] = sum dy x inverse.
cudaError_t LengthGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                            const void* dy, const float* inverse, float* scale_gradient) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, LengthGradientKernel<T>, shape.channels, shape, static_cast<const T*>(x),
                 static_cast<const T*>(dy), inverse, scale_gradient);
  });
}

cudaError_t LengthBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                           const void* dy, const float* scale, const float* inverse,
                           float beside_root, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, LengthBackwardKernel<T>, BlocksFor(launch, shape.batch * shape.plane),
                 shape, static_cast<const T*>(x), static_cast<const T*>(dy), scale, inverse,
                 beside_root, static_cast<T*>(dx));
  });
}

// weight_ is the scale.
class L2Normalisation final : public WeightedOp<UnaryOp> {
 public:
  L2Normalisation(CudaEngine& engine, const L2NormalisationSpec& spec, int max_batch)
      : WeightedOp(false),
        engine_(engine),
        spec_(spec),
        inverse_(engine, spec.shape.plane() * max_batch, "L2 normalisation's lengths") {}

  bool reads_input() const override { return true; }
  int64_t bytes() const override { return inverse_.bytes(); }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, NormaliseLengths(engine_.launch(), engine_.ShapeOf(spec_.shape, pass.batch),
                                        input, weight_, spec_.under_root, spec_.beside_root,
                                        inverse_.data(), output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = engine_.ShapeOf(spec_.shape, pass.batch);
    if (is_trained()) {
      KUMO_CUDA(engine_, LengthGradients(launch, shape, input, grad_output, inverse_.data(),
                                         weight_gradient_));
    }
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, LengthBackward(launch, shape, input, grad_output, weight_, inverse_.data(),
                                      spec_.beside_root, grad_input));
  }

 private:
  CudaEngine& engine_;
  L2NormalisationSpec spec_;
  DeviceArray<float> inverse_;  // of the last Forward: 1 / length
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const L2NormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<L2Normalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
