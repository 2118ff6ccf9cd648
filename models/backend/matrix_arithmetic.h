// Arithmetic of a device on matrices of float32 numbers, of which an optimiser's step of a matrix
// is made. Matrices are dense, row by row. Results are the same bits each time.
//
// A part of Backend. Not thread-safe: one caller at a time.
#pragma once

#include <cstdint>

#include "common/job/parameter_layout.h"

namespace kumo {

// to[rows][columns] = a b, over `depth`: a is [rows][depth], or [depth][rows] if it is transposed,
// and b likewise.
struct MatrixProductShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  auto operator<=>(const MatrixProductShape&) const = default;
};

class MatrixArithmetic {
 public:
  virtual ~MatrixArithmetic() = default;

  // Requires three arrays that begin where Allocate's do, `to` another one than a and b.
  virtual void MultiplyMatrices(const MatrixProductShape& shape, const float* a, const float* b,
                                float* to) = 0;
  // to = p x + q y, for n numbers; `to` may be x or y.
  virtual void Combine(float p, const float* x, float q, const float* y, int64_t n, float* to) = 0;
  // x /= their L2 norm + epsilon, for n numbers.
  virtual void Normalise(float epsilon, int64_t n, float* x) = 0;
  // Optimiser::DirectionOfMatrix and StepMatrix of the current step's optimiser, with the factor of
  // ArenaArithmetic::MeasureGradients; nothing moves if that is 0.
  virtual void DirectionOfMatrix(const float* gradient, int64_t n, float* mean, float* to) = 0;
  virtual void StepMatrix(Segment segment, const StepFactors& factors, float stretch,
                          const float* x, int64_t n, float* weights) = 0;
};

}  // namespace kumo
