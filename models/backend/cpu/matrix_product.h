// Matrix products of the CPU backend, by oneDNN's sgemm.
#pragma once

#include <cstdint>

namespace kumo::cpu {

struct Matrix {
  const float* data;
  char transposed;  // 'N' or 'T'
  int64_t row;      // floats between rows as they lie in memory
};

// to[rows][columns] = a . b, over `depth`; or += the product if `add`. On the caller's thread.
void MultiplyRows(int64_t rows, int64_t columns, int64_t depth, const Matrix& a, const Matrix& b,
                  bool add, float* to, int64_t to_row);

}  // namespace kumo::cpu
