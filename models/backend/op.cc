#include "models/backend/op.h"

#include <glog/logging.h>

namespace kumo {

void Op::Bind(std::span<float* const> weights, std::span<float* const> gradients) {
  CHECK(weights.empty() && gradients.empty()) << "this op has no parameters";
}

void UnaryOp::Forward(const Pass& pass, std::span<const void* const> inputs,
                      std::span<void* const> outputs) {
  ForwardArray(pass, inputs[0], outputs[0]);
}

void UnaryOp::Backward(const Pass& pass, const Gradients& arrays) {
  BackwardArray(pass, arrays.inputs.empty() ? nullptr : arrays.inputs[0],
                arrays.outputs.empty() ? nullptr : arrays.outputs[0], arrays.grad_outputs[0],
                arrays.grad_inputs[0]);
}

}  // namespace kumo
