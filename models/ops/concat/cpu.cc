// Concatenation of channels.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

// Channels are the layout's slowest index, so each input is one block of the output.
class ConcatOp final : public Op {
 public:
  ConcatOp(const CpuEngine& engine, const ConcatSpec& spec) : engine_(engine) {
    for (const Shape& shape : spec.inputs) sizes_.push_back(shape.size());
  }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    float* to = Floats(outputs[0]);
    for (size_t k = 0; k < inputs.size(); ++k) {
      to = std::copy_n(Floats(inputs[k]), sizes_[k] * engine_.Lanes(pass.batch), to);
    }
  }
  void Backward(const Pass& pass, const Gradients& arrays) override {
    const float* from = Floats(arrays.grad_outputs[0]);
    for (size_t k = 0; k < arrays.grad_inputs.size(); ++k) {
      const int64_t n = sizes_[k] * engine_.Lanes(pass.batch);
      if (arrays.grad_inputs[k] != nullptr) std::copy_n(from, n, Floats(arrays.grad_inputs[k]));
      from += n;
    }
  }

 private:
  const CpuEngine& engine_;
  std::vector<int64_t> sizes_;
};

}  // namespace

// Any lanes: whole inputs are copied.
Padding PaddingOf(const ConcatSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const ConcatSpec& spec, int) {
  return NewOp<ConcatOp>(engine, spec);
}

}  // namespace kumo::cpu
