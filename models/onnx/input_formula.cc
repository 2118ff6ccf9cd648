#include "models/onnx/input_formula.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/printable.h"

namespace kumo {
namespace {

// The number of all elements of an array, or one of each of its channels, which are its first axis,
// that a constant gives; none if it gives others.
std::vector<double> NumbersByChannel(const OnnxConstant& constant, const StridedView& view) {
  const int64_t channels = constant.size() == 1 ? 1 : view.extents[0];
  int64_t each = 1;  // elements of the constant, all of one number
  if (constant.size() != 1 && !AlongAxis(constant, view, 0)) {
    if (SampleDims(constant, view.rank()) != view.extents) return {};
    each = view.size() / channels;
  }
  std::vector<double> numbers;
  for (int64_t i = 0; i < constant.size(); ++i) {
    if (i % each == 0) numbers.push_back(constant.at(i));
    if (constant.at(i) != numbers.back()) return {};
  }
  return numbers;
}

// "0.485, 0.456, 0.406"
std::string ListOf(const std::vector<double>& numbers) {
  std::string list;
  for (const double number : numbers) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), static_cast<float>(number)).ptr;
    list += (list.empty() ? "" : ", ") + std::string(digits, end);
  }
  return list;
}

}  // namespace

bool IsLinear(const std::string& op) {
  return op == "Add" || op == "Sub" || op == "Mul" || op == "Div";
}

Result<std::optional<OnnxOperand>> FormulaOf(const OnnxCall& call) {
  const std::optional<OnnxOperand> none;
  const std::string& op = call.node.op_type();
  const auto operands = call.OneConstant();
  if (!IsLinear(op) || !operands || !operands->constant.is_float()) return none;
  const OnnxConstant& constant = operands->constant;
  if (call.IsConstant(0) && (op == "Sub" || op == "Div")) return none;
  const StridedView& view = operands->array.view;
  const auto dims = SampleDims(constant, view.rank());
  if (!dims || view.rank() == 0 || constant.size() == 0) return none;
  if (!call.graph.IsOfInput(operands->array)) return none;
  const Shape& shape = call.graph.node(operands->array.node).shape;
  if (constant.size() != 1 && view.extents[0] != shape.channels()) return none;
  KUMO_RETURN_IF_ERROR(call.graph.Count(8 * shape.channels()));
  InputFormula formula = {0, {1}, {0}};
  std::vector<double> numbers = NumbersByChannel(constant, view);
  if (numbers.empty()) {
    const bool is_picture = shape.rank() == 3 && view.extents == shape.extents();
    if (op != "Sub" || !is_picture || *dims != view.extents) return none;
    formula.of_image = true;
    return call.graph.AddFormula(operands->array, formula, &call.node);
  }
  for (double& number : numbers) {
    if (!std::isfinite(number) || (op == "Div" && number == 0)) return none;
    if (op == "Div") number = 1 / number;
    if (op == "Sub") number = -number;
  }
  (op == "Mul" || op == "Div" ? formula.factors : formula.terms) = std::move(numbers);
  return call.graph.AddFormula(operands->array, formula, &call.node);
}

std::string TextOf(const InputFormula& formula, const std::string& input) {
  std::vector<double> means, deviations;
  const size_t channels = std::max(formula.factors.size(), formula.terms.size());
  for (size_t c = 0; c < channels; ++c) {
    const double factor = formula.factors[formula.factors.size() == 1 ? 0 : c];
    const double term = formula.terms[formula.terms.size() == 1 ? 0 : c];
    means.push_back(0.0 - term / factor);  // not -0
    deviations.push_back(1 / factor);
  }
  const std::string mean = formula.of_image ? "MEAN IMAGE" : ListOf(means);
  return "(" + Printable(input) + " - (" + mean + ")) / (" + ListOf(deviations) + ")";
}

}  // namespace kumo
