// Embedding: vectors looked up by integers. Each thread has some of the channels, and writes its
// own part of the outputs and of the table's gradient.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

// Read side by side: of one word their numbers are half a line of the cache, and where their rows
// lie a multiple of 4 KiB apart, a first-level cache keeps as many.
constexpr int64_t kChannelsAtOnce = 8;

class Embedding final : public WeightedOp<Op> {
 public:
  Embedding(CpuEngine& engine, const EmbeddingSpec& spec)
      : WeightedOp(false), engine_(engine), spec_(spec) {}

  bool reads_input() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    const auto* const words = static_cast<const int32_t*>(inputs[0]);
    const int64_t lanes = engine_.Lanes(pass.batch);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        float* to = Floats(outputs[0]) + c * spec_.positions * lanes;
        for (int64_t p = 0; p < spec_.positions; ++p, to += lanes) {
          for (int64_t n = 0; n < pass.batch; ++n) {
            to[n] = weight_[words[n * spec_.positions + p] * spec_.outputs + c];
          }
          std::fill(to + pass.batch, to + lanes, 0.0f);
        }
      }
    });
  }

  void Backward(const Pass& pass, const Gradients& arrays) override {
    const auto* const words = static_cast<const int32_t*>(arrays.inputs[0]);
    const int64_t lanes = engine_.Lanes(pass.batch);
    engine_.ParallelPieces(spec_.outputs, [&](int64_t begin, int64_t end) {
      for (int64_t w = 0; w < spec_.vocabulary; ++w) {
        std::fill(weight_gradient_ + w * spec_.outputs + begin,
                  weight_gradient_ + w * spec_.outputs + end, 0.0f);
      }
      const int64_t channel = spec_.positions * lanes;
      for (int64_t first = begin; first < end; first += kChannelsAtOnce) {
        const int64_t last = std::min(end, first + kChannelsAtOnce);
        for (int64_t p = 0; p < spec_.positions; ++p) {
          const float* const from = Floats(arrays.grad_outputs[0]) + p * lanes;
          for (int64_t n = 0; n < pass.batch; ++n) {
            float* const to = weight_gradient_ + words[n * spec_.positions + p] * spec_.outputs;
            for (int64_t c = first; c < last; ++c) to[c] += from[c * channel + n];
          }
        }
      }
    });
  }

 private:
  CpuEngine& engine_;
  EmbeddingSpec spec_;
};

}  // namespace

// Any lanes: the samples of a position are written one by one.
Padding PaddingOf(const EmbeddingSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const EmbeddingSpec& spec, int) {
  return NewOp<Embedding>(engine, spec);
}

}  // namespace kumo::cpu
