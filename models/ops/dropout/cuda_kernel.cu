// Dropout's masks, which need not be kept, and are the CPU's.
#include "models/backend/cuda/dropout_stream.cuh"
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// A thread makes four numbers: one block of the generator. Numbers are drawn in the order of
// samples, channels, plane, wherever they lie.
template <typename T>
__global__ void DropKernel(const StepBlock* step, int layer, float ratio, float keep,
                           ActivationShape shape, const T* from, T* to) {
  const DropoutNumbers numbers(step, layer);
  const int64_t size = shape.channels * shape.plane;
  const int64_t n = shape.batch * size;
  for (int64_t b = FirstOfThread(); 4 * b < n; b += ThreadsOfGrid()) {
    const float4 block = numbers.Block(static_cast<uint64_t>(b));
    const float drawn[4] = {block.x, block.y, block.z, block.w};
    for (int i = 0; i < 4 && 4 * b + i < n; ++i) {
      const int64_t drawn_at = 4 * b + i;
      const int64_t of_sample = drawn_at % size;
      const int64_t place = drawn_at - of_sample + PlaceOf<T>(shape, of_sample);
      Store(drawn[i] < ratio ? 0.0f : ToFloat(from[place]) * keep, to + place);
    }
  }
}

}  // namespace

cudaError_t Drop(const Launch& launch, const StepBlock* step, int layer, float ratio,
                 const ActivationShape& shape, const void* from, void* to) {
  return WithNumber(shape.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, DropKernel<T>, BlocksFor(launch, (shape.size() + 3) / 4), step, layer,
                 ratio, 1.0f / (1.0f - ratio), shape, static_cast<const T*>(from),
                 static_cast<T*>(to));
  });
}

}  // namespace kumo::cuda
