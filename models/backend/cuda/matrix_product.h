// Matrix products by cuBLASLt, with a bias in the epilogue: planned once for a shape, then queued.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/backend/cuda/engine.h"
#include "models/backend/cuda/handle.h"

namespace kumo::cuda {

// In cuBLAS's words: column-major, d[rows][columns] = op(a) op(b) over `depth`.
struct ProductShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

class MatrixProduct {
 public:
  MatrixProduct() = default;
  // `bias`: what the epilogue adds (BIAS: one number a row of d) or makes (BGRADB: the sums of
  // op(b)'s columns over depth); null where there is none. All four are what Run will be given, or
  // are aligned as well: the algorithm is chosen for their alignment.
  MatrixProduct(Engine& engine, const ProductShape& shape, const float* a, const float* b,
                const float* d, const float* bias);

  void Run(Engine& engine, const float* a, const float* b, float* d) const;
  explicit operator bool() const { return static_cast<bool>(operation_); }

 private:
  using Operation = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using Layout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

  Operation operation_;
  Layout a_, b_, d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace kumo::cuda
