// Fully connected layers with oneDNN's matrix product. In the backend's layout activations are
// [feature][sample], so none of the three products needs a transposed copy. A layer that works per
// position has more columns: [channel][position and sample].
#include <algorithm>
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
  FullyConnected(Engine& engine, const FullyConnectedSpec& spec, int max_batch)
      : engine_(engine), spec_(spec) {
    if (spec.positions > 1) {
      // Of a smaller batch that has to be packed rows may be longer by what keeps them apart.
      const int64_t row = spec.positions * LaneStride(max_batch) + kSampleLanes;
      engine.ReserveScratch((spec.inputs + spec.outputs) * row);
    }
  }

  bool reads_input() const override { return true; }

  void Bind(std::span<float* const> weights, std::span<float* const> gradients) override {
    CHECK_EQ(weights.size(), spec_.bias ? 2u : 1u);
    weight_ = weights[0];
    weight_gradient_ = gradients[0];
    bias_ = spec_.bias ? weights[1] : nullptr;
    bias_gradient_ = spec_.bias ? gradients[1] : nullptr;
  }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const Columns columns = ColumnsOf(pass);
    if (columns.packed && engine_.Scratch() == nullptr) return;
    const float* const from = Packed(columns, input, spec_.inputs, PackedInputs());
    float* const to = columns.packed ? PackedOutputs(columns) : output;
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, columns.count, spec_.inputs,
                   {weight_ + begin * spec_.inputs, 'N', spec_.inputs}, {from, 'N', columns.row},
                   to + begin * columns.row, columns.row);
      Finish(columns, {begin, end}, bias_, to, output);
    });
  }

  void BackwardFloats(const Pass& pass, const float* input, const float*, const float* grad_output,
                      float* grad_input) override {
    const Columns columns = ColumnsOf(pass);
    if (columns.packed && engine_.Scratch() == nullptr) return;
    const float* const inputs = Packed(columns, input, spec_.inputs, PackedInputs());
    const float* const grads = Packed(columns, grad_output, spec_.outputs, PackedOutputs(columns));
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, spec_.inputs, columns.count,
                   {grads + begin * columns.row, 'N', columns.row}, {inputs, 'T', columns.row},
                   weight_gradient_ + begin * spec_.inputs, spec_.inputs);
      for (int64_t o = begin; o < end && bias_gradient_ != nullptr; ++o) {
        bias_gradient_[o] =
            engine_.elementwise.sum(grad_output + o * columns.unpacked_row, columns.unpacked_row);
      }
    });
    if (grad_input == nullptr) return;
    float* const to = columns.packed ? PackedInputs() : grad_input;  // the inputs are done with
    engine_.ParallelPieces(spec_.inputs, [&](int64_t begin, int64_t end) {
      MultiplyRows(end - begin, columns.count, spec_.outputs, {weight_ + begin, 'T', spec_.inputs},
                   {grads, 'N', columns.row}, to + begin * columns.row, columns.row);
      Finish(columns, {begin, end}, nullptr, to, grad_input);
    });
  }

 private:
  // What a feature's row is in the products.
  struct Columns {
    int64_t count;         // that are multiplied
    int64_t row;           // floats between rows
    int64_t unpacked_row;  // and where they are not packed
    int64_t batch;
    int64_t lanes;
    bool packed;
  };
  // Samples lie at one position side by side. Between those of several their padding is left out,
  // and where rows are a multiple of 4 KiB apart, so that few of them stay in a cache, they are
  // kept from it.
  Columns ColumnsOf(const Pass& pass) const {
    constexpr int64_t kCacheStride = 1024;  // floats
    const int64_t lanes = LaneStride(pass.batch);
    const int64_t row = spec_.positions * lanes;
    if (spec_.positions == 1) return {pass.batch, lanes, lanes, pass.batch, lanes, false};
    if (pass.batch == lanes && row % kCacheStride != 0) {
      return {row, row, row, pass.batch, lanes, false};
    }
    const int64_t count = spec_.positions * pass.batch;
    const int64_t apart = count % kCacheStride == 0 ? kSampleLanes : 0;
    return {count, count + apart, row, pass.batch, lanes, true};
  }
  float* PackedInputs() { return engine_.Scratch(); }
  float* PackedOutputs(const Columns& columns) {
    return columns.packed ? engine_.Scratch() + spec_.inputs * columns.row : nullptr;
  }

  // `rows` of activations as the products read them: themselves, or their packed copy at `to`.
  const float* Packed(const Columns& columns, const float* from, int64_t rows, float* to) {
    if (!columns.packed) return from;
    engine_.ParallelPieces(rows, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t p = 0; p < spec_.positions; ++p) {
          std::copy_n(from + r * columns.unpacked_row + p * columns.lanes, columns.batch,
                      to + r * columns.row + p * columns.batch);
        }
      }
    });
    return to;
  }
  // The products' rows with the bias, unless that is null, and zeros in the padding: where they
  // are, or unpacked to `to`.
  void Finish(const Columns& columns, Range rows, const float* bias, float* from, float* to) {
    if (!columns.packed) {
      if (bias == nullptr && columns.count == columns.row) return;
      engine_.elementwise.finish_rows(bias == nullptr ? nullptr : bias + rows.begin, rows.size(),
                                      columns.count, columns.row, from + rows.begin * columns.row);
      return;
    }
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const float shift = bias == nullptr ? 0.0f : bias[r];
      for (int64_t p = 0; p < spec_.positions; ++p) {
        const float* const samples = from + r * columns.row + p * columns.batch;
        float* const out = to + r * columns.unpacked_row + p * columns.lanes;
        for (int64_t n = 0; n < columns.batch; ++n) out[n] = samples[n] + shift;
        std::fill(out + columns.batch, out + columns.lanes, 0.0f);
      }
    }
  }

  Engine& engine_;
  FullyConnectedSpec spec_;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
  float* weight_gradient_ = nullptr;
  float* bias_gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const FullyConnectedSpec& spec, int max_batch) {
  return std::make_unique<FullyConnected>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
