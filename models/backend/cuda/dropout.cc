// Dropout. The mask is drawn again in Backward rather than kept: that costs less than reading it.
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Dropout final : public Op {
 public:
  Dropout(Engine& engine, const DropoutSpec& spec) : engine_(engine), spec_(spec) {}

  bool can_run_in_place() const override { return true; }

  void Forward(const Pass& pass, const float* input, float* output) override {
    const int64_t n = spec_.shape.size() * pass.batch;
    if (pass.training) {
      Apply(input, n, output);
    } else if (input != output) {
      KUMO_CUDA(engine_, cudaMemcpyAsync(output, input, static_cast<size_t>(n) * sizeof(float),
                                         cudaMemcpyDeviceToDevice, engine_.stream()));
    }
  }
  void Backward(const Pass& pass, const float*, const float*, const float* grad_output,
                float* grad_input) override {
    if (grad_input != nullptr) Apply(grad_output, spec_.shape.size() * pass.batch, grad_input);
  }

 private:
  void Apply(const float* from, int64_t n, float* to) {
    KUMO_CUDA(engine_,
              Drop(engine_.launch(), engine_.step(), spec_.layer, spec_.ratio, from, n, to));
  }

  Engine& engine_;
  DropoutSpec spec_;
};

}  // namespace

std::unique_ptr<Op> MakeDropout(Engine& engine, const DropoutSpec& spec) {
  return std::make_unique<Dropout>(engine, spec);
}

}  // namespace kumo::cuda
