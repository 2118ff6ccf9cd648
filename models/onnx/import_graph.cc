// Views. An operand is a node and a strided view of its output: element (i0, i1, ...) of the
// operand lies at offset + sum i_k stride_k. Transpose, Slice, Unsqueeze and Reshape of the file
// change the view, and no layer appears. Layers appear only if a reader asks for elements in order:
//
//   InOrder        the node itself if the view is in order, perhaps reshaped; else Gathered
//   Gathered       reshape to axes by falling stride, a slice for each axis that the view does not
//                  cover, a permutation to the view's order, a reshape to its extents
//   WithChannels   the same with one axis in front, since layers of Kumo have channels first
//   LaidOutAs      the layout of another operand, for sums and products of two arrays
//
// Gathered fails if a stride does not divide the next larger one: no such layers exist then. Equal
// views of one node share their layers (gathered_).
//
// Formulas. A linear function of an input (x * factor + term, as exporters write pixel
// normalisation) is kept as numbers and composed: f2 (f1 x + t1) + t2. In the end it becomes the
// a note that leaves it to data.mean and data.std, or a frozen batch normalisation
// (MakeNormalisation).
#include "models/onnx/import_graph.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "models/layers/layer.h"
#include "models/onnx/readers.h"

namespace kumo {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;  // of a sample's array, as in BuildGraph

std::string ShapeTextOf(const OnnxConstant& constant) {
  return TensorSpec{"", constant.dims}.ShapeText();
}

}  // namespace

Status ImportGraph::Count(int64_t elements) {
  if (elements > computable_) {
    return InvalidArgument(
        "the model computes too many constants from the file's; export its weights as the layers "
        "read them");
  }
  computable_ -= elements;
  return OkStatus();
}

OnnxOperand ImportGraph::AddInput(int input, const std::vector<int64_t>& extents, bool integers) {
  ImportNode node;
  node.shape = Shape(extents);
  node.input = input;
  node.integers = integers;
  nodes_.push_back(std::move(node));
  return OutputOf(static_cast<int>(nodes_.size()) - 1, extents);
}

Status ImportGraph::SetVocabulary(int node, int64_t vocabulary) {
  int64_t& is = nodes_[node].vocabulary;
  if (is != 0 && is != vocabulary) {
    return InvalidArgument("its table has " + std::to_string(vocabulary) +
                           " rows, but the table of another embedding of the same input has " +
                           std::to_string(is));
  }
  is = vocabulary;
  return OkStatus();
}

bool ImportGraph::IsOfInput(const OnnxOperand& operand) const {
  const ImportNode& of = nodes_[operand.node];
  if ((of.input < 0 && !of.formula) || of.integers) return false;
  return operand.view.IsInOrder() && operand.view.size() == of.shape.size();
}

std::optional<OnnxOperand> ImportGraph::AddFormula(const OnnxOperand& operand,
                                                   const InputFormula& formula,
                                                   const onnx::NodeProto* from) {
  CHECK(IsOfInput(operand));
  const ImportNode& of = nodes_[operand.node];
  InputFormula sum = formula;
  sum.input = of.formula ? of.formula->input : operand.node;
  if (of.formula) {
    const InputFormula& before = *of.formula;
    const size_t channels = std::max(
        {before.factors.size(), formula.factors.size(), before.terms.size(), formula.terms.size()});
    for (const auto* const numbers :
         {&before.factors, &before.terms, &formula.factors, &formula.terms}) {
      if (numbers->size() != 1 && numbers->size() != channels) return std::nullopt;
    }
    const auto at = [](const std::vector<double>& numbers, size_t i) {
      return numbers[numbers.size() == 1 ? 0 : i];
    };
    sum.factors.assign(channels, 0);
    sum.terms.assign(channels, 0);
    for (size_t i = 0; i < channels; ++i) {
      sum.factors[i] = at(before.factors, i) * at(formula.factors, i);
      sum.terms[i] = at(before.terms, i) * at(formula.factors, i) + at(formula.terms, i);
    }
    sum.of_image = before.of_image || formula.of_image;
  }
  ImportNode node;
  node.from = from;
  node.shape = of.shape;
  node.inputs = {operand.node};
  node.formula = std::move(sum);
  nodes_.push_back(std::move(node));
  return OutputLike(static_cast<int>(nodes_.size()) - 1, operand);
}

void ImportGraph::MakeNormalisation(int node) {
  ImportNode& of = nodes_[node];
  CHECK(of.formula && !of.formula->of_image);
  const InputFormula formula = *std::exchange(of.formula, std::nullopt);
  const auto channels = static_cast<size_t>(of.shape.channels());
  std::vector<float> scale(channels), shift(channels), mean(channels), variance(channels, 1.0f);
  for (size_t c = 0; c < channels; ++c) {
    const double factor = formula.factors[formula.factors.size() == 1 ? 0 : c];
    const double term = formula.terms[formula.terms.size() == 1 ? 0 : c];
    scale[c] = static_cast<float>(factor);
    // As a difference, which is exact if the input is near the mean.
    (factor == 0 ? shift[c] : mean[c]) = static_cast<float>(factor == 0 ? term : -term / factor);
  }
  of.inputs = {formula.input};
  of.layer.mutable_batch_normalisation()->set_epsilon(EpsilonField(0));
  of.layer.set_trainable(false);
  const auto add = [&of](const char* name, std::vector<float> elements) {
    const int64_t size = std::ssize(elements);
    of.tensors.push_back({name, OnnxConstant::OfFloats({size}, std::move(elements))});
  };
  add("scale", std::move(scale));
  add("shift", std::move(shift));
  add("running_mean", std::move(mean));
  add("running_variance", std::move(variance));
}

Result<int> ImportGraph::AddLayer(model::Layer layer, std::vector<int> inputs,
                                  std::vector<ImportTensor> tensors, const onnx::NodeProto* from) {
  const LayerKind* const kind = FindLayerKind(layer.kind_case());
  CHECK(kind != nullptr);
  layer.set_name("l");
  LayerInput input = {layer, {}, 0, nodes_[inputs[0]].vocabulary};
  for (const int node : inputs) {
    CHECK(nodes_[node].known);
    if ((nodes_[node].input >= 0 && nodes_[node].integers) != kind->takes_integers) {
      return InvalidArgument(kind->takes_integers
                                 ? "it must read an input of integers"
                                 : "it reads integers, which only an embedding does");
    }
    input.shapes.push_back(nodes_[node].shape);
  }
  KUMO_ASSIGN_OR_RETURN(const LayerPlan plan, kind->plan(input));
  KUMO_RETURN_IF_ERROR(CheckSampleSize("output", plan.output));
  if (plan.parameters.size() != tensors.size()) {
    return InvalidArgument(std::string("a ") + kind->name + " has " +
                           std::to_string(plan.parameters.size()) + " tensors, here are " +
                           std::to_string(tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = plan.parameters[i].tensor;
    CHECK_EQ(spec.name, std::string("l.") + tensors[i].name);
    OnnxConstant& elements = tensors[i].elements;
    if (!elements.is_float() || elements.size() != spec.size()) {
      return InvalidArgument(std::string("its ") + tensors[i].name + " must have the shape " +
                             spec.ShapeText() + " and hold float numbers, has " +
                             ShapeTextOf(elements));
    }
    elements.dims = spec.shape;
  }
  layer.clear_name();
  ImportNode node;
  node.from = from;
  node.shape = plan.output;
  node.inputs = std::move(inputs);
  node.layer = std::move(layer);
  node.tensors = std::move(tensors);
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

OnnxOperand ImportGraph::AddOp(const onnx::NodeProto* from, std::vector<OnnxOperand> operands,
                               const std::optional<std::vector<int64_t>>& extents,
                               std::string problem) {
  ImportNode node;
  node.from = from;
  node.known = extents && SizeOfExtents(*extents, kMostElements);
  if (node.known) node.shape = Shape(*extents);
  for (const OnnxOperand& operand : operands) {
    if (operand.is_array()) node.inputs.push_back(operand.node);
  }
  node.problem = std::move(problem);
  node.operands = std::move(operands);
  const bool known = node.known;
  nodes_.push_back(std::move(node));
  const int added = static_cast<int>(nodes_.size()) - 1;
  if (known) return OutputOf(added, *extents);
  OnnxOperand unknown;
  unknown.node = added;
  return unknown;
}

OnnxOperand ImportGraph::AddElementwiseOp(const onnx::NodeProto* from,
                                          std::vector<OnnxOperand> operands) {
  const auto array = std::ranges::find_if(operands, &OnnxOperand::is_array);
  const OnnxOperand like = *array;
  OnnxOperand output =
      AddOp(from, std::move(operands), nodes_[like.node].shape.extents(), /*problem=*/"");
  nodes_[output.node].elementwise = true;
  return OutputLike(output.node, like);
}

Result<int> ImportGraph::Reshaped(int node, const std::vector<int64_t>& extents,
                                  const onnx::NodeProto* from) {
  const Shape shape(extents);
  if (shape == nodes_[node].shape) return node;
  model::Layer layer;
  for (const int64_t extent : shape.extents()) {
    layer.mutable_reshape()->add_extents(static_cast<int>(extent));
  }
  return AddLayer(std::move(layer), {node}, {}, from);
}

// As a reshape to axes by stride, slices of these, a permutation, and a reshape to the extents.
Result<int> ImportGraph::Gathered(const OnnxOperand& operand) {
  const StridedView& view = operand.view;
  const Place place = {operand.node, view.extents, view.strides, view.offset};
  const auto found = gathered_.find(place);
  if (found != gathered_.end()) return found->second;
  const int64_t size = nodes_[operand.node].shape.size();
  const std::vector<int> axes = view.AxesByStride();
  std::vector<int64_t> full, begins, counts;
  int64_t outer = size;
  for (const int axis : axes) {
    const int64_t stride = view.strides[axis];
    if (stride < 1 || outer % stride != 0) {
      return InvalidArgument(
          "its elements are taken in an order that reshape, slice and permute cannot make");
    }
    full.push_back(outer / stride);
    begins.push_back(view.offset / stride % full.back());
    counts.push_back(view.extents[axis]);
    outer = stride;
  }
  if (outer > 1) {  // one element of each row
    full.push_back(outer);
    begins.push_back(view.offset % outer);
    counts.push_back(1);
  }
  KUMO_ASSIGN_OR_RETURN(int node, Reshaped(operand.node, full, operand.from));
  for (size_t axis = 0; axis < full.size(); ++axis) {
    if (begins[axis] + counts[axis] > full[axis]) {
      return InvalidArgument(
          "its elements are taken in an order that reshape, slice and permute cannot make");
    }
    if (counts[axis] == full[axis]) continue;
    model::Layer layer;
    layer.mutable_slice()->set_axis(static_cast<int>(axis));
    layer.mutable_slice()->set_begin(static_cast<int>(begins[axis]));
    layer.mutable_slice()->set_end(static_cast<int>(begins[axis] + counts[axis]));
    KUMO_ASSIGN_OR_RETURN(node, AddLayer(std::move(layer), {node}, {}, operand.from));
  }
  if (!std::ranges::is_sorted(axes)) {
    model::Layer layer;
    for (int axis = 0; axis < view.rank(); ++axis) {
      const auto at = std::ranges::find(axes, axis);
      if (at != axes.end()) layer.mutable_permute()->add_axes(static_cast<int>(at - axes.begin()));
    }
    KUMO_ASSIGN_OR_RETURN(node, AddLayer(std::move(layer), {node}, {}, operand.from));
  }
  KUMO_ASSIGN_OR_RETURN(node, Reshaped(node, view.extents, operand.from));
  gathered_[place] = node;
  return node;
}

Result<int> ImportGraph::InOrder(const OnnxOperand& operand) {
  const ImportNode& node = nodes_[operand.node];
  const bool in_order = operand.view.IsInOrder() && operand.view.size() == node.shape.size();
  return in_order ? Reshaped(operand.node, operand.view.extents, operand.from) : Gathered(operand);
}

Result<int> ImportGraph::Flat(const OnnxOperand& operand) {
  const ImportNode& node = nodes_[operand.node];
  if (operand.view.IsInOrder() && operand.view.size() == node.shape.size()) return operand.node;
  return Gathered(operand);
}

Result<int> ImportGraph::WithChannels(const OnnxOperand& operand, int axis) {
  OnnxOperand front = operand;
  front.view = operand.view.WithAxisInFront(axis);
  const ImportNode& node = nodes_[operand.node];
  const bool in_order = front.view.IsInOrder() && front.view.size() == node.shape.size();
  if (in_order && node.shape.channels() == front.view.extents[0]) return operand.node;
  return InOrder(front);
}

Result<OnnxOperand> ImportGraph::Whole(const OnnxOperand& operand) {
  if (operand.view.Covers(nodes_[operand.node].shape.size())) return operand;
  KUMO_ASSIGN_OR_RETURN(const int node, InOrder(operand));
  OnnxOperand whole = OutputOf(node, operand.view.extents);
  whole.from = operand.from;
  return whole;
}

Result<std::optional<int>> ImportGraph::LaidOutAs(const OnnxOperand& operand,
                                                  const OnnxOperand& like) {
  if (operand.view.extents != like.view.extents) return std::optional<int>();
  const Shape& shape = nodes_[like.node].shape;
  std::vector<int> axes = like.view.AxesByStride();
  for (int axis = 0; axis < like.view.rank(); ++axis) {
    if (like.view.extents[axis] == 1) axes.push_back(axis);
  }
  OnnxOperand permuted = operand;
  permuted.view = operand.view.Permuted(axes);
  if (const auto reshaped = permuted.view.Reshaped(shape.extents())) {
    permuted.view = *reshaped;
    KUMO_ASSIGN_OR_RETURN(const int node, InOrder(permuted));
    return std::optional<int>(node);
  }
  KUMO_ASSIGN_OR_RETURN(int node, InOrder(permuted));
  KUMO_ASSIGN_OR_RETURN(node, Reshaped(node, shape.extents(), operand.from));
  return std::optional<int>(node);
}

OnnxOperand ImportGraph::OutputOf(int node) const {
  return OutputOf(node, nodes_[node].shape.extents());
}

OnnxOperand ImportGraph::OutputOf(int node, const std::vector<int64_t>& extents) const {
  OnnxOperand output;
  output.node = node;
  output.view = StridedView::Of(extents);
  CHECK_EQ(output.view.size(), nodes_[node].shape.size());
  return output;
}

OnnxOperand ImportGraph::OutputWithChannels(int node, const OnnxOperand& operand, int axis) const {
  std::vector<int64_t> extents = operand.view.WithAxisInFront(axis).extents;
  extents[0] = nodes_[node].shape.channels();
  OnnxOperand output = OutputOf(node, extents);
  output.view = output.view.WithFrontAxisAt(axis);
  return output;
}

OnnxOperand ImportGraph::OutputLike(int node, const OnnxOperand& like) const {
  OnnxOperand output;
  output.node = node;
  output.view = like.view;
  return output;
}

const ImportNode* ImportGraph::OpOf(const OnnxOperand& operand, const char* type) const {
  if (!operand.is_array() || !known(operand)) return nullptr;
  if (!operand.view.Covers(nodes_[operand.node].shape.size())) return nullptr;
  return OpOf(operand.node, type);
}

const ImportNode* ImportGraph::OpOf(int node, const char* type) const {
  const ImportNode& op = nodes_[node];
  return op.is_op() && op.from != nullptr && op.from->op_type() == type ? &op : nullptr;
}

const ImportNode* ImportGraph::ElementwiseOf(int node, const char* type) const {
  const ImportNode* const op = OpOf(node, type);
  return op != nullptr && op->elementwise ? op : nullptr;
}

std::optional<double> ImportGraph::ScalarOf(const OnnxOperand& operand) {
  if (!operand.constant || operand.constant->size() != 1) return std::nullopt;
  return operand.constant->at(0);
}

}  // namespace kumo
