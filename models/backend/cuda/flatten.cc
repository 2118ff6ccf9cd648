// A sample as one vector, channels before the plane: float32 activations are that already, 16-bit
// ones have their channels last.
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Flatten final : public Op {
 public:
  Flatten(Engine& engine, const Shape& shape) : engine_(engine), shape_(shape) {}

  void Forward(const Pass& pass, const void* input, void* output) override {
    Move({pass.batch, shape_.plane(), shape_.channels}, input, output);
  }
  void Backward(const Pass& pass, const void*, const void*, const void* grad_output,
                void* grad_input) override {
    if (grad_input == nullptr) return;
    Move({pass.batch, shape_.channels, shape_.plane()}, grad_output, grad_input);
  }

 private:
  void Move(const Planes& planes, const void* from, void* to) {
    const Precision precision = engine_.precision();
    KUMO_CUDA(engine_, Transpose(engine_.launch(), precision, from, planes, precision, to));
  }

  Engine& engine_;
  Shape shape_;
};

}  // namespace

std::unique_ptr<Op> MakeFlatten(Engine& engine, const Shape& shape) {
  if (!engine.channels_last() || shape.plane() == 1 || shape.channels == 1) return nullptr;
  return std::make_unique<Flatten>(engine, shape);
}

}  // namespace kumo::cuda
