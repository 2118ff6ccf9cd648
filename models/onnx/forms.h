// ONNX forms of the ops: the nodes of an ONNX graph that compute an op, and helpers that several
// forms share.
//
// A form is defined in ops/OP/onnx.cc. Pure functions but for the builder; thread-safe as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/graph.h"
#include "models/onnx/builder.h"

namespace kumo {

// ONNX's operator set of the forms, and the version of its files that goes with it.
inline constexpr int kOnnxOpset = 17;
inline constexpr int kOnnxIrVersion = 8;

// The node that a form is made from.
struct OnnxNode {
  const Node& node;
  std::vector<OnnxValue> inputs;
  std::vector<std::string> parameters;  // constants, in the order of the node's
  OnnxBuilder& builder;

  const OnnxValue& input() const { return inputs[0]; }
  // Names of `value`, in place of the input, and of all parameters.
  std::vector<std::string> OperandsOf(const OnnxValue& value) const;
};

// Adds the op as nodes of ONNX; the result is its output.
#define KUMO_DECLARE_FORM(Name) OnnxValue OnnxForm(const Name##Spec& spec, const OnnxNode& node);
KUMO_OPS(KUMO_DECLARE_FORM)
#undef KUMO_DECLARE_FORM

// The activation that an op applies to its result (ops/activation/onnx.cc).
OnnxValue Activated(Activation activation, float slope, const OnnxValue& value,
                    OnnxBuilder* builder);

// Channels, height and width of a shape, which ops of planes read. A vector's are n x 1 x 1.
std::vector<int64_t> PlaneExtents(const Shape& shape);
// Channels, and the positions of a shape as one axis behind them.
std::vector<int64_t> SequenceExtents(const Shape& shape);

// value * factor and value + term, elementwise; the second operand is named.
OnnxValue Times(const OnnxValue& value, const std::string& factor, OnnxBuilder* builder);
OnnxValue Plus(const OnnxValue& value, const std::string& term, OnnxBuilder* builder);
// value * scale + shift of the channel; no shift if its name is empty.
OnnxValue ScaledByChannel(const OnnxValue& value, const std::string& scale,
                          const std::string& shift, OnnxBuilder* builder);
// A value of two or more axes with the last two swapped.
OnnxValue Transposed(const OnnxValue& value, OnnxBuilder* builder);

}  // namespace kumo
