// Numbers in other places: a thread for each of the output.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

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
__global__ void ForwardKernel(ActivationShape input, ActivationShape output, Places places,
                              const T* x, T* y) {
  ForEachNumber<T>(input, output, places, [&](int64_t to, int64_t from) { y[to] = x[from]; });
}

template <typename T>
__global__ void BackwardKernel(ActivationShape input, ActivationShape output, Places places,
                               const T* dy, T* dx) {
  ForEachNumber<T>(input, output, places, [&](int64_t to, int64_t from) { dx[from] = dy[to]; });
}

}  // namespace

cudaError_t Rearrange(const Launch& launch, const ActivationShape& input,
                      const ActivationShape& output, const Places& places, const void* x, void* y) {
  return WithNumber(output.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, ForwardKernel<T>, BlocksFor(launch, output.size()), input, output, places,
                 static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t RearrangeBackward(const Launch& launch, const ActivationShape& input,
                              const ActivationShape& output, const Places& places, const void* dy,
                              void* dx) {
  return WithNumber(output.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, BackwardKernel<T>, BlocksFor(launch, output.size()), input, output, places,
                 static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace kumo::cuda
