// Dropout. The mask is drawn again in Backward rather than kept: that costs less than reading it.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Dropout final : public UnaryOp {
 public:
  Dropout(Engine& engine, const DropoutSpec& spec) : engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    if (pass.training) {
      Apply(pass, input, output);
    } else if (input != output) {
      const int64_t bytes = engine_.ActivationBytes(spec_.shape, pass.batch);
      KUMO_CUDA(engine_, cudaMemcpyAsync(output, input, static_cast<size_t>(bytes),
                                         cudaMemcpyDeviceToDevice, engine_.stream()));
    }
  }
  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input != nullptr) Apply(pass, grad_output, grad_input);
  }

 private:
  void Apply(const Pass& pass, const void* from, void* to) {
    KUMO_CUDA(engine_, Drop(engine_.launch(), engine_.step(), spec_.layer, spec_.ratio,
                            engine_.ShapeOf(spec_.shape, pass.batch), from, to));
  }

  Engine& engine_;
  DropoutSpec spec_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const DropoutSpec& spec, int) {
  return std::make_unique<Dropout>(engine, spec);
}

}  // namespace kumo::cuda
