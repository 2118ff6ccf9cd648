// Transposition of matrices, with a conversion of the number type: to[k][column][row] =
// from[k][row][column].
//
// Three orders meet here: the host's and float32 activations (channels before positions), 16-bit
// activations (channels last), and filters as cuDNN wants them. Conversion and transposition are
// one pass, since memory is the limit of both.
//
// A thread computes result after result, in the order of the results, so neighbouring threads write
// neighbouring elements. Their reads lie a row apart, and share cache lines with later threads'
// reads: no shared memory is used. Matrices of one row or one column keep their order, so their
// indices need no division.
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

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
