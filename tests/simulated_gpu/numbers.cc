#include "tests/simulated_gpu/numbers.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <glog/logging.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

namespace kumo::simulated_gpu {

size_t BytesOf(Number number) { return number == Number::kFloat32 ? 4 : 2; }

float Load(Number number, const void* array, int64_t index) {
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

void Store(Number number, float value, int64_t index, void* array) {
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

void Multiply(const MatrixShape& shape, const float* a, const float* b, float beta, float* c) {
  // By one thread: these products are small, and tests run side by side.
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const dnnl_status_t status =
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', shape.rows,
                 shape.columns, shape.depth, 1.0f, a, shape.transpose_a ? shape.rows : shape.depth,
                 b, shape.transpose_b ? shape.depth : shape.columns, beta, c, shape.columns);
  omp_set_num_threads(threads);
  CHECK_EQ(status, dnnl_success);
}

}  // namespace kumo::simulated_gpu
