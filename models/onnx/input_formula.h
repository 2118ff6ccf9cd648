// Formulas of an input of an ONNX model, such as the normalisation of pixels, which Kumo leaves to
// the data or to a layer.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "models/onnx/import_graph.h"
#include "models/onnx/readers.h"

namespace kumo {

// True for the ops of formulas: Add, Sub, Mul, Div.
bool IsLinear(const std::string& op);

// The call as a linear function of a whole input with constants: by one number or one of each
// channel, or a subtraction of an image from a picture. None if it is no such function; errors of
// ImportGraph::Count.
Result<std::optional<OnnxOperand>> FormulaOf(const OnnxCall& call);

// "(pixels - (0.5)) / (2)" of the input `pixels`.
std::string TextOf(const InputFormula& formula, const std::string& input);

}  // namespace kumo
