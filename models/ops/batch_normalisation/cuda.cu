// Batch normalisation over samples and positions (Ioffe & Szegedy 2015). cuDNN keeps another
// running variance (unbiased) than the CPU backend and the model files of the field, hence own
// kernels.
#include <cstdint>
#include <memory>

#include <glog/logging.h>

#include "models/backend/cuda/channels.cuh"
#include "models/backend/cuda/normalisation.h"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

// Arrays are [channels]. Functions that take `scratch` need ChannelScratch() bytes.
struct NormNumbers : NormalisationArrays {
  bool relu = false;  // y is max(0, the normalised number)
  float epsilon = 0;
  float momentum = 0;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
};

// Sums of x - s and of its square, s a number of the channel: near enough to the mean that nothing
// cancels.
template <typename T>
struct ShiftedTerms {
  using Constants = float;  // s
  const T* x;
  ActivationShape shape;

  __device__ float ConstantsOf(int64_t channel) const {
    return ToFloat(x[PlaceOfRow<T>(shape, 0, channel)]);
  }
  template <int kPack>
  __device__ void Add(const float* shifts, int64_t place, Pair* sums) const {
    const auto pack = Pack<T, kPack>::Load(x + place);
    for (int j = 0; j < kPack; ++j) {
      const float distance = ToFloat(pack.at[j]) - shifts[j];
      sums[j].first += distance;
      sums[j].second += distance * distance;
    }
  }
};

template <typename T>
struct KeepMoments {
  ShiftedTerms<T> terms;
  NormNumbers numbers;

  __device__ void operator()(int64_t c, double sum, double squares) const {
    const auto count = static_cast<double>(terms.shape.batch * terms.shape.plane);
    const double from_shift = sum / count;
    const auto mean = static_cast<float>(static_cast<double>(terms.ConstantsOf(c)) + from_shift);
    const auto variance = static_cast<float>(fmax(squares / count - from_shift * from_shift, 0.0));
    const float keep = numbers.momentum;
    numbers.mean[c] = mean;
    numbers.inverse[c] = 1.0f / sqrtf(variance + numbers.epsilon);
    numbers.running_mean[c] = keep * numbers.running_mean[c] + (1.0f - keep) * mean;
    numbers.running_variance[c] = keep * numbers.running_variance[c] + (1.0f - keep) * variance;
  }
};

__global__ void RunningKernel(int64_t channels, NormNumbers numbers) {
  const int64_t c = FirstOfThread();
  if (c >= channels) return;
  numbers.mean[c] = numbers.running_mean[c];
  numbers.inverse[c] = 1.0f / sqrtf(numbers.running_variance[c] + numbers.epsilon);
}

// y = factor x + offset of a channel.
struct Line {
  float factor;
  float offset;

  __device__ static Line Of(const NormNumbers& numbers, int64_t c) {
    const float factor = numbers.scale[c] * numbers.inverse[c];
    return {factor, numbers.shift[c] - factor * numbers.mean[c]};
  }
  __device__ float At(float x) const { return x * factor + offset; }
};

template <typename T>
struct Normaliser {
  using Constants = Line;
  const T* x;
  T* y;
  NormNumbers numbers;

  __device__ Line ConstantsOf(int64_t channel) const { return Line::Of(numbers, channel); }
  template <int kPack>
  __device__ void Do(const Line* lines, int64_t place) const {
    auto pack = Pack<T, kPack>::Load(x + place);
    for (int j = 0; j < kPack; ++j) {
      const float normal = lines[j].At(ToFloat(pack.at[j]));
      Store(numbers.relu && normal < 0.0f ? 0.0f : normal, &pack.at[j]);
    }
    pack.StoreTo(y + place);
  }
};

// Gradient in front of the ReLU: 0 if the ReLU's input was not positive, which x tells as well as
// y.
__device__ float BeforeRelu(const NormNumbers& numbers, const Line& line, float x, float dy) {
  return numbers.relu && !(line.At(x) > 0.0f) ? 0.0f : dy;
}

// Sums of dy and of dy (x - mean).
template <typename T>
struct GradientTerms {
  struct Constants {
    Line line;
    float mean;
  };
  const T* x;
  const T* dy;
  NormNumbers numbers;

  __device__ Constants ConstantsOf(int64_t channel) const {
    return {Line::Of(numbers, channel), numbers.mean[channel]};
  }
  template <int kPack>
  __device__ void Add(const Constants* constants, int64_t place, Pair* sums) const {
    const auto values = Pack<T, kPack>::Load(x + place);
    const auto gradients = Pack<T, kPack>::Load(dy + place);
    for (int j = 0; j < kPack; ++j) {
      const float value = ToFloat(values.at[j]);
      const float gradient =
          BeforeRelu(numbers, constants[j].line, value, ToFloat(gradients.at[j]));
      sums[j].first += gradient;
      sums[j].second += gradient * (value - constants[j].mean);
    }
  }
};

struct KeepGradients {
  NormNumbers numbers;

  __device__ void operator()(int64_t c, double sum_dy, double sum_dy_x) const {
    numbers.shift_gradient[c] = static_cast<float>(sum_dy);
    numbers.scale_gradient[c] = static_cast<float>(sum_dy_x) * numbers.inverse[c];
  }
};

// With x' = (x - mean) inverse and m numbers in the channel:
// dx = scale inverse (dy - sum dy / m - x' sum(dy x') / m), and scale inverse dy if mean and
// inverse are the running ones, which do not depend on x.
template <typename T>
struct BackwardPass {
  struct Constants {
    Line line;
    float mean;
    float inverse;
    float mean_gradient;         // sum dy / m
    float mean_gradient_normal;  // sum(dy x') / m
  };
  const T* x;
  const T* dy;
  T* dx;
  NormNumbers numbers;
  float per_number;  // 1 / m

  __device__ Constants ConstantsOf(int64_t c) const {
    const bool frozen = numbers.scale_gradient == nullptr;
    return {Line::Of(numbers, c), numbers.mean[c], numbers.inverse[c],
            frozen ? 0.0f : numbers.shift_gradient[c] * per_number,
            frozen ? 0.0f : numbers.scale_gradient[c] * per_number};
  }
  template <int kPack>
  __device__ void Do(const Constants* constants, int64_t place) const {
    const auto values = Pack<T, kPack>::Load(x + place);
    auto pack = Pack<T, kPack>::Load(dy + place);
    for (int j = 0; j < kPack; ++j) {
      const Constants& k = constants[j];
      const float value = ToFloat(values.at[j]);
      const float gradient = BeforeRelu(numbers, k.line, value, ToFloat(pack.at[j]));
      const float normal = (value - k.mean) * k.inverse;
      Store(k.line.factor * (gradient - (k.mean_gradient + normal * k.mean_gradient_normal)),
            &pack.at[j]);
    }
    pack.StoreTo(dx + place);
  }
};

// mean and inverse; the running ones move by 1 - momentum.
cudaError_t NormMoments(const Launch& launch, const ActivationShape& shape, const void* x,
                        const NormNumbers& numbers, void* scratch) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    const ShiftedTerms<T> terms = {static_cast<const T*>(x), shape};
    return SumChannels<T>(launch, shape, terms, KeepMoments<T>{terms, numbers}, scratch);
  });
}

// mean and inverse from the running ones.
cudaError_t NormRunningMoments(const Launch& launch, int64_t channels, const NormNumbers& numbers) {
  return Queue(launch, RunningKernel, (channels + kThreads - 1) / kThreads, channels, numbers);
}

cudaError_t Normalise(const Launch& launch, const ActivationShape& shape, const void* x,
                      const NormNumbers& numbers, void* y) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return MapChannels<T>(launch, shape,
                          Normaliser<T>{static_cast<const T*>(x), static_cast<T*>(y), numbers});
  });
}

// shift_gradient = sum dy, scale_gradient = sum dy (x - mean) inverse.
cudaError_t NormGradients(const Launch& launch, const ActivationShape& shape, const void* x,
                          const void* dy, const NormNumbers& numbers, void* scratch) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return SumChannels<T>(
        launch, shape,
        GradientTerms<T>{static_cast<const T*>(x), static_cast<const T*>(dy), numbers},
        KeepGradients{numbers}, scratch);
  });
}

// After those, unless the op is not trained.
cudaError_t NormBackward(const Launch& launch, const ActivationShape& shape, const void* x,
                         const void* dy, const NormNumbers& numbers, void* dx) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    const auto per_number = 1.0f / static_cast<float>(shape.batch * shape.plane);
    return MapChannels<T>(launch, shape,
                          BackwardPass<T>{static_cast<const T*>(x), static_cast<const T*>(dy),
                                          static_cast<T*>(dx), numbers, per_number});
  });
}

class BatchNormalisation final : public Normalisation {
 public:
  BatchNormalisation(CudaEngine& engine, const BatchNormalisationSpec& spec, int max_batch)
      : Normalisation(engine, spec.shape, true, spec.shape.channels(), "batch normalisation's"),
        spec_(spec) {
    CHECK(!spec.activation || spec.activation == Activation::kRelu);
    engine.ReserveWorkspace(ChannelScratch(engine.ShapeOf(spec.shape, max_batch)));
  }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), 4u);
    Normalisation::Bind(weights.first(2), gradients.first(2));
    running_mean_ = weights[2];
    running_variance_ = weights[3];
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = ShapeOf(pass);
    if (pass.training && !spec_.frozen) {
      KUMO_CUDA(engine_, NormMoments(launch, shape, input, numbers(), engine_.workspace()));
    } else {
      KUMO_CUDA(engine_, NormRunningMoments(launch, shape.channels, numbers()));
    }
    KUMO_CUDA(engine_, Normalise(launch, shape, input, numbers(), output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void*, const void* grad_output,
                     void* grad_input) override {
    const Launch launch = engine_.launch();
    const ActivationShape shape = ShapeOf(pass);
    if (is_trained()) {
      KUMO_CUDA(engine_,
                NormGradients(launch, shape, input, grad_output, numbers(), engine_.workspace()));
    }
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, NormBackward(launch, shape, input, grad_output, numbers(), grad_input));
  }

 private:
  NormNumbers numbers() {
    return {arrays(),      spec_.activation.has_value(),
            spec_.epsilon, spec_.momentum,
            running_mean_, running_variance_};
  }

  BatchNormalisationSpec spec_;
  float* running_mean_ = nullptr;
  float* running_variance_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const BatchNormalisationSpec& spec,
                                   int max_batch) {
  return NewOp<BatchNormalisation>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
