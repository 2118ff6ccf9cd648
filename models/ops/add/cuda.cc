// The sum of arrays.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class AddOp final : public Op {
 public:
  AddOp(Engine& engine, int64_t size) : engine_(engine), size_(size) {}

  bool can_run_in_place() const override { return true; }
  bool passes_gradient() const override { return true; }

  void Forward(const Pass& pass, std::span<const void* const> inputs,
               std::span<void* const> outputs) override {
    for (size_t k = 1; k < inputs.size(); ++k) {
      KUMO_CUDA(engine_, Add(engine_.launch(), engine_.precision(), k == 1 ? inputs[0] : outputs[0],
                             inputs[k], size_ * pass.batch, outputs[0]));
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

}  // namespace kumo::cuda
