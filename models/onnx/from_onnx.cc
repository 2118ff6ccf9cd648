#include "models/onnx/from_onnx.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/printable.h"
#include "models/network.h"
#include "models/onnx/fold.h"
#include "models/onnx/import_graph.h"
#include "models/onnx/layer_names.h"
#include "models/onnx/op_extents.h"
#include "models/onnx/readers.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

constexpr int kMostNodes = 200'000;
constexpr int kMostLayers = 10'000;  // as in BuildGraph
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

bool IsLinear(const std::string& op) {
  return op == "Add" || op == "Sub" || op == "Mul" || op == "Div";
}

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

// A linear function of a whole input with constants, such as the normalisation of pixels: by one
// number or one of each channel, or a subtraction of an image from a picture.
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

struct Advice {
  const char* op;
  const char* advice;
};
constexpr Advice kAdvice[] = {
    {"Clip", "use ReLU in its place"},
    {"HardSwish", "use SiLU in its place"},
    {"HardSigmoid", "use Sigmoid in its place"},
    {"Elu", "use ReLU or GELU in its place"},
    {"Softplus", "use ReLU or GELU in its place"},
    {"PRelu", "use LeakyReLU in its place"},
    {"Mish", "use SiLU in its place"},
    {"LSTM", "a network has no recurrent layers; use attention in their place"},
    {"GRU", "a network has no recurrent layers; use attention in their place"},
    {"RNN", "a network has no recurrent layers; use attention in their place"},
    {"Pad", "give the padding to the convolution or pooling behind it"},
    {"If", "export a model without branches that depend on data"},
    {"Loop", "export a model without loops that depend on data"},
    {"Scan", "export a model without loops that depend on data"},
    {"Softmax", "inside a network only an attention has one; at its end it belongs to the loss"},
    {"ReduceMax", "use max pooling or the mean in its place"},
};

std::string AdviceFor(const std::string& op, const std::vector<OnnxOperand>& operands = {}) {
  const bool with_constant = std::ranges::any_of(
      operands, [](const OnnxOperand& operand) { return operand.constant.has_value(); });
  if (IsLinear(op) && with_constant) {
    return "only an input of the model is scaled or shifted by constants, by one number or by one "
           "of each channel; merge the constant into the weights of the layer before or behind it";
  }
  for (const Advice& one : kAdvice) {
    if (op == one.op) return one.advice;
  }
  return "replace it in the model by ops of `kumo import --help`, and export again";
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

class OnnxImporter {
 public:
  OnnxImporter(const onnx::ModelProto& model, const ImportOptions& options,
               const ReadBeside& read_beside)
      : model_(model), options_(options), read_beside_(read_beside), names_(model) {}

  Result<ImportedModel> Run(std::vector<std::string>* gaps) {
    KUMO_RETURN_IF_ERROR(CheckHeader());
    KUMO_RETURN_IF_ERROR(ReadInitializers());
    KUMO_RETURN_IF_ERROR(ReadInputs());
    for (const onnx::NodeProto& node : model_.graph().node()) {
      KUMO_RETURN_IF_ERROR(ReadNode(node));
    }
    KUMO_RETURN_IF_ERROR(FindOutputs());
    FindUsed();
    *gaps = Gaps();
    if (!gaps->empty()) {
      std::string more;
      if (gaps->size() > 1) more = "; " + std::to_string(gaps->size() - 1) + " more have none";
      return FailedPrecondition(gaps->front() + more);
    }
    return Build();
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
      if (inputs_.size() == kMostNetworkInputs) return InvalidArgument("it has too many inputs");
      KUMO_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, InputExtents(input));
      const int type = input.type().tensor_type().elem_type();
      const bool integers = type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
      values_[input.name()] = graph_.AddInput(static_cast<int>(inputs_.size()), extents, integers);
      inputs_.push_back({input.name(), extents});
    }
    if (inputs_.empty()) return InvalidArgument("it has no input");
    if (!options_.input.empty() && inputs_.size() > 1) {
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
    softmax_ = outputs[0].classes.has_value();
    for (const ModelOutput& output : outputs) {
      KUMO_RETURN_IF_ERROR(LeaveOutSoftmax(output, &output == outputs.data()));
      KUMO_ASSIGN_OR_RETURN(const int node, NodeOfOutput(output));
      outputs_.push_back(node);
    }
    return OkStatus();
  }

  // The network gives the operand of an output's softmax, which only the loss can compute.
  Status LeaveOutSoftmax(const ModelOutput& output, bool is_first) {
    if (!output.classes) return OkStatus();
    const std::string name = "output " + Printable(output.softmax_name);
    if (is_first && LossOf() == ImportLoss::kSoftmaxCrossEntropy) {
      notes_.emplace_back("the softmax at the model's end is left to the loss");
    } else if (output.with_scores) {
      notes_.push_back(name + " is left out: it is the " + output.softmax + " of another output");
    } else if (is_first) {
      return FailedPrecondition(name + " is a " + output.softmax +
                                ", which only the loss softmax_cross_entropy computes; omit "
                                "--loss, or export the model without it");
    } else {
      notes_.push_back(name + " is a " + output.softmax +
                       ", which no layer computes: the network gives what it is applied to");
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

  // Finds the nodes that outputs depend on, and those that more reads than functions of an input.
  void FindUsed() {
    used_ = NeededFor(outputs_);
    trained_ = NeededFor({outputs_[0]});
    read_.assign(graph_.nodes().size(), false);
    for (const int node : outputs_) read_[node] = true;
    for (size_t i = 0; i < used_.size(); ++i) {
      const ImportNode& node = graph_.node(static_cast<int>(i));
      if (!used_[i] || node.formula) continue;
      for (const int input : node.inputs) read_[input] = true;
    }
    PlaceFormulas();
  }

  // Leaves to the data a formula that is all that is read of the only pictures: data.scale,
  // data.mean and data.std are of all pictures and of no other numbers. Other formulas become
  // layers.
  void PlaceFormulas() {
    std::map<int, std::vector<int>> formulas;  // that are read, by input
    for (size_t i = 0; i < used_.size(); ++i) {
      const ImportNode& node = graph_.node(static_cast<int>(i));
      if (node.formula && read_[i]) formulas[node.formula->input].push_back(static_cast<int>(i));
    }
    std::vector<int> pictures;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool floats = !graph_.node(static_cast<int>(i)).integers;
      if (floats && inputs_[i].extents.size() == 3) pictures.push_back(static_cast<int>(i));
    }
    for (const auto& [input, nodes] : formulas) {
      if (pictures == std::vector<int>{input} && nodes.size() == 1 && !read_[input]) continue;
      for (const int node : nodes) {
        if (graph_.node(node).formula->of_image) continue;
        graph_.MakeNormalisation(node);
        normalisations_.insert(node);
      }
      read_[input] = true;
    }
  }

  std::vector<bool> NeededFor(std::vector<int> waiting) const {
    std::vector<bool> needed(graph_.nodes().size());
    while (!waiting.empty()) {
      const int node = waiting.back();
      waiting.pop_back();
      if (needed[node]) continue;
      needed[node] = true;
      const std::vector<int>& inputs = graph_.node(node).inputs;
      waiting.insert(waiting.end(), inputs.begin(), inputs.end());
    }
    return needed;
  }

  std::string Described(const ImportNode& node) const {
    const onnx::NodeProto& from = *node.from;
    const std::string name =
        from.name().empty() && from.output_size() > 0 ? from.output(0) : from.name();
    std::string shape;
    for (const OnnxOperand& operand : node.operands) {
      if (!operand.is_array() || !graph_.known(operand)) continue;
      shape = ", " + operand.view.ExtentsText();
      break;
    }
    return "node " + Printable(name) + " (" + Printable(from.op_type(), 60) + shape + ")";
  }

  // Ops without counterparts on which an output depends, without those that only follow from them.
  std::vector<std::string> Gaps() const {
    std::vector<std::string> gaps;
    for (size_t i = 0; i < used_.size(); ++i) {
      const ImportNode& node = graph_.node(static_cast<int>(i));
      if (!used_[i] || !node.is_op()) continue;
      const auto is_known = [this](const OnnxOperand& operand) { return graph_.known(operand); };
      if (node.problem.empty() && !std::ranges::all_of(node.operands, is_known)) continue;
      const std::string why =
          node.problem.empty() ? AdviceFor(node.from->op_type(), node.operands) : node.problem;
      gaps.push_back(Described(node) + " has no counterpart: " + why);
    }
    return gaps;
  }

  Result<ImportedModel> Build() {
    ImportedModel imported;
    model::Network& network = imported.network;
    std::string name = ValidName(model_.graph().name(), /*dots=*/false);
    if (name.empty() || name.starts_with("main_graph") || name.starts_with("torch_jit")) {
      name = ValidName(options_.name, /*dots=*/false);
    }
    network.set_name(name.empty() ? "imported" : name);
    KUMO_RETURN_IF_ERROR(AddInputs(&imported));
    KUMO_RETURN_IF_ERROR(AddLayers(&imported));
    AddLoss(&imported);
    imported.notes.insert(imported.notes.end(), notes_.begin(), notes_.end());
    KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
    return CheckTensors(graph, std::move(imported));
  }

  Status AddInputs(ImportedModel* imported) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ImportNode& node = graph_.node(static_cast<int>(i));  // inputs are the first ones
      if (!used_[i]) {
        return InvalidArgument("input " + Printable(inputs_[i].name) + ": no output depends on it");
      }
      model::Input& input = *imported->network.add_input();
      const std::vector<int64_t>& extents = inputs_[i].extents;
      if (extents.size() == 3 && !node.integers) {
        input.set_channels(static_cast<int>(extents[0]));
        input.set_height(static_cast<int>(extents[1]));
        input.set_width(static_cast<int>(extents[2]));
      } else {
        for (const int64_t extent : extents) input.add_extents(static_cast<int>(extent));
      }
      input.set_vocabulary(static_cast<int>(node.vocabulary));
      std::string name = "input";
      if (inputs_.size() > 1) {
        name = names_.NameOfInput(inputs_[i].name);
        input.set_name(name);
      } else if (node.integers) {
        name = "tokens";  // the field of a text
        names_.Reserve(name);
        input.set_name(name);
      }
      names_by_node_[static_cast<int>(i)] = name;
    }
    return OkStatus();
  }

  // "(pixels - (0.5)) / (2)"
  std::string TextOf(const InputFormula& formula) const {
    std::vector<double> means, deviations;
    const size_t channels = std::max(formula.factors.size(), formula.terms.size());
    for (size_t c = 0; c < channels; ++c) {
      const double factor = formula.factors[formula.factors.size() == 1 ? 0 : c];
      const double term = formula.terms[formula.terms.size() == 1 ? 0 : c];
      means.push_back(0.0 - term / factor);  // not -0
      deviations.push_back(1 / factor);
    }
    const std::string mean = formula.of_image ? "MEAN IMAGE" : ListOf(means);
    return "(" + Printable(inputs_[formula.input].name) + " - (" + mean + ")) / (" +
           ListOf(deviations) + ")";
  }

  // The input stands for the only function of it that is used.
  Status ReplaceFormula(int i, ImportedModel* imported) {
    const InputFormula& formula = *graph_.node(i).formula;
    names_by_node_[i] = names_by_node_[formula.input];
    if (read_[formula.input]) {
      return FailedPrecondition(Described(graph_.node(i)) +
                                " has no counterpart: the model subtracts an image, which only "
                                "data.subtract_mean does, but it reads the input in other ways, "
                                "too, or other pictures; subtract the image from the samples");
    }
    if (std::ranges::count(formula.factors, 0) > 0) {
      return FailedPrecondition("the input is multiplied by 0");
    }
    imported->notes.push_back("the model computes " + TextOf(formula) +
                              " first, which Kumo leaves to the data: set data.scale, data.mean "
                              "and data.std" +
                              (formula.of_image ? ", or data.subtract_mean," : "") + " for that");
    return OkStatus();
  }

  Status AddLayers(ImportedModel* imported) {
    std::string before = inputs_.size() == 1 ? names_by_node_[0] : "";
    std::map<int, std::string> untrained;  // layers with tensors, in the network
    std::set<std::string> trained_owners;  // whose tensors a trained layer shares
    int layers = 0;
    for (size_t i = inputs_.size(); i < used_.size(); ++i) {
      const ImportNode& node = graph_.node(static_cast<int>(i));
      if (!used_[i]) continue;
      if (node.formula) {
        if (!read_[i]) continue;  // a part of another one
        KUMO_RETURN_IF_ERROR(ReplaceFormula(static_cast<int>(i), imported));
        continue;
      }
      if (++layers > kMostLayers) return InvalidArgument("it has too many layers");
      const std::string kind = FindLayerKind(node.layer.kind_case())->name;
      const std::string name = names_.NameOf(node, kind);
      names_by_node_[static_cast<int>(i)] = name;
      model::Layer& layer = *imported->network.add_layers();
      layer = node.layer;
      layer.set_name(name);
      const bool follows = node.inputs.size() == 1 && names_by_node_[node.inputs[0]] == before;
      for (size_t k = 0; k < node.inputs.size() && !follows; ++k) {
        layer.add_inputs(names_by_node_[node.inputs[k]]);
      }
      before = name;
      if (normalisations_.contains(static_cast<int>(i))) {
        imported->notes.push_back("the model normalises its input " +
                                  Printable(inputs_[node.inputs[0]].name) + "; layer " + name +
                                  " does that, and is frozen");
      }
      KUMO_RETURN_IF_ERROR(AddTensors(node, name, &layer, imported).WithContext("layer " + name));
      if (trained_[i]) {
        trained_owners.insert(layer.tensors_of());
      } else if (!node.tensors.empty() && layer.tensors_of().empty()) {
        untrained[layers - 1] = name;
      }
    }
    std::string frozen;
    for (const auto& [place, name] : untrained) {
      if (trained_owners.contains(name)) continue;
      imported->network.mutable_layers(place)->set_trainable(false);
      frozen += (frozen.empty() ? "" : ", ") + name;
    }
    if (!frozen.empty()) {
      imported->notes.push_back(
          "the loss is of the first output; frozen, since only other outputs "
          "depend on them: " +
          Printable(frozen));
    }
    return OkStatus();
  }

  // Its tensors, or, if an earlier layer has read the same ones of the file, that layer's.
  Status AddTensors(const ImportNode& node, const std::string& name, model::Layer* layer,
                    ImportedModel* imported) {
    if (node.tensors.empty()) return OkStatus();
    TensorsKey key;
    for (const ImportTensor& tensor : node.tensors) {
      const std::string& in_file = tensor.elements.name;
      key.emplace_back(in_file.empty() ? "\n" + name : in_file, tensor.elements.dims);
    }
    const auto [owner, is_new] = owners_.try_emplace(key, Owner{name, &node});
    if (!is_new && !IsUntrained(node) && HasEqualTensors(*owner->second.node, node)) {
      layer->set_tensors_of(owner->second.name);
      return OkStatus();
    }
    for (const ImportTensor& tensor : node.tensors) {
      KUMO_RETURN_IF_ERROR(graph_.Count(tensor.elements.size()));
      imported->tensors.push_back(
          {{name + "." + tensor.name, tensor.elements.dims}, *tensor.elements.floats});
    }
    return OkStatus();
  }

  // Exporters write equal tensors once, such as the ones and zeros of all new normalisations: these
  // are not shared.
  static bool IsUntrained(const ImportNode& node) {
    return std::ranges::all_of(node.tensors, [](const ImportTensor& tensor) {
      return tensor.elements.Scalar().has_value();
    });
  }

  static bool HasEqualTensors(const ImportNode& a, const ImportNode& b) {
    if (a.tensors.size() != b.tensors.size()) return false;
    for (size_t i = 0; i < a.tensors.size(); ++i) {
      const std::vector<float>& these = *a.tensors[i].elements.floats;
      const std::vector<float>& those = *b.tensors[i].elements.floats;
      if (these.size() != those.size()) return false;
      if (these.empty()) continue;
      if (std::memcmp(these.data(), those.data(), these.size() * sizeof(float)) != 0) return false;
    }
    return true;
  }

  void AddLoss(ImportedModel* imported) {
    model::Network& network = imported->network;
    const std::string scores = names_by_node_[outputs_[0]];
    if (outputs_.size() > 1) {
      for (const int node : outputs_) network.add_outputs(names_by_node_[node]);
    }
    model::Layer& loss = *network.add_layers();
    loss.set_name("loss");
    const int before = network.layers_size() - 2;
    if (before < 0 || network.layers(before).name() != scores) loss.add_inputs(scores);
    switch (LossOf()) {
      case ImportLoss::kSoftmaxCrossEntropy:
        loss.mutable_softmax_cross_entropy();
        break;
      case ImportLoss::kMeanSquaredError:
        loss.mutable_mean_squared_error();
        break;
      case ImportLoss::kHuber:
        loss.mutable_huber();
        break;
    }
  }

  // Kumo's exports of networks of numbers have no probabilities; others leave them to the loss.
  ImportLoss LossOf() const {
    if (options_.loss) return *options_.loss;
    const bool numbers = model_.producer_name() == "kumo" && !softmax_;
    return numbers ? ImportLoss::kMeanSquaredError : ImportLoss::kSoftmaxCrossEntropy;
  }

  static Result<ImportedModel> CheckTensors(const Graph& graph, ImportedModel imported) {
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < imported.tensors.size(); ++i) places[imported.tensors[i].spec.name] = i;
    std::vector<ImportedTensor> ordered;
    for (const TensorSpec& spec : graph.tensors()) {
      const auto found = places.find(spec.name);
      if (found == places.end() || imported.tensors[found->second].spec.shape != spec.shape) {
        return Internal("tensor " + spec.name + " was not read as its layer has it");
      }
      ImportedTensor& tensor = imported.tensors[found->second];
      const auto is_finite = [](float x) { return std::isfinite(x); };
      if (!std::ranges::all_of(tensor.elements, is_finite)) {
        return InvalidArgument("tensor " + spec.name + " has an element that is not finite");
      }
      tensor.spec = spec;
      ordered.push_back(std::move(tensor));
    }
    imported.tensors = std::move(ordered);
    return imported;
  }

  struct ModelInput {
    std::string name;
    std::vector<int64_t> extents;
  };
  struct Owner {
    std::string name;
    const ImportNode* node;
  };
  // Names in the file, and dims, of a layer's tensors.
  using TensorsKey = std::vector<std::pair<std::string, std::vector<int64_t>>>;

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  const ReadBeside& read_beside_;
  LayerNames names_;
  int64_t opset_ = 0;
  int64_t static_batch_ = 0;
  ImportGraph graph_;
  std::map<std::string, OnnxOperand> values_;  // by name
  std::vector<ModelInput> inputs_;
  std::vector<int> outputs_;  // nodes
  bool softmax_ = false;      // of the first output
  std::vector<std::string> notes_;
  std::vector<bool> used_, read_, trained_;  // nodes
  std::map<int, std::string> names_by_node_;
  std::set<int> normalisations_;  // layers that stand for formulas
  std::map<TensorsKey, Owner> owners_;
};

}  // namespace

Result<ImportedModel> FromOnnx(const onnx::ModelProto& model, const ImportOptions& options,
                               const ReadBeside& read_beside, std::vector<std::string>* gaps) {
  return OnnxImporter(model, options, read_beside).Run(gaps);
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
