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
  const auto more = [&builder](const OnnxValue& value, float number) {
    return number > 0 ? Plus(value, builder.Number(number), &builder) : value;
  };
  const OnnxValue root = builder.Add("Sqrt", {more(sum, spec.under_root).name}, one_channel);
  const OnnxValue length = more(root, spec.beside_root);
  const OnnxValue unit = builder.Add("Div", {input.name, length.name}, input.extents);
  return ScaledByChannel(unit, node.parameters[0], "", &builder);
}

}  // namespace kumo
