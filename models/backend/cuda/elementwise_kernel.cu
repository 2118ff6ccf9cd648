// Activations: one pass over the array. A number that is not one stays one.
#include "models/backend/cuda/grid.cuh"

namespace kumo::cuda {
namespace {

template <typename F>
__global__ void Map(const float* from, int64_t n, float* to, F f) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) to[i] = f(from[i]);
}

template <typename F>
__global__ void Map2(const float* a, const float* b, int64_t n, float* to, F f) {
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) to[i] = f(a[i], b[i]);
}

struct ReluOf {
  __device__ float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
struct TanhOf {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct SigmoidOf {
  __device__ float operator()(float x) const { return 1.0f / (1.0f + expf(-x)); }
};
struct ReluSlope {
  __device__ float operator()(float y, float g) const { return y > 0.0f ? g : 0.0f; }
};
struct TanhSlope {
  __device__ float operator()(float y, float g) const { return g * (1.0f - y * y); }
};
struct SigmoidSlope {
  __device__ float operator()(float y, float g) const { return g * y * (1.0f - y); }
};

template <typename F>
cudaError_t LaunchMap(const Launch& launch, const float* from, int64_t n, float* to, F f) {
  return Queue(launch, Map<F>, BlocksFor(launch, n), from, n, to, f);
}

template <typename F>
cudaError_t LaunchMap2(const Launch& launch, const float* a, const float* b, int64_t n, float* to,
                       F f) {
  return Queue(launch, Map2<F>, BlocksFor(launch, n), a, b, n, to, f);
}

__global__ void Store(StepBlock step, StepBlock* to) {
  if (FirstOfThread() == 0) *to = step;
}

}  // namespace

cudaError_t StoreStep(const Launch& launch, const StepBlock& step, StepBlock* to) {
  return Queue(launch, Store, 1, step, to);
}

cudaError_t Relu(const Launch& launch, const float* from, int64_t n, float* to) {
  return LaunchMap(launch, from, n, to, ReluOf());
}
cudaError_t Tanh(const Launch& launch, const float* from, int64_t n, float* to) {
  return LaunchMap(launch, from, n, to, TanhOf());
}
cudaError_t Sigmoid(const Launch& launch, const float* from, int64_t n, float* to) {
  return LaunchMap(launch, from, n, to, SigmoidOf());
}
cudaError_t ReluBackward(const Launch& launch, const float* y, const float* grad_output, int64_t n,
                         float* grad_input) {
  return LaunchMap2(launch, y, grad_output, n, grad_input, ReluSlope());
}
cudaError_t TanhBackward(const Launch& launch, const float* y, const float* grad_output, int64_t n,
                         float* grad_input) {
  return LaunchMap2(launch, y, grad_output, n, grad_input, TanhSlope());
}
cudaError_t SigmoidBackward(const Launch& launch, const float* y, const float* grad_output,
                            int64_t n, float* grad_input) {
  return LaunchMap2(launch, y, grad_output, n, grad_input, SigmoidSlope());
}

}  // namespace kumo::cuda
