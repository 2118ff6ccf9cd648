// Import graph: what an ONNX graph becomes while it is read, node by node. Each array of the file
// is a view of a node's output; a node is an input of the network, a layer, or an op of the file
// without a counterpart of its own.
//
// Transpositions, slices and reshapes of the file change views only. A layer that needs the
// elements in an order of its own gets layers that put them there, and none if they lie so already;
// so a transformer whose channels are the last axis becomes the same layers as one whose channels
// are the first.
//
// An op without a counterpart stands in the graph so that the readers of later nodes can recognise
// what the ops are together: GELU is six of them. A node that no output depends on is left out at
// the end; an op without a counterpart that is left in is an error.
//
// Owned and used by one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/status.h"
#include "models/onnx/constant.h"
#include "models/onnx/strided_view.h"
#include "models/tensor/tensor.h"
#include "proto/model.pb.h"
#include "proto/onnx.pb.h"

namespace kumo {

// An operand or a result of an ONNX node: a constant, a view of a node's output, or, of an input
// that is left out, neither.
struct OnnxOperand {
  std::optional<OnnxConstant> constant = std::nullopt;
  int node = -1;
  StridedView view = {};                  // of one sample
  const onnx::NodeProto* from = nullptr;  // that made the view

  bool is_array() const { return node >= 0; }
};

// A tensor of a layer: "weight", and its elements with the dims of the layer's.
struct ImportTensor {
  const char* name;
  OnnxConstant elements;
};

// A linear function of an input, by channel: factor * x + term.
struct InputFormula {
  int input = 0;                       // node
  std::vector<double> factors, terms;  // one for all channels, or of each
  bool of_image = false;               // a term of each element
};

struct ImportNode {
  const onnx::NodeProto* from = nullptr;  // null for an input of the graph
  Shape shape;
  bool known = true;  // false: the shape is not, and the node is an op without counterpart
  std::vector<int> inputs = {};
  // A layer, if its kind is set.
  model::Layer layer = {};
  std::vector<ImportTensor> tensors = {};
  // Otherwise an input of the graph, or a function of one;
  int input = -1;
  bool integers = false;
  int64_t vocabulary = 0;
  std::optional<InputFormula> formula = std::nullopt;
  // or an op without a counterpart: why, if that is more than its name.
  std::string problem = "";
  bool elementwise = false;  // its output and its arrays have one layout
  std::vector<OnnxOperand> operands = {};

  bool is_layer() const { return layer.kind_case() != model::Layer::KIND_NOT_SET; }
  bool is_op() const { return !is_layer() && input < 0 && !formula; }
};

class ImportGraph {
 public:
  const std::deque<ImportNode>& nodes() const { return nodes_; }
  const ImportNode& node(int i) const { return nodes_[i]; }

  // An input of the network.
  OnnxOperand AddInput(int input, const std::vector<int64_t>& extents, bool integers);
  // Fixes the vocabulary of an input of integers. InvalidArgument if it has another one.
  Status SetVocabulary(int node, int64_t vocabulary);
  // Whether the operand is all of an input of floats, or of a formula of one, in its order.
  bool IsOfInput(const OnnxOperand& operand) const;
  // The formula on top of those before it, of an operand for which IsOfInput() is true. Its numbers
  // are one for all channels, or of each; none if a formula before it has others.
  std::optional<OnnxOperand> AddFormula(const OnnxOperand& operand, const InputFormula& formula,
                                        const onnx::NodeProto* from);

  // Makes a formula without an image a layer of its input: a batch normalisation that is not
  // trained.
  void MakeNormalisation(int node);

  // A layer with these inputs, as models/ops/OP/plan.cc plans it; its node. layer has its kind and
  // settings. InvalidArgument if the layer cannot be, or if it has other tensors.
  Result<int> AddLayer(model::Layer layer, std::vector<int> inputs,
                       std::vector<ImportTensor> tensors, const onnx::NodeProto* from);
  // An op without a counterpart, with an output of these extents, or of unknown ones; its output.
  OnnxOperand AddOp(const onnx::NodeProto* from, std::vector<OnnxOperand> operands,
                    const std::optional<std::vector<int64_t>>& extents, std::string problem);
  // An elementwise op of operands of one layout (or constants of one number): its output has it
  // too.
  OnnxOperand AddElementwiseOp(const onnx::NodeProto* from, std::vector<OnnxOperand> operands);

  // A node whose shape are the view's extents and whose elements lie in its order; layers are added
  // if necessary. InvalidArgument if layers cannot make it.
  Result<int> InOrder(const OnnxOperand& operand);
  // The same, of any shape.
  Result<int> Flat(const OnnxOperand& operand);
  // A node whose channels are that axis, and whose positions are the other axes, in order.
  Result<int> WithChannels(const OnnxOperand& operand, int axis);
  // A view that has each element of its node once: `operand`, or of a new node.
  Result<OnnxOperand> Whole(const OnnxOperand& operand);
  // The node of `operand`, or a new one, such that its elements lie as `like`, which is whole, and
  // its shape is the same. None if the extents differ.
  Result<std::optional<int>> LaidOutAs(const OnnxOperand& operand, const OnnxOperand& like);

  // A node's output as an operand of the node's extents or of others of the same size.
  OnnxOperand OutputOf(int node) const;
  OnnxOperand OutputOf(int node, const std::vector<int64_t>& extents) const;
  // The output of a node that WithChannels() made of `operand`, or of a layer on it: the axes of
  // `operand`, where `axis` has the node's channels.
  OnnxOperand OutputWithChannels(int node, const OnnxOperand& operand, int axis) const;
  // The output of a node that is laid out as the node of `like`.
  OnnxOperand OutputLike(int node, const OnnxOperand& like) const;

  // The node if it is an op of that type without a counterpart, and the operand is all of it, in
  // any order; null otherwise.
  const ImportNode* OpOf(const OnnxOperand& operand, const char* type) const;
  const ImportNode* OpOf(int node, const char* type) const;
  // The same for an elementwise op.
  const ImportNode* ElementwiseOf(int node, const char* type) const;
  bool known(const OnnxOperand& operand) const {
    return !operand.is_array() || nodes_[operand.node].known;
  }
  // The number of a constant of one number; none for other operands.
  static std::optional<double> ScalarOf(const OnnxOperand& operand);

  // Memory stays a multiple of the file's: allows `elements` more to be computed.
  void Allow(int64_t elements) { computable_ += elements; }
  // Counts elements, before memory for them is taken. InvalidArgument if no more are allowed; then
  // none are counted.
  Status Count(int64_t elements);

 private:
  // node, extents, strides, offset
  using Place = std::tuple<int, std::vector<int64_t>, std::vector<int64_t>, int64_t>;

  Result<int> Reshaped(int node, const std::vector<int64_t>& extents, const onnx::NodeProto* from);
  Result<int> Gathered(const OnnxOperand& operand);

  std::deque<ImportNode> nodes_;            // references stay
  int64_t computable_ = 4 * kMostComputed;  // elements of constants
  std::map<Place, int> gathered_;
};

}  // namespace kumo
