// Arrays as the libraries take them, of float32, float16 or bfloat16: read into float32, and
// rounded when they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kumo::simulated_gpu {

enum class Number { kFloat32, kFloat16, kBfloat16 };

size_t BytesOf(Number number);
float Load(Number number, const void* array, int64_t index);
void Store(Number number, float value, int64_t index, void* array);

// Row-major c = a b + beta c, on the host.
struct MatrixShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool transpose_a = false;  // a is [depth][rows]
  bool transpose_b = false;  // b is [columns][depth]
};
void Multiply(const MatrixShape& shape, const float* a, const float* b, float beta, float* c);

}  // namespace kumo::simulated_gpu
