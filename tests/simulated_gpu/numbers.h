// Arrays as the libraries take them, of float32, float16 or bfloat16: read into float32, and
// rounded when they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace kumo::simulated_gpu {

enum class Number { kFloat32, kFloat16, kBfloat16 };

inline size_t BytesOf(Number number) { return number == Number::kFloat32 ? 4 : 2; }

inline float Load(Number number, const void* array, int64_t index) {
  switch (number) {
    case Number::kFloat32:
      return static_cast<const float*>(array)[index];
    case Number::kFloat16:
      return __half2float(static_cast<const __half*>(array)[index]);
    case Number::kBfloat16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(array)[index]);
  }
  return 0.0f;
}

inline void Store(Number number, float value, int64_t index, void* array) {
  switch (number) {
    case Number::kFloat32:
      static_cast<float*>(array)[index] = value;
      return;
    case Number::kFloat16:
      static_cast<__half*>(array)[index] = __float2half_rn(value);
      return;
    case Number::kBfloat16:
      static_cast<__nv_bfloat16*>(array)[index] = __float2bfloat16_rn(value);
      return;
  }
}

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
