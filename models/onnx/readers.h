// ONNX readers of the ops: which nodes of an ONNX file become a layer. The inverse of the forms
// (forms.h), and what other exporters write.
//
// An op's readers are in ops/OP/onnx.cc. A reader is asked about every node of its type, after all
// nodes that compute the node's inputs. One that recognises several nodes as one layer stands
// at the last of them and looks back: those before it are ops without counterpart in the graph, or
// layers that nothing reads any more (import_graph.h).
//
// Pure functions but for the graph; thread-safe as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/layers/ops.h"
#include "models/onnx/import_graph.h"

namespace kumo {

// A node that is read.
struct OnnxCall {
  const onnx::NodeProto& node;
  std::vector<OnnxOperand> inputs;
  ImportGraph& graph;
  int64_t opset;         // of the file
  int64_t static_batch;  // size of the batch that the file was exported for; 0: any

  bool Has(const char* attribute) const { return Find(attribute) != nullptr; }
  int64_t Int(const char* attribute, int64_t otherwise) const;
  float Float(const char* attribute, float otherwise) const;
  std::string Text(const char* attribute, const std::string& otherwise) const;
  std::vector<int64_t> Ints(const char* attribute) const;
  // Integers of the attribute, or of a constant input; none if neither is there.
  std::optional<std::vector<int64_t>> IntsOf(const char* attribute, size_t input) const;

  bool IsArray(size_t input) const { return input < inputs.size() && inputs[input].is_array(); }
  bool IsConstant(size_t input) const {
    return input < inputs.size() && inputs[input].constant.has_value();
  }
  const OnnxConstant& constant(size_t input) const { return *inputs[input].constant; }
  // Inputs of an operation with two: an array and a constant, in either order.
  struct ArrayAndConstant {
    const OnnxOperand& array;
    const OnnxConstant& constant;
  };
  std::optional<ArrayAndConstant> OneConstant() const;
  bool TwoArrays() const { return inputs.size() == 2 && IsArray(0) && IsArray(1); }
  // Axis of a sample for an axis of ONNX, which counts the batch, and negative axes from the end;
  // none for the batch's axis and for no axis.
  static std::optional<int> SampleAxis(int64_t axis, int rank);

 private:
  const onnx::AttributeProto* Find(const char* attribute) const;
};

// The outputs of a node; none if the reader does not recognise it. InvalidArgument if it does, but
// a setting has no counterpart.
using OnnxReading = Result<std::vector<OnnxOperand>>;

struct OnnxReader {
  const char* op;
  OnnxReading (*read)(const OnnxCall& call);
};

// `Name`OnnxReaders().
#define KUMO_DECLARE_ONNX_READERS(Name) std::span<const OnnxReader> Name##OnnxReaders();
KUMO_OPS(KUMO_DECLARE_ONNX_READERS)
#undef KUMO_DECLARE_ONNX_READERS

// Shared by several readers.

inline OnnxReading NotRead() { return std::vector<OnnxOperand>(); }
inline OnnxReading Read(OnnxOperand output) {
  std::vector<OnnxOperand> outputs;
  outputs.push_back(std::move(output));
  return outputs;
}
// A layer on all elements of an operand in turn, whatever their order, without tensors.
OnnxReading ReadElementwise(const OnnxCall& call, const OnnxOperand& operand, model::Layer layer);

// The elements of a constant that has one for each place of `axis` of an array of that view, or one
// in all; none if it has others. ONNX aligns a constant's last axis with the array's.
std::optional<OnnxConstant> AlongAxis(const OnnxConstant& constant, const StridedView& view,
                                      int axis);
// The dims of a constant as extents of a sample of `rank` axes, with 1 in front; none if it has
// more or differs between samples.
std::optional<std::vector<int64_t>> SampleDims(const OnnxConstant& constant, int rank);

// The tensors of a layer, with these in the place of those, and settings.
std::vector<ImportTensor> WithTensor(std::vector<ImportTensor> tensors, const char* name,
                                     OnnxConstant elements);

// The number that all are, such as the strides of a node, or `otherwise` if there are none.
// InvalidArgument("`what` must be ...") if they differ.
Result<int> OneForAllSides(const char* what, const std::vector<int64_t>& numbers,
                           int64_t otherwise);

// The field of a layer for an epsilon: 0 for the standard one, and more than 0 for others.
float EpsilonField(float epsilon, float standard = 1e-5f);

// Whether both are the same elements in the same order.
bool SameOperand(const OnnxOperand& a, const OnnxOperand& b);
bool Nearly(double a, double b);

// A product of numbers and of elementwise operands of one layout, looked through: of what op Mul,
// op Div by a number, and layers multiply are made. Factors are nodes; `whole` is not taken apart.
struct Product {
  double number = 1;
  std::vector<int> factors;
};
Product ProductOf(const ImportGraph& graph, int node, int whole = -1);
// `number` times `factor`; none if the node is another product.
std::optional<double> MultipleOf(const ImportGraph& graph, int node, int factor);
// The node to which op Add adds a number, and the number.
struct NodeAndNumber {
  int node;
  double number;
};
std::optional<NodeAndNumber> SumWithNumber(const ImportGraph& graph, int node);

}  // namespace kumo
