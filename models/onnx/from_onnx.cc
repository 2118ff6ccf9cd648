// Nodes are read once, in the order of the file, which ONNX requires to be topological. Interpret
// takes the first rule that fits:
//
//   1. an op of another domain, or an operand of unknown shape: a gap
//   2. only constants: FoldConstants
//   3. Shape, Identity, Cast: no layer, a constant or the same view
//   4. a linear function of an input: a formula (FormulaOf)
//   5. the op's readers (ops/OP/onnx.cc): a layer, perhaps for several nodes before this one
//   6. an elementwise op: kept, so that a later reader can recognise the whole (GELU is six nodes)
//   7. everything else: a gap
//
// A gap is no error yet: the graph keeps the op, and only MakeNetwork reports it, if an output
// depends on it. So all gaps are named at once, with advice.
//
// The softmax at an output's end is left to the loss, which computes softmax and cross-entropy
// together.
//
// Memory: a file may name one part of its bytes in many tensors, or compute large constants from
// small ones. Allow adds a multiple of the elements that the file really has; Count takes from it.
#include "models/onnx/from_onnx.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/printable.h"
#include "models/layers/layer.h"
#include "models/onnx/fold.h"
#include "models/onnx/import_advice.h"
#include "models/onnx/import_network.h"
#include "models/onnx/input_formula.h"
#include "models/onnx/op_extents.h"
#include "models/onnx/readers.h"

namespace kumo {
namespace {

constexpr int kMostNodes = 200'000;
constexpr size_t kMostNetworkInputs = 16;

// All readers by the type of node, in the order of KUMO_OPS.
const std::multimap<std::string, const OnnxReader*>& Readers() {
  static const auto& readers = *[] {
    auto* const all = new std::multimap<std::string, const OnnxReader*>();
#define KUMO_ADD_READERS(Name) \
  for (const OnnxReader& reader : Name##OnnxReaders()) all->emplace(reader.op, &reader);
    KUMO_OPS(KUMO_ADD_READERS)
#undef KUMO_ADD_READERS
    return all;
  }();
  return readers;
}

// Reads a model into a graph.
class ModelReader {
 public:
  ModelReader(const onnx::ModelProto& model, const ImportOptions& options,
              const ReadBeside& read_beside)
      : model_(model), options_(options), read_beside_(read_beside) {}

  Result<ReadModel> Read() && {
    KUMO_RETURN_IF_ERROR(CheckHeader());
    KUMO_RETURN_IF_ERROR(ReadInitializers());
    KUMO_RETURN_IF_ERROR(ReadInputs());
    for (const onnx::NodeProto& node : model_.graph().node()) {
      KUMO_RETURN_IF_ERROR(ReadNode(node));
    }
    KUMO_RETURN_IF_ERROR(FindOutputs());
    return std::move(read_);
  }

 private:
  Status CheckHeader() {
    for (const onnx::OperatorSetIdProto& set : model_.opset_import()) {
      if (set.domain().empty() || set.domain() == "ai.onnx") opset_ = set.version();
    }
    if (opset_ < 1 || model_.graph().node().empty()) {
      return InvalidArgument("no ONNX model: it has no nodes or no version of its operators");
    }
    if (model_.graph().node_size() > kMostNodes) {
      return InvalidArgument("it has more than " + std::to_string(kMostNodes) + " nodes");
    }
    return OkStatus();
  }

  Status ReadInitializers() {
    // The parts of each file that have been read, by their begin.
    std::map<std::string, std::map<int64_t, int64_t>> ends;
    bool again = false;
    // A part that several tensors name is no memory of the file's own.
    const ReadBeside read = [&](const std::string& name, int64_t begin,
                                int64_t length) -> Result<std::string> {
      std::map<int64_t, int64_t>& parts = ends[name];
      const auto next = parts.upper_bound(begin);
      again = (next != parts.end() && next->first - begin < length) ||
              (next != parts.begin() && std::prev(next)->second > begin);
      if (again) KUMO_RETURN_IF_ERROR(graph_.Count(length));
      KUMO_ASSIGN_OR_RETURN(std::string bytes, read_beside_(name, begin, length));
      if (!again) parts[begin] = begin + length;
      return bytes;
    };
    for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
      again = false;
      KUMO_ASSIGN_OR_RETURN(OnnxConstant constant,
                            ReadConstant(tensor, read_beside_ ? read : nullptr));
      if (!again) graph_.Allow(8 * constant.size());
      OnnxOperand operand;
      operand.constant = std::move(constant);
      values_[tensor.name()] = std::move(operand);
    }
    return OkStatus();
  }

  Result<std::vector<int64_t>> InputExtents(const onnx::ValueInfoProto& input) {
    const auto& dims = input.type().tensor_type().shape().dim();
    const auto wrong = [&input](const std::string& what) {
      return InvalidArgument("input " + Printable(input.name()) + ": " + what);
    };
    if (dims.size() < 1) return wrong("it has no axes; the first one must be the batch");
    static_batch_ = dims[0].dim_value();
    std::vector<int64_t> extents;
    std::string axes;  // "3x?x?"
    bool fits = std::ssize(options_.input) == dims.size() - 1;
    for (int i = 1; i < dims.size(); ++i) {
      const int64_t extent = dims[i].dim_value();
      extents.push_back(extent);
      fits = fits && (extent < 1 || extent == options_.input[i - 1]);
      axes += (i == 1 ? "" : "x") + (extent < 1 ? "?" : std::to_string(extent));
    }
    if (!options_.input.empty() && !fits) {
      return wrong("--input-shape " + StridedView{options_.input, {}}.ExtentsText() +
                   " does not fit the model's axes, " + axes +
                   "; give those, with a number in place of each ?");
    }
    const bool free = std::ranges::count_if(extents, [](int64_t e) { return e < 1; }) > 0;
    if (fits) extents = options_.input;
    if (!SizeOfExtents(extents, int64_t{1} << 28)) {
      return wrong(free ? "an extent is free: give a sample's with --input-shape, such as 3x224x224"
                        : "a sample must have at most 2^28 elements");
    }
    if (extents.empty() || extents.size() > static_cast<size_t>(kMostRank)) {
      return wrong("a sample must have 1 to " + std::to_string(kMostRank) + " axes");
    }
    return extents;
  }

  Status ReadInputs() {
    for (const onnx::ValueInfoProto& input : model_.graph().input()) {
      if (values_.contains(input.name())) continue;  // an initializer, as older files list them
      if (read_.inputs.size() == kMostNetworkInputs)
        return InvalidArgument("it has too many inputs");
      KUMO_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, InputExtents(input));
      const int type = input.type().tensor_type().elem_type();
      const bool integers = type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
      values_[input.name()] =
          graph_.AddInput(static_cast<int>(read_.inputs.size()), extents, integers);
      read_.inputs.push_back({input.name(), extents});
    }
    if (read_.inputs.empty()) return InvalidArgument("it has no input");
    if (!options_.input.empty() && read_.inputs.size() > 1) {
      return InvalidArgument("--input-shape: the model has several inputs");
    }
    return OkStatus();
  }

  void Keep(const onnx::NodeProto& node, int output, OnnxOperand value) {
    if (output >= node.output_size() || node.output(output).empty()) return;
    if (value.is_array() && value.from == nullptr) value.from = &node;
    values_[node.output(output)] = std::move(value);
  }

  Status ReadNode(const onnx::NodeProto& node) {
    OnnxCall call = {node, {}, graph_, opset_, static_batch_};
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        call.inputs.emplace_back();
        continue;
      }
      const auto found = values_.find(name);
      if (found == values_.end()) {
        return InvalidArgument("node " + Printable(node.name()) + " reads " + Printable(name) +
                               ", which no node before it computes");
      }
      call.inputs.push_back(found->second);
    }
    while (!call.inputs.empty() && !call.inputs.back().is_array() && !call.inputs.back().constant) {
      call.inputs.pop_back();
    }
    return Interpret(call);
  }

  Status Interpret(OnnxCall& call) {
    const onnx::NodeProto& node = call.node;
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    const bool arrays = std::ranges::any_of(call.inputs, &OnnxOperand::is_array);
    if (!standard)
      return Leave(call, std::nullopt,
                   "an op of domain " + Printable(node.domain()) + "; " + AdviceFor(""));
    for (const OnnxOperand& input : call.inputs) {
      if (!graph_.known(input)) return Leave(call, std::nullopt, "");
      const bool number = input.is_array() && input.view.rank() == 0;
      if (number && node.op_type() != "Unsqueeze" && node.op_type() != "Reshape") {
        return Leave(call, std::nullopt, "its operand has no axis beside the batch");
      }
    }
    if (!arrays) {
      auto folded = FoldConstants(call);
      if (!folded)
        return Leave(call, std::nullopt, "a computation with constants only; " + AdviceFor(""));
      for (size_t i = 0; i < folded->size(); ++i) {
        OnnxOperand value;
        value.constant = std::move((*folded)[i]);
        if (node.op_type() == "Constant") {
          graph_.Allow(8 * value.constant->size());
        } else if (node.op_type() != "Identity") {
          KUMO_RETURN_IF_ERROR(graph_.Count(value.constant->size())
                                   .WithContext("node " + Printable(node.name()) + " (" +
                                                Printable(node.op_type()) + ")"));
        }
        Keep(node, static_cast<int>(i), std::move(value));
      }
      return OkStatus();
    }
    if (!HasItsOperands(call)) {
      return Leave(call, std::nullopt, "its operands do not fit the op");
    }
    if (node.op_type() == "Shape" && call.IsArray(0)) {
      KeepShape(call);
      return OkStatus();
    }
    if (node.op_type() == "Identity" && call.IsArray(0)) {
      Keep(node, 0, call.inputs[0]);
      return OkStatus();
    }
    if (node.op_type() == "Cast" && call.IsArray(0)) return KeepCast(call);
    Result<std::optional<OnnxOperand>> formula = FormulaOf(call);
    if (!formula.ok()) return Leave(call, ExtentsOf(call), formula.status().message());
    if (*formula) {
      Keep(node, 0, **std::move(formula));
      return OkStatus();
    }
    const auto [first, last] = Readers().equal_range(node.op_type());
    for (auto reader = first; reader != last; ++reader) {
      Result<std::vector<OnnxOperand>> outputs = reader->second->read(call);
      if (!outputs.ok()) return Leave(call, ExtentsOf(call), outputs.status().message());
      if (outputs->empty()) continue;
      for (size_t i = 0; i < outputs->size(); ++i) {
        Keep(node, static_cast<int>(i), std::move((*outputs)[i]));
      }
      return OkStatus();
    }
    if (IsElementwise(call)) {
      Keep(node, 0, graph_.AddElementwiseOp(&node, call.inputs));
      return OkStatus();
    }
    return Leave(call, ExtentsOf(call), AdviceFor(node.op_type(), call.inputs));
  }

  // Keeps a node as an op without a counterpart.
  Status Leave(const OnnxCall& call, const std::optional<std::vector<int64_t>>& extents,
               std::string problem) {
    const OnnxOperand output = graph_.AddOp(&call.node, call.inputs, extents, std::move(problem));
    Keep(call.node, 0, output);
    for (int i = 1; i < call.node.output_size(); ++i) {
      Keep(call.node, i,
           graph_.AddOp(&call.node, call.inputs, std::nullopt,
                        "its other outputs have no counterpart"));
    }
    return OkStatus();
  }

  // A cast that keeps all numbers; others truncate.
  Status KeepCast(const OnnxCall& call) {
    const auto to = static_cast<int>(call.Int("to", onnx::TensorProto::FLOAT));
    const bool to_floats = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE ||
                           to == onnx::TensorProto::FLOAT16 || to == onnx::TensorProto::BFLOAT16;
    const bool to_integers = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
    const OnnxOperand& operand = call.inputs[0];
    if (to_floats || (to_integers && graph_.node(operand.node).integers)) {
      Keep(call.node, 0, operand);
      return OkStatus();
    }
    return Leave(call, operand.view.extents,
                 "it rounds or truncates its operand; leave this conversion out of the model");
  }

  void KeepShape(const OnnxCall& call) {
    std::vector<int64_t> dims = {kBatchExtent};
    const std::vector<int64_t>& extents = call.inputs[0].view.extents;
    dims.insert(dims.end(), extents.begin(), extents.end());
    const int64_t rank = std::ssize(dims);
    const auto place = [rank](int64_t axis) {
      return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
    };
    const int64_t begin = place(call.Int("start", 0));
    const int64_t end = std::max(begin, place(call.Int("end", rank)));
    OnnxOperand value;
    value.constant =
        OnnxConstant::OfIntegers({end - begin}, {dims.begin() + begin, dims.begin() + end});
    Keep(call.node, 0, std::move(value));
  }

  // An output of the model without the softmax at its end, and the softmax's axis.
  struct ModelOutput {
    std::string name;
    OnnxOperand scores;
    std::optional<int> classes;  // axis
    std::string softmax;         // its op, and the output that it is
    std::string softmax_name;
    bool with_scores = false;  // its operand is an output, too
  };

  ModelOutput OutputCalled(const std::string& name, const OnnxOperand& operand) {
    ModelOutput output = {name, operand, std::nullopt, "", "", true};
    if (!graph_.known(operand)) return output;
    for (const char* const type : {"Softmax", "LogSoftmax"}) {
      const ImportNode* const softmax = graph_.OpOf(operand, type);
      if (softmax == nullptr || !softmax->operands[0].is_array()) continue;
      const OnnxCall call = {*softmax->from, softmax->operands, graph_, opset_, static_batch_};
      const int rank = softmax->operands[0].view.rank();
      const auto axis = OnnxCall::SampleAxis(call.Int("axis", opset_ < 13 ? 1 : -1), rank);
      if (!axis) continue;
      output.scores = softmax->operands[0];
      output.classes = axis;
      output.softmax = type;
      output.softmax_name = name;
      output.with_scores = false;
    }
    return output;
  }

  Status FindOutputs() {
    std::vector<ModelOutput> outputs;
    for (const onnx::ValueInfoProto& info : model_.graph().output()) {
      const auto found = values_.find(info.name());
      if (found == values_.end() || !found->second.is_array()) {
        return InvalidArgument("output " + Printable(info.name()) +
                               ": no node computes it from the input");
      }
      const ModelOutput output = OutputCalled(info.name(), found->second);
      // Parts of a node's output may be outputs of their own.
      const auto whole = [&](const OnnxOperand& scores) {
        return graph_.known(scores) && scores.view.Covers(graph_.node(scores.node).shape.size());
      };
      const auto same = [&](const ModelOutput& other) {
        return other.scores.node == output.scores.node &&
               (other.scores.view.SamePlaces(output.scores.view) ||
                (whole(other.scores) && whole(output.scores)));
      };
      const auto before = std::ranges::find_if(outputs, same);
      if (before == outputs.end()) {
        outputs.push_back(output);
        continue;
      }
      const bool with_scores = before->with_scores || output.with_scores;
      if (!before->classes && output.classes) {  // scores and their probabilities
        const std::string name = before->name;
        *before = output;
        before->name = name;
      }
      before->with_scores = with_scores;
    }
    if (outputs.empty()) return InvalidArgument("it has no output");
    read_.loss = LossOf(outputs[0].classes.has_value());
    for (const ModelOutput& output : outputs) {
      KUMO_RETURN_IF_ERROR(LeaveOutSoftmax(output, &output == outputs.data()));
      KUMO_ASSIGN_OR_RETURN(const int node, NodeOfOutput(output));
      read_.outputs.push_back(node);
    }
    return OkStatus();
  }

  // Kumo's exports of networks of numbers have no probabilities; others leave them to the loss.
  ImportLoss LossOf(bool softmax) const {
    if (options_.loss) return *options_.loss;
    const bool numbers = model_.producer_name() == "kumo" && !softmax;
    return numbers ? ImportLoss::kMeanSquaredError : ImportLoss::kSoftmaxCrossEntropy;
  }

  // The network gives the operand of an output's softmax, which only the loss can compute.
  Status LeaveOutSoftmax(const ModelOutput& output, bool is_first) {
    if (!output.classes) return OkStatus();
    const std::string name = "output " + Printable(output.softmax_name);
    if (is_first && read_.loss == ImportLoss::kSoftmaxCrossEntropy) {
      read_.notes.emplace_back("the softmax at the model's end is left to the loss");
    } else if (output.with_scores) {
      read_.notes.push_back(name + " is left out: it is the " + output.softmax +
                            " of another output");
    } else if (is_first) {
      return FailedPrecondition(name + " is a " + output.softmax +
                                ", which only the loss softmax_cross_entropy computes; omit "
                                "--loss, or export the model without it");
    } else {
      read_.notes.push_back(name + ": no layer computes " + output.softmax +
                            "; the network returns the input of the " + output.softmax);
    }
    return OkStatus();
  }

  // The node whose channels are the classes.
  Result<int> NodeOfOutput(const ModelOutput& output) {
    const OnnxOperand& scores = output.scores;
    if (!graph_.known(scores)) return scores.node;
    const int64_t size = graph_.node(scores.node).shape.size();
    Result<int> node = scores.node;
    if (output.classes) {
      node = graph_.WithChannels(scores, *output.classes);
    } else if (!scores.view.Covers(size)) {
      node = graph_.InOrder(scores);
    } else if (scores.view.IsInOrder()) {
      node = graph_.InOrder(scores);
    }
    if (!node.ok()) return node.status().WithContext("output " + Printable(output.name));
    return node;
  }

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  const ReadBeside& read_beside_;
  int64_t opset_ = 0;
  int64_t static_batch_ = 0;
  std::map<std::string, OnnxOperand> values_;  // by name
  ReadModel read_{model_};
  ImportGraph& graph_ = read_.graph;
};

}  // namespace

Result<ImportedModel> FromOnnx(const onnx::ModelProto& model, const ImportOptions& options,
                               const ReadBeside& read_beside, std::vector<std::string>* gaps) {
  KUMO_ASSIGN_OR_RETURN(ReadModel read, ModelReader(model, options, read_beside).Read());
  return MakeNetwork(options.name, &read, gaps);
}

Result<onnx::ModelProto> ParseOnnx(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    return InvalidArgument(
        "the bytes are no ONNX model; PyTorch writes one with torch.onnx.export");
  }
  return model;
}

std::vector<std::string> ImportedOps() {
  std::set<std::string> ops = {"Cast", "Constant", "Identity", "LogSoftmax", "Shape", "Softmax"};
  for (const auto& [op, reader] : Readers()) ops.insert(op);
  return {ops.begin(), ops.end()};
}

}  // namespace kumo
