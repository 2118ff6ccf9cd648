// Positional embedding: a trained vector added to each position.
#include <cstdint>
#include <cstring>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class PositionalEmbedding final : public WeightedOp<FloatOp> {
 public:
  PositionalEmbedding(CpuEngine& engine, const PositionalEmbeddingSpec& spec)
      : WeightedOp(false), engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t lanes = engine_.Lanes(pass.batch);
    ForEachRow([&](int64_t row, int64_t weight) {
      for (int64_t i = row * lanes; i < (row + 1) * lanes; ++i)
        output[i] = input[i] + weight_[weight];
    });
  }

  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    const int64_t lanes = engine_.Lanes(pass.batch);
    if (is_trained()) {
      ForEachRow([&](int64_t row, int64_t weight) {
        weight_gradient_[weight] = engine_.elementwise.sum(grad_output + row * lanes, lanes);
      });
    }
    if (grad_input == nullptr || grad_input == grad_output) return;
    std::memcpy(grad_input, grad_output,
                static_cast<size_t>(spec_.shape.size() * lanes) * sizeof(float));
  }

 private:
  // body(row of samples, place in the weight)
  template <typename Body>
  void ForEachRow(const Body& body) {
    const int64_t channels = spec_.shape.channels(), positions = spec_.shape.plane();
    engine_.ParallelPieces(channels, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t p = 0; p < positions; ++p) body(c * positions + p, p * channels + c);
      }
    });
  }

  CpuEngine& engine_;
  PositionalEmbeddingSpec spec_;
};

}  // namespace

// Any lanes: the rows of samples are added and summed one by one.
Padding PaddingOf(const PositionalEmbeddingSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const PositionalEmbeddingSpec& spec, int) {
  return NewOp<PositionalEmbedding>(engine, spec);
}

}  // namespace kumo::cpu
