// Matrix products by cuBLASLt, with a bias in the epilogue: planned once for a shape, then queued.
//
// Owned by an op or by the backend; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/backend/cuda/cuda_engine.h"
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
  cudaDataType_t operands = CUDA_R_32F;  // a and b
  cudaDataType_t result = CUDA_R_32F;    // d, and the bias
};

// The arrays of a product. `bias`: what the epilogue adds (BIAS: one number a row of d) or makes
// (BGRADB: the sums of op(b)'s columns over depth); null where there is none.
struct ProductArrays {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
};

class MatrixProduct {
 public:
  MatrixProduct() = default;
  // `arrays` are those that Run will be given, or aligned as well: the algorithm is chosen for
  // their alignment.
  MatrixProduct(CudaEngine& engine, const ProductShape& shape, const ProductArrays& arrays);

  // Whether an epilogue may read or write this bias. cuBLASLt's epilogues are reported to fail on
  // cards if the bias is not aligned to 16 bytes, or if the result has one row or one column.
  static bool TakesBias(const ProductShape& shape, const void* bias);

  // Requires a product for which there is an algorithm; else that is the engine's failure. The
  // first run is not recorded.
  void Run(CudaEngine& engine, const ProductArrays& arrays);
  // Whether it was planned and cuBLAS has an algorithm for it.
  explicit operator bool() const { return !algorithms_.empty(); }

 private:
  using Operation = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using Layout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

  void SetBias(CudaEngine& engine, const void* bias) const;

  Operation operation_;
  Layout a_, b_, d_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;  // the best first; one after the first run
  std::string what_;                              // for errors
};

}  // namespace kumo::cuda
