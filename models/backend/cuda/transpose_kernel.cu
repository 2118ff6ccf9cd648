// Transposition of elements between the orders and number types of layers, libraries and the host.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

// A thread makes result after result: those of neighbours lie side by side.
template <typename From, typename To>
__global__ void TransposeKernel(const From* from, Planes planes, To* to) {
  const int64_t plane = planes.rows * planes.columns;
  const bool moves = planes.rows > 1 && planes.columns > 1;
  for (int64_t i = FirstOfThread(); i < planes.count * plane; i += ThreadsOfGrid()) {
    int64_t source = i;
    if (moves) {
      const int64_t at = i % plane;  // column * rows + row
      source += at % planes.rows * planes.columns + at / planes.rows - at;
    }
    Store(ToFloat(from[source]), to + i);
  }
}

}  // namespace

cudaError_t Transpose(const Launch& launch, Precision from_precision, const void* from,
                      const Planes& planes, Precision to_precision, void* to) {
  return WithNumber(from_precision, [&](auto source) {
    return WithNumber(to_precision, [&](auto result) {
      using From = decltype(source);
      using To = decltype(result);
      return Queue(launch, TransposeKernel<From, To>,
                   BlocksFor(launch, planes.count * planes.rows * planes.columns),
                   static_cast<const From*>(from), planes, static_cast<To*>(to));
    });
  });
}

}  // namespace kumo::cuda
