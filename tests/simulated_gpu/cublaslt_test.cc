// The simulated cuBLASLt against three loops, and what it refuses.
#include <cublasLt.h>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/simulated_gpu/simulated_gpu.h"

namespace kumo::simulated_gpu {
namespace {

constexpr int kRows = 5;
constexpr int kColumns = 4;
constexpr int kDepth = 7;
constexpr int kLeading = 9;  // more than any matrix has rows

class CublasLtTest : public testing::Test {
 protected:
  CublasLtTest() {
    Reset();
    EXPECT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    Rng rng(1, RngPurpose::kTest);
    for (std::vector<float>* matrix : {&a_, &b_, &d_, &bias_}) {
      matrix->resize(kLeading * kLeading);
      for (float& x : *matrix) x = rng.NextUniform(-1, 1);
    }
  }
  ~CublasLtTest() override {
    for (const cublasLtMatrixLayout_t layout : layouts_) (void)cublasLtMatrixLayoutDestroy(layout);
    (void)cublasLtMatmulDescDestroy(operation_);
    (void)cublasLtDestroy(handle_);
    Reset();
  }

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, T value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasLtMatrixLayout_t Layout(int rows, int columns, int leading = kLeading) {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<uint64_t>(rows),
                                         static_cast<uint64_t>(columns), leading),
              CUBLAS_STATUS_SUCCESS);
    layouts_.push_back(layout);
    return layout;
  }
  // On the host's memory, since the device's is that too.
  cublasStatus_t Run(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t d) {
    const float two = 2.0f;
    const float half = 0.5f;
    const cublasStatus_t status =
        cublasLtMatmul(handle_, operation_, &two, a_.data(), a, b_.data(), b, &half, d_.data(), d,
                       d_.data(), d, nullptr, nullptr, 0, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return status;
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  std::vector<cublasLtMatrixLayout_t> layouts_;
  std::vector<float> a_, b_, d_, bias_;
};

TEST_F(CublasLtTest, ProductsAndEpiloguesAreThoseOfThreeLoops) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const cublasLtEpilogue_t epilogue :
           {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
            CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
        SCOPED_TRACE(testing::Message() << transpose_a << transpose_b << " epilogue " << epilogue);
        Set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N});
        Set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t{transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N});
        Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{epilogue});
        Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data());
        // Column-major: element (r, c) is at r + c * leading.
        const auto a = [&](int r, int k) {
          return a_[transpose_a ? k + r * kLeading : r + k * kLeading];
        };
        const auto b = [&](int k, int c) {
          return b_[transpose_b ? c + k * kLeading : k + c * kLeading];
        };
        const std::vector<float> before = d_;
        const std::vector<float> bias = bias_;
        ASSERT_EQ(Run(transpose_a ? Layout(kDepth, kRows) : Layout(kRows, kDepth),
                      transpose_b ? Layout(kColumns, kDepth) : Layout(kDepth, kColumns),
                      Layout(kRows, kColumns)),
                  CUBLAS_STATUS_SUCCESS);
        for (int r = 0; r < kRows; ++r) {
          for (int c = 0; c < kColumns; ++c) {
            float sum = 0;
            for (int k = 0; k < kDepth; ++k) sum += a(r, k) * b(k, c);
            float expected = 2 * sum + 0.5f * before[r + c * kLeading];
            if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) expected += bias[r];
            if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) expected = std::max(expected, 0.0f);
            EXPECT_NEAR(d_[r + c * kLeading], expected, 1e-5);
          }
          EXPECT_EQ(d_[kRows], before[kRows]) << "what lies between the columns is not touched";
        }
        if (epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB) {
          const bool of_a = epilogue == CUBLASLT_EPILOGUE_BGRADA;
          for (int i = 0; i < (of_a ? kRows : kColumns); ++i) {
            float sum = 0;
            for (int k = 0; k < kDepth; ++k) sum += of_a ? a(i, k) : b(k, i);
            EXPECT_NEAR(bias_[i], sum, 1e-5);
          }
        }
      }
    }
  }
}

TEST_F(CublasLtTest, ShapesThatDoNotFitAreRefused) {
  const auto a = Layout(kRows, kDepth);
  const auto b = Layout(kDepth, kColumns);
  const auto d = Layout(kRows, kColumns);
  EXPECT_EQ(Run(a, b, d), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Run(a, a, d), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Run(Layout(kRows, kDepth, kRows - 1), b, d), CUBLAS_STATUS_INVALID_VALUE);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(Run(a, b, d), CUBLAS_STATUS_INVALID_VALUE) << "a bias that is nowhere";
}

TEST_F(CublasLtTest, AnEpilogueWantsAnAlignedBiasAndAMatrix) {
  const auto a = Layout(kRows, kDepth);
  const auto b = Layout(kDepth, kColumns);
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data());
  EXPECT_EQ(Run(a, b, Layout(kRows, kColumns)), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Run(Layout(1, kDepth), b, Layout(1, kColumns)), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Run(a, Layout(kDepth, 1), Layout(kRows, 1)), CUBLAS_STATUS_NOT_SUPPORTED);
  Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_.data() + 2);
  EXPECT_EQ(Run(a, b, Layout(kRows, kColumns)), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasLtTest, ReluOfWhatIsNoNumberIsZero) {
  a_[0] = NAN;
  Set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_RELU});
  ASSERT_EQ(Run(Layout(kRows, kDepth), Layout(kDepth, kColumns), Layout(kRows, kColumns)),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(d_[0], 0.0f);
}

TEST_F(CublasLtTest, AnAttributeOfAnotherSizeIsRefused) {
  const int64_t wide = CUBLAS_OP_T;
  EXPECT_EQ(
      cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof(wide)),
      CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasLtTest, AnAlgorithmNeedsTheWorkspaceThatItWasChosenWith) {
  const auto a = Layout(kRows, kDepth);
  const auto b = Layout(kDepth, kColumns);
  const auto d = Layout(kRows, kColumns);
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const uint64_t most = 4096;
  ASSERT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most)),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t found[4];
  int count = 0;
  ASSERT_EQ(
      cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a, b, d, d, preference, 4, found, &count),
      CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(count, 2);
  EXPECT_GT(found[0].workspaceSize, 0u);
  const float one = 1.0f;
  EXPECT_EQ(cublasLtMatmul(handle_, operation_, &one, a_.data(), a, b_.data(), b, &one, d_.data(),
                           d, d_.data(), d, &found[0].algo, nullptr, 0, nullptr),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmul(handle_, operation_, &one, a_.data(), a, b_.data(), b, &one, d_.data(),
                           d, d_.data(), d, &found[1].algo, nullptr, 0, nullptr),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace kumo::simulated_gpu
