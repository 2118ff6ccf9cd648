#include "models/onnx/import_advice.h"

#include <algorithm>

#include "models/onnx/input_formula.h"

namespace kumo {
namespace {

struct Advice {
  const char* op;
  const char* advice;
};
constexpr Advice kAdvice[] = {
    {"Clip", "use ReLU in its place"},
    {"HardSwish", "use SiLU in its place"},
    {"HardSigmoid", "use Sigmoid in its place"},
    {"Elu", "use ReLU or GELU in its place"},
    {"Softplus", "use ReLU or GELU in its place"},
    {"PRelu", "use LeakyReLU in its place"},
    {"Mish", "use SiLU in its place"},
    {"LSTM", "a network has no recurrent layers; use attention in their place"},
    {"GRU", "a network has no recurrent layers; use attention in their place"},
    {"RNN", "a network has no recurrent layers; use attention in their place"},
    {"Pad", "give the padding to the convolution or pooling behind it"},
    {"If", "export a model without branches that depend on data"},
    {"Loop", "export a model without loops that depend on data"},
    {"Scan", "export a model without loops that depend on data"},
    {"Softmax", "inside a network only an attention has one; at its end it belongs to the loss"},
    {"ReduceMax", "use max pooling or the mean in its place"},
};

}  // namespace

std::string AdviceFor(const std::string& op, const std::vector<OnnxOperand>& operands) {
  const bool with_constant = std::ranges::any_of(
      operands, [](const OnnxOperand& operand) { return operand.constant.has_value(); });
  if (IsLinear(op) && with_constant) {
    return "only an input of the model is scaled or shifted by constants, by one number or by one "
           "of each channel; merge the constant into the weights of the layer before or behind it";
  }
  for (const Advice& one : kAdvice) {
    if (op == one.op) return one.advice;
  }
  return "replace it in the model by ops of docs/export.md#import-a-network-onnx, and export again";
}

}  // namespace kumo
