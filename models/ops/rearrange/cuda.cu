// Rearrangement of elements: one thread for each element of the output.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

// RearrangeSpec as a kernel's argument.
struct Places {
  int rank = 0;
  int64_t extents[8] = {};  // of the axes
  int64_t strides[8] = {};
  int64_t offset = 0;
};

// Calls body(place in the output's array, place in the input's) for the thread's numbers.
template <typename T, typename Body>
__device__ void ForEachNumber(const ActivationShape& input, const ActivationShape& output,
                              const Places& places, const Body& body) {
  const int64_t size = output.channels * output.plane;
  const int64_t input_size = input.channels * input.plane;
  for (int64_t n = FirstOfThread(); n < output.batch * size; n += ThreadsOfGrid()) {
    const int64_t sample = n / size;
    const int64_t i = n % size;
    int64_t rest = i;
    int64_t source = places.offset;
    for (int axis = places.rank - 1; axis >= 0; --axis) {
      source += rest % places.extents[axis] * places.strides[axis];
      rest /= places.extents[axis];
    }
    body(sample * size + PlaceOf<T>(output, i), sample * input_size + PlaceOf<T>(input, source));
  }
}

template <typename T>
__global__ void RearrangeForwardKernel(ActivationShape input, ActivationShape output, Places places,
                                       const T* x, T* y) {
  ForEachNumber<T>(input, output, places, [&](int64_t to, int64_t from) { y[to] = x[from]; });
}

template <typename T>
__global__ void RearrangeBackwardKernel(ActivationShape input, ActivationShape output,
                                        Places places, const T* dy, T* dx) {
  ForEachNumber<T>(input, output, places, [&](int64_t to, int64_t from) { dx[from] = dy[to]; });
}

cudaError_t Rearrange(const Launch& launch, const ActivationShape& input,
                      const ActivationShape& output, const Places& places, const void* x, void* y) {
  return WithNumber(output.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, RearrangeForwardKernel<T>, BlocksFor(launch, output.size()), input, output,
                 places, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

// dx holds zeros, or is as long as dy.
cudaError_t RearrangeBackward(const Launch& launch, const ActivationShape& input,
                              const ActivationShape& output, const Places& places, const void* dy,
                              void* dx) {
  return WithNumber(output.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, RearrangeBackwardKernel<T>, BlocksFor(launch, output.size()), input,
                 output, places, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

class RearrangeOp final : public UnaryOp {
 public:
  RearrangeOp(CudaEngine& engine, const RearrangeSpec& spec) : engine_(engine), spec_(spec) {
    places_.rank = static_cast<int>(spec.strides.size());
    for (int axis = 0; axis < places_.rank; ++axis) {
      places_.extents[axis] = spec.extents()[axis];
      places_.strides[axis] = spec.strides[axis];
    }
    places_.offset = spec.offset;
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_,
              Rearrange(engine_.launch(), engine_.ShapeOf(spec_.input, pass.batch),
                        engine_.ShapeOf(spec_.output, pass.batch), places_, input, output));
  }

  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    if (spec_.output.size() < spec_.input.size()) {
      const auto bytes = static_cast<size_t>(engine_.ActivationBytes(spec_.input, pass.batch));
      KUMO_CUDA(engine_, cudaMemsetAsync(grad_input, 0, bytes, engine_.stream()));
    }
    KUMO_CUDA(engine_, RearrangeBackward(engine_.launch(), engine_.ShapeOf(spec_.input, pass.batch),
                                         engine_.ShapeOf(spec_.output, pass.batch), places_,
                                         grad_output, grad_input));
  }

 private:
  CudaEngine& engine_;
  RearrangeSpec spec_;
  Places places_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const RearrangeSpec& spec, int) {
  return NewOp<RearrangeOp>(engine, spec);
}

}  // namespace kumo::cuda
