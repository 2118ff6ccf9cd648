// Rearrangement of rows of samples.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class Rearrange final : public FloatOp {
 public:
  Rearrange(CpuEngine& engine, const RearrangeSpec& spec) : engine_(engine), spec_(spec) {}

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t lanes = engine_.Lanes(pass.batch);
    ForEachRow([&](int64_t to, int64_t from) {
      std::memcpy(output + to * lanes, input + from * lanes, RowBytes(lanes));
    });
  }

  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    const int64_t lanes = engine_.Lanes(pass.batch);
    if (spec_.output.size() < spec_.input.size()) {
      std::fill(grad_input, grad_input + spec_.input.size() * lanes, 0.0f);
    }
    ForEachRow([&](int64_t to, int64_t from) {
      std::memcpy(grad_input + from * lanes, grad_output + to * lanes, RowBytes(lanes));
    });
  }

 private:
  static size_t RowBytes(int64_t lanes) { return static_cast<size_t>(lanes) * sizeof(float); }
  // body(row of the output, row of the input)
  template <typename Body>
  void ForEachRow(const Body& body) {
    engine_.ParallelPieces(spec_.output.size(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i, spec_.SourceOf(i));
    });
  }

  CpuEngine& engine_;
  RearrangeSpec spec_;
};

}  // namespace

// Any lanes: rows of samples are copied.
Padding PaddingOf(const RearrangeSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const RearrangeSpec& spec, int) {
  return NewOp<Rearrange>(engine, spec);
}

}  // namespace kumo::cpu
