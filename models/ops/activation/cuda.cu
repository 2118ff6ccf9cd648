// Activation functions, each written once as a formula. A NaN stays a NaN.
#include "models/backend/cuda/elementwise.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/activation/op.h"

namespace kumo::cuda {
namespace {

// A function f has Of(x) = f(x) and Of2(from, g) = g f', where g is the gradient with respect to
// the value. `from` is the value y or the input x (DerivesFromInput).
struct ReluFunction {
  __device__ static float Of(float x) { return x < 0.0f ? 0.0f : x; }
  __device__ static float Of2(float y, float g) { return y > 0.0f ? g : 0.0f; }
};
struct LeakyReluFunction {
  float slope;
  __device__ float Of(float x) const { return x < 0.0f ? x * slope : x; }
  __device__ float Of2(float y, float g) const { return y > 0.0f ? g : g * slope; }
};
struct GeluFunction {
  // The share of a standard normal distribution below x.
  __device__ static float Below(float x) { return 0.5f * erfcf(x * -0.707106781f); }
  __device__ static float Of(float x) { return x * Below(x); }
  __device__ static float Of2(float x, float g) {
    return g * (Below(x) + x * (0.398942280f * expf(-0.5f * x * x)));
  }
};
// x (1 + tanh(u)) / 2 is x / (1 + exp(-2 u)), with 2 u = x (a + b x^2). Beyond |x| = 30 the result
// no longer changes, but exp overflows.
struct GeluTanhFunction {
  static constexpr float kA = 1.595769122f;   // 2 sqrt(2 / pi)
  static constexpr float kB = 0.0713548163f;  // 0.044715 times that
  __device__ static float Share(float x) { return 1.0f / (1.0f + expf(-x * (kA + kB * x * x))); }
  __device__ static float Of(float x) { return x < -30.0f ? 0.0f : x * Share(x); }
  __device__ static float Of2(float x, float g) {
    const float v = x < -30.0f ? -30.0f : (x > 30.0f ? 30.0f : x);
    const float s = Share(v);
    return g * (s + v * s * (1.0f - s) * (kA + 3 * kB * v * v));
  }
};
struct SiluFunction {
  __device__ static float Of(float x) { return x / (1.0f + expf(-x)); }
  __device__ static float Of2(float x, float g) {
    const float v = x < -80.0f ? -80.0f : (x > 80.0f ? 80.0f : x);
    const float s = 1.0f / (1.0f + expf(-v));
    return g * (s + v * s * (1.0f - s));
  }
};
struct TanhFunction {
  __device__ static float Of(float x) { return tanhf(x); }
  __device__ static float Of2(float y, float g) { return g * (1.0f - y * y); }
};
struct SigmoidFunction {
  __device__ static float Of(float x) { return 1.0f / (1.0f + expf(-x)); }
  __device__ static float Of2(float y, float g) { return g * (y * (1.0f - y)); }
};

// call(function)
template <typename Call>
cudaError_t WithFunction(const ActivationSpec& spec, const Call& call) {
  switch (spec.activation) {
    case Activation::kRelu:
      return call(ReluFunction());
    case Activation::kLeakyRelu:
      return call(LeakyReluFunction{spec.slope});
    case Activation::kGelu:
      return call(GeluFunction());
    case Activation::kGeluTanh:
      return call(GeluTanhFunction());
    case Activation::kSilu:
      return call(SiluFunction());
    case Activation::kTanh:
      return call(TanhFunction());
    case Activation::kSigmoid:
      return call(SigmoidFunction());
  }
  return cudaErrorInvalidValue;
}

cudaError_t ActivationForward(const Launch& launch, Precision precision, const ActivationSpec& spec,
                              const void* x, int64_t n, void* y) {
  return WithFunction(spec,
                      [&](const auto& f) { return LaunchMap(launch, precision, f, x, n, y); });
}

cudaError_t ActivationBackward(const Launch& launch, Precision precision,
                               const ActivationSpec& spec, const void* from, const void* dy,
                               int64_t n, void* dx) {
  return WithFunction(
      spec, [&](const auto& f) { return LaunchMap2(launch, precision, f, from, dy, n, dx); });
}

struct ActivationArithmetic {
  static void Forward(CudaEngine& engine, const ActivationSpec& spec, int batch, const void* x,
                      void* y) {
    KUMO_CUDA(engine, ActivationForward(engine.launch(), engine.precision(), spec, x,
                                        spec.shape.size() * batch, y));
  }
  static void Backward(CudaEngine& engine, const ActivationSpec& spec, int batch, const void* from,
                       const void* dy, void* dx) {
    KUMO_CUDA(engine, ActivationBackward(engine.launch(), engine.precision(), spec, from, dy,
                                         spec.shape.size() * batch, dx));
  }
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const ActivationSpec& spec, int) {
  return NewOp<ActivationOp<CudaEngine, ActivationArithmetic>>(engine, spec);
}

}  // namespace kumo::cuda
