#include "models/backend/cuda/matrix_product.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace kumo::cuda {
namespace {

// Workspace that cuBLASLt may use for sums in several parts.
constexpr size_t kWorkspace = size_t{32} << 20;
// Algorithms to try, if cuBLASLt refuses those that it has named first.
constexpr int kCandidates = 8;

uint32_t Alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<uint32_t>(std::min<uintptr_t>(256, address & (~address + 1)));
}

}  // namespace

MatrixProduct::MatrixProduct(CudaEngine& engine, const ProductShape& shape,
                             const ProductArrays& arrays)
    : what_("a product of " + std::to_string(shape.rows) + "x" + std::to_string(shape.depth) +
            " and " + std::to_string(shape.depth) + "x" + std::to_string(shape.columns)) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    KUMO_CUDA(engine,
              cublasLtMatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof(value)));
  };
  const auto lay_out = [&](cudaDataType_t type, int64_t rows, int64_t columns, Layout* layout) {
    KUMO_CUDA(engine,
              cublasLtMatrixLayoutCreate(layout->receive(), type, static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), rows));
  };
  const bool tf32 = engine.options().tf32 && shape.operands == CUDA_R_32F;
  KUMO_CUDA(engine, cublasLtMatmulDescCreate(
                        operation_.receive(),
                        tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, shape.epilogue);
  SetBias(engine, arrays.bias);
  lay_out(shape.operands, shape.transpose_a ? shape.depth : shape.rows,
          shape.transpose_a ? shape.rows : shape.depth, &a_);
  lay_out(shape.operands, shape.transpose_b ? shape.columns : shape.depth,
          shape.transpose_b ? shape.depth : shape.columns, &b_);
  lay_out(shape.result, shape.rows, shape.columns, &d_);

  engine.ReserveWorkspace(kWorkspace);
  Preference preference;
  KUMO_CUDA(engine, cublasLtMatmulPreferenceCreate(preference.receive()));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    KUMO_CUDA(engine, cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value,
                                                           sizeof(value)));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Alignment(arrays.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Alignment(arrays.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Alignment(arrays.d));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Alignment(arrays.d));
  // Partial sums stay in float32.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  if (!engine.Ready()) return;
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  int count = 0;
  const cublasStatus_t answer = cublasLtMatmulAlgoGetHeuristic(
      engine.cublas(), operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(), preference.get(),
      kCandidates, found.data(), &count);
  if (answer == CUBLAS_STATUS_SUCCESS) {
    for (const auto& candidate : std::span(found).first(count)) {
      if (candidate.state == CUBLAS_STATUS_SUCCESS) algorithms_.push_back(candidate.algo);
    }
  }
  if (answer != CUBLAS_STATUS_NOT_SUPPORTED) {
    engine.Check(answer, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
  }
}

bool MatrixProduct::TakesBias(const ProductShape& shape, const void* bias) {
  return bias != nullptr && Alignment(bias) >= 16 && shape.rows > 1 && shape.columns > 1;
}

void MatrixProduct::SetBias(CudaEngine& engine, const void* bias) const {
  if (bias == nullptr) return;
  KUMO_CUDA(engine, cublasLtMatmulDescSetAttribute(
                        operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
}

void MatrixProduct::Run(CudaEngine& engine, const ProductArrays& arrays) {
  if (algorithms_.empty()) {
    engine.Remember(FailedPrecondition("cuBLAS has no algorithm for " + what_));
    return;
  }
  SetBias(engine, arrays.bias);
  const float one = 1.0f;
  const float zero = 0.0f;
  const auto multiply = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return cublasLtMatmul(engine.cublas(), operation_.get(), &one, arrays.a, a_.get(), arrays.b,
                          b_.get(), &zero, arrays.d, d_.get(), arrays.d, d_.get(), &algorithm,
                          engine.workspace(), engine.workspace_bytes(), engine.stream());
  };
  if (algorithms_.size() > 1 && engine.Ready()) {
    // On some cards cublasLtMatmul is reported to refuse what the heuristic has named, where arrays
    // are aligned differently.
    const auto runs = [&](const auto& candidate) {
      return multiply(candidate) == CUBLAS_STATUS_SUCCESS;
    };
    const auto first = std::ranges::find_if(algorithms_, runs);
    if (first != algorithms_.end()) {
      algorithms_ = {*first};
      return;
    }
  }
  KUMO_CUDA(engine, multiply(algorithms_.front()));
}

}  // namespace kumo::cuda
