// Dropout. The mask of a step is kept for its backward pass.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"
#include "models/ops/dropout/stream.h"

namespace kumo::cpu {
namespace {

class Dropout final : public FloatOp {
 public:
  Dropout(CpuEngine& engine, const DropoutSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        mask_(engine.memory, spec.shape.size() * WholeLanes(max_batch), kWorkspace) {}

  bool can_run_in_place() const override { return true; }
  int64_t bytes() const override { return mask_.bytes(); }

  void ForwardFloats(const Pass& pass, const float* input, float* output) override {
    const int64_t n = spec_.shape.size() * engine_.Lanes(pass.batch);
    if (!pass.training) {
      if (input != output) std::copy(input, input + n, output);
      return;
    }
    DrawMask(pass.batch);
    engine_.elementwise.multiply(input, mask_.data(), n, output);
  }
  void BackwardFloats(const Pass& pass, const float*, const float*, const float* grad_output,
                      float* grad_input) override {
    if (grad_input == nullptr) return;
    engine_.elementwise.multiply(grad_output, mask_.data(),
                                 spec_.shape.size() * engine_.Lanes(pass.batch), grad_input);
  }

 private:
  void DrawMask(int batch) {
    const int64_t lanes = engine_.Lanes(batch);
    Rng rng = DropoutStream(engine_.step.streams, spec_.layer);
    const float keep = 1.0f / (1.0f - spec_.ratio);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t i = 0; i < spec_.shape.size(); ++i) {
        mask_.data()[i * lanes + n] = rng.NextUniform() < spec_.ratio ? 0.0f : keep;
      }
    }
  }

  CpuEngine& engine_;
  DropoutSpec spec_;
  DeviceArray<float> mask_;  // 0 or 1 / (1 - ratio); padding lanes hold whatever was there, finite
};

}  // namespace

// Any lanes: the op goes over all elements.
Padding PaddingOf(const DropoutSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const DropoutSpec& spec, int max_batch) {
  return NewOp<Dropout>(engine, spec, max_batch);
}

}  // namespace kumo::cpu
