// Fully connected layers with oneDNN's matrix product. In the backend's layout activations are
// [feature][sample], so none of the three products needs a transposed copy. A layer that works per
// position has more columns: [channel][position and sample].
#include <cstdint>
#include <memory>

#include <dnnl.h>
#include <glog/logging.h>
#include <omp.h>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

struct Matrix {
  const float* data;
  char transposed;  // 'N' or 'T'
  int64_t row;      // floats between rows as they lie in memory
};

// to[rows][columns] = a . b, over `depth`.
void MultiplyRows(int64_t rows, int64_t columns, int64_t depth, const Matrix& a, const Matrix& b,
                  float* to, int64_t to_row) {
  // oneDNN's own threads stay out of it: the engine's threads each call for their rows.
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(a.transposed, b.transposed, rows, columns, depth, 1.0f,
                                          a.data, a.row, b.data, b.row, 0.0f, to, to_row);
  CHECK_EQ(status, dnnl_success) << "dnnl_sgemm";
}

class FullyConnected final : public FloatOp {
 public:
  FullyConnected(Engine& engine, const FullyConnectedSpec& spec) : engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.bias ? 2u : 1u);
    weight_ = weights[0];
    weight_gradient_ = gradients[0];
    bias_ = spec_.bias ? weights[1] : nullptr;
    bias_gradient_ = spec_.bias ? gradients[1] : nullptr;
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const auto [columns, row] = ColumnsOf(pass);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, columns, spec_.inputs,
                   {weight_ + begin * spec_.inputs, 'N', spec_.inputs}, {input, 'N', row},
                   output + begin * row, row);
      if (bias_ == nullptr && columns == row) return;
      engine_.elementwise.finish_rows(bias_ == nullptr ? nullptr : bias_ + begin, end - begin,
                                      columns, row, output + begin * row);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    const auto [columns, row] = ColumnsOf(pass);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, spec_.inputs, columns, {grad_output + begin * row, 'N', row},
                   {input, 'T', row}, weight_gradient_ + begin * spec_.inputs, spec_.inputs);
      for (int64_t o = begin; o < end && bias_gradient_ != nullptr; ++o) {
        bias_gradient_[o] = engine_.elementwise.sum(grad_output + o * row, row);
      }
    });
    if (grad_input == nullptr) return;
    engine_.ParallelPieces(spec_.inputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, columns, spec_.outputs, {weight_ + begin, 'T', spec_.inputs},
                   {grad_output, 'N', row}, grad_input + begin * row, row);
      if (columns == row) return;
      engine_.elementwise.finish_rows(nullptr, end - begin, columns, row, grad_input + begin * row);
    });
  }

 private:
  struct Columns {
    int64_t count;  // that products are made of
    int64_t row;    // floats of one feature
  };
  // Of one position the samples; of several their padding, which they lie between, as well.
  Columns ColumnsOf(const Pass& pass) const {
    const int64_t lanes = LaneStride(pass.batch);
    if (spec_.positions == 1) return {pass.batch, lanes};
    return {spec_.positions * lanes, spec_.positions * lanes};
  }

  Engine& engine_;
  FullyConnectedSpec spec_;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const FullyConnectedSpec& spec, int) {
  return std::make_unique<FullyConnected>(engine, spec);
}

}  // namespace kumo::cpu
