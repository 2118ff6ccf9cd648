// Helpers of the readers. They recognise formulas that exporters write in several ways:
//
// - ProductOf looks through Mul, Div by a number and layers multiply, and gives number * factors.
//   So x * 0.5 * (1 + erf(...)) is recognised in any order of its factors. The depth (6) and the
//   number of factors (8) are limited: a hostile file may chain many products.
// - Nearly compares numbers that exporters round in float32: sqrt(2) differs in the last digits.
// - EpsilonField: a network file's field has 0 for the default, so a true 0 becomes 1e-30.
// - SampleAxis and SampleDims take ONNX's axes, which count the batch, to a sample's axes.
#include "models/onnx/readers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kumo {

const onnx::AttributeProto* OnnxCall::Find(const char* attribute) const {
  for (const onnx::AttributeProto& one : node.attribute()) {
    if (one.name() == attribute) return &one;
  }
  return nullptr;
}

int64_t OnnxCall::Int(const char* attribute, int64_t otherwise) const {
  const onnx::AttributeProto* const found = Find(attribute);
  return found != nullptr ? found->i() : otherwise;
}

float OnnxCall::Float(const char* attribute, float otherwise) const {
  const onnx::AttributeProto* const found = Find(attribute);
  return found != nullptr ? found->f() : otherwise;
}

std::string OnnxCall::Text(const char* attribute, const std::string& otherwise) const {
  const onnx::AttributeProto* const found = Find(attribute);
  return found != nullptr ? found->s() : otherwise;
}

std::vector<int64_t> OnnxCall::Ints(const char* attribute) const {
  const onnx::AttributeProto* const found = Find(attribute);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

std::optional<std::vector<int64_t>> OnnxCall::IntsOf(const char* attribute, size_t input) const {
  if (Has(attribute)) return Ints(attribute);
  if (!IsConstant(input) || constant(input).is_float()) return std::nullopt;
  return *constant(input).integers;
}

std::optional<OnnxCall::ArrayAndConstant> OnnxCall::OneConstant() const {
  if (inputs.size() != 2) return std::nullopt;
  if (IsArray(0) && IsConstant(1)) return ArrayAndConstant{inputs[0], constant(1)};
  if (IsConstant(0) && IsArray(1)) return ArrayAndConstant{inputs[1], constant(0)};
  return std::nullopt;
}

std::optional<int> OnnxCall::SampleAxis(int64_t axis, int rank) {
  if (axis < 0) axis += rank + 1;
  if (axis < 1 || axis > rank) return std::nullopt;
  return static_cast<int>(axis - 1);
}

OnnxReading ReadElementwise(const OnnxCall& call, const OnnxOperand& operand, model::Layer layer) {
  KUMO_ASSIGN_OR_RETURN(const OnnxOperand whole, call.graph.Whole(operand));
  KUMO_ASSIGN_OR_RETURN(const int node,
                        call.graph.AddLayer(std::move(layer), {whole.node}, {}, &call.node));
  return Read(call.graph.OutputLike(node, whole));
}

std::optional<std::vector<int64_t>> SampleDims(const OnnxConstant& constant, int rank) {
  std::vector<int64_t> dims = constant.dims;
  while (static_cast<int>(dims.size()) > rank) {
    if (dims.front() != 1) return std::nullopt;
    dims.erase(dims.begin());
  }
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return dims;
}

std::optional<OnnxConstant> AlongAxis(const OnnxConstant& constant, const StridedView& view,
                                      int axis) {
  if (!constant.is_float()) return std::nullopt;
  const auto dims = SampleDims(constant, view.rank());
  if (!dims || (*dims)[axis] != view.extents[axis]) return std::nullopt;
  if (constant.size() != (*dims)[axis]) return std::nullopt;
  return constant.WithDims({constant.size()});
}

Result<int> OneForAllSides(const char* what, const std::vector<int64_t>& numbers,
                           int64_t otherwise) {
  if (numbers.empty()) return static_cast<int>(otherwise);
  if (std::ranges::count(numbers, numbers[0]) != std::ssize(numbers)) {
    return InvalidArgument(std::string(what) + " must be equal on all sides and axes");
  }
  if (numbers[0] < 0 || numbers[0] > 1 << 20) {
    return InvalidArgument(std::string(what) + " is out of range");
  }
  return static_cast<int>(numbers[0]);
}

std::vector<ImportTensor> WithTensor(std::vector<ImportTensor> tensors, const char* name,
                                     OnnxConstant elements) {
  for (ImportTensor& tensor : tensors) {
    if (std::string_view(tensor.name) != name) continue;
    tensor.elements = std::move(elements);
    return tensors;
  }
  tensors.push_back({name, std::move(elements)});
  return tensors;
}

float EpsilonField(float epsilon, float standard) {
  constexpr float kNext = 1e-30f;  // to 0, which a field means otherwise
  if (epsilon == standard) return 0;
  return epsilon == 0 ? kNext : epsilon;
}

bool SameOperand(const OnnxOperand& a, const OnnxOperand& b) {
  return a.is_array() && a.node == b.node && a.view.SamePlaces(b.view);
}

bool Nearly(double a, double b) {
  return std::abs(a - b) <= 1e-5 * std::max(std::abs(a), std::abs(b));
}

namespace {

constexpr size_t kMostFactors = 8;

void AddFactors(const ImportGraph& graph, int node, int whole, int depth, Product* product) {
  const auto is_leaf = [&] {
    if (node == whole || depth == 0 || product->factors.size() > kMostFactors) return true;
    if (graph.node(node).layer.kind_case() == model::Layer::kMultiply) return false;
    return graph.ElementwiseOf(node, "Mul") == nullptr &&
           graph.ElementwiseOf(node, "Div") == nullptr;
  };
  if (is_leaf()) {
    product->factors.push_back(node);
    return;
  }
  const ImportNode& of = graph.node(node);
  if (of.is_layer()) {
    for (const int input : of.inputs) AddFactors(graph, input, whole, depth - 1, product);
    return;
  }
  const bool quotient = of.from->op_type() == "Div";
  const auto second = ImportGraph::ScalarOf(of.operands[1]);
  if (quotient && (!second || *second == 0)) {
    product->factors.push_back(node);
    return;
  }
  for (const OnnxOperand& operand : of.operands) {
    const auto number = ImportGraph::ScalarOf(operand);
    if (operand.is_array()) {
      AddFactors(graph, operand.node, whole, depth - 1, product);
    } else if (number) {
      product->number = quotient ? product->number / *number : product->number * *number;
    } else {
      product->factors.push_back(node);  // by a tensor: no number
      return;
    }
  }
}

}  // namespace

Product ProductOf(const ImportGraph& graph, int node, int whole) {
  constexpr int kDepth = 6;
  Product product;
  AddFactors(graph, node, whole, kDepth, &product);
  return product;
}

std::optional<double> MultipleOf(const ImportGraph& graph, int node, int factor) {
  const Product product = ProductOf(graph, node, factor);
  if (product.factors != std::vector<int>{factor}) return std::nullopt;
  return product.number;
}

std::optional<NodeAndNumber> SumWithNumber(const ImportGraph& graph, int node) {
  const ImportNode* const sum = graph.ElementwiseOf(node, "Add");
  if (sum == nullptr || sum->operands.size() != 2) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const auto number = ImportGraph::ScalarOf(sum->operands[i]);
    if (number && sum->operands[1 - i].is_array()) {
      return NodeAndNumber{sum->operands[1 - i].node, *number};
    }
  }
  return std::nullopt;
}

}  // namespace kumo
