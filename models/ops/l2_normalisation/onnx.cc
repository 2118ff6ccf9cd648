// L2 normalisation as its formula.
#include <cstdint>
#include <vector>

#include "models/onnx/forms.h"
#include "models/ops/l2_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const L2NormalisationSpec& spec, const OnnxNode& node) {
  OnnxBuilder& builder = node.builder;
  const OnnxValue& input = node.input();
  std::vector<int64_t> one_channel = input.extents;
  one_channel[0] = 1;
  const OnnxValue squares = Times(input, input.name, &builder);
  const OnnxValue sum = builder.Add("ReduceSum", {squares.name, builder.Integers({1})}, one_channel,
                                    {{"keepdims", int64_t{1}}});
  const OnnxValue more = Plus(sum, builder.Number(spec.epsilon), &builder);
  const OnnxValue length = builder.Add("Sqrt", {more.name}, one_channel);
  const OnnxValue unit = builder.Add("Div", {input.name, length.name}, input.extents);
  return ScaledByChannel(unit, node.parameters[0], "", &builder);
}

}  // namespace kumo
