// Numbers in other places.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class RearrangeOp final : public UnaryOp {
 public:
  RearrangeOp(Engine& engine, const RearrangeSpec& spec) : engine_(engine), spec_(spec) {
    places_.rank = static_cast<int>(spec.strides.size());
    for (int axis = 0; axis < places_.rank; ++axis) {
      places_.extents[axis] = spec.output.extent(axis);
      places_.strides[axis] = spec.strides[axis];
    }
    places_.offset = spec.offset;
  }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_,
              Rearrange(engine_.launch(), engine_.ShapeOf(spec_.input, pass.batch),
                        engine_.ShapeOf(spec_.output, pass.batch), places_, input, output));
  }

  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    if (spec_.output.size() < spec_.input.size()) {
      const auto bytes = static_cast<size_t>(engine_.ActivationBytes(spec_.input, pass.batch));
      KUMO_CUDA(engine_, cudaMemsetAsync(grad_input, 0, bytes, engine_.stream()));
    }
    KUMO_CUDA(engine_, RearrangeBackward(engine_.launch(), engine_.ShapeOf(spec_.input, pass.batch),
                                         engine_.ShapeOf(spec_.output, pass.batch), places_,
                                         grad_output, grad_input));
  }

 private:
  Engine& engine_;
  RearrangeSpec spec_;
  Places places_;
};

}  // namespace

std::unique_ptr<Op> MakeOp(Engine& engine, const RearrangeSpec& spec, int) {
  return std::make_unique<RearrangeOp>(engine, spec);
}

}  // namespace kumo::cuda
