// The sum of arrays.
#include <cstdint>
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {
namespace {

class AddOp final : public Op {
 public:
  AddOp(Engine& engine, int64_t size) : engine_(engine), size_(size) {}

  bool can_run_in_place() const override { return true; }
  bool passes_gradient() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    float* const to = Floats(outputs[0]);
    for (size_t k = 1; k < inputs.size(); ++k) {
      const float* const sum = k == 1 ? Floats(inputs[0]) : to;
      const float* const term = Floats(inputs[k]);
      engine_.ParallelPieces(size_ * engine_.Lanes(pass.batch), [&](int64_t begin, int64_t end) {
        engine_.elementwise.add(sum + begin, term + begin, end - begin, to + begin);
      });
    }
  }
  void Backward(const Pass&, const Gradients&) override {}

 private:
  Engine& engine_;
  int64_t size_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const AddSpec& spec, int) {
  return std::make_unique<AddOp>(engine, spec.shape.size());
}

}  // namespace kumo::cpu
