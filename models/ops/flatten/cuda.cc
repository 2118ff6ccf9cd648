// Flattening of a sample to one vector, channels before the plane. float32 activations have this
// order already; 16-bit activations have their channels last.
#include <memory>

#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

class Flatten final : public UnaryOp {
 public:
  Flatten(CudaEngine& engine, const Shape& shape) : engine_(engine), shape_(shape) {}

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    Move({pass.batch, shape_.plane(), shape_.channels()}, input, output);
  }
  void BackwardArray(const Pass& pass, const void*, const void*, const void* grad_output,
                     void* grad_input) override {
    if (grad_input == nullptr) return;
    Move({pass.batch, shape_.channels(), shape_.plane()}, grad_output, grad_input);
  }

 private:
  void Move(const Planes& planes, const void* from, void* to) {
    const Precision precision = engine_.precision();
    KUMO_CUDA(engine_, Transpose(engine_.launch(), precision, from, planes, precision, to));
  }

  CudaEngine& engine_;
  Shape shape_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const FlattenSpec& spec, int) {
  return NewOp<Flatten>(engine, spec.shape);
}

}  // namespace kumo::cuda
