#include "models/graph/build_graph.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "common/base/nearest.h"
#include "models/layers/layer.h"
#include "models/losses/loss.h"

namespace kumo {
namespace {

constexpr char kInput[] = "input";  // what stands for the network's input among layers' names
constexpr int kMostLayers = 10000;
constexpr int64_t kMostNumbersOfSample = int64_t{1} << 28;

Status CheckName(const std::string& name) {
  if (name.empty()) return InvalidArgument("name must not be empty");
  if (name.size() > 100) return InvalidArgument("name must have at most 100 characters");
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') {
      return InvalidArgument("name must be letters, digits and '_', is \"" + name + "\"");
    }
  }
  return OkStatus();
}

Result<Shape> ReadInput(const model::Network& network) {
  const model::Shape& shape = network.input();
  if (!network.has_input()) return InvalidArgument("input must be given");
  KUMO_RETURN_IF_ERROR(CheckRange("input.channels", shape.channels(), 1, 1 << 20));
  KUMO_RETURN_IF_ERROR(CheckRange("input.height", shape.height(), 1, 1 << 16));
  KUMO_RETURN_IF_ERROR(CheckRange("input.width", shape.width(), 1, 1 << 16));
  const Shape input = {shape.channels(), shape.height(), shape.width()};
  if (input.channels() > kMostNumbersOfSample / input.plane()) {
    return InvalidArgument("input must have at most 2^28 numbers, is " + input.ToString());
  }
  return input;
}

std::string KnownKinds() {
  std::string known;
  for (const LayerKind& kind : LayerKinds()) known += std::string(kind.name) + ", ";
  for (const LossKind& kind : LossKinds()) known += std::string(kind.name) + ", ";
  return known.substr(0, known.size() - 2);
}

// "must have 1 input, has 2", "must have 2 inputs or more, has 1"
Status CheckNumberOfInputs(const LayerKind& kind, int inputs) {
  if (inputs >= kind.fewest_inputs && inputs <= kind.most_inputs) return OkStatus();
  std::string wanted = std::to_string(kind.fewest_inputs);
  wanted += kind.fewest_inputs == 1 ? " input" : " inputs";
  if (kind.most_inputs > kind.fewest_inputs) {
    wanted += inputs > kind.most_inputs ? " to " + std::to_string(kind.most_inputs) + " inputs"
                                        : " or more";
  }
  return InvalidArgument(std::string("inputs: ") + kind.name + " must have " + wanted + ", has " +
                         std::to_string(inputs));
}

// The initialiser that a layer names though it has no tensors to start; null where there is none.
const google::protobuf::FieldDescriptor* InitialiserOf(const model::Layer& layer) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection* reflection = layer.GetReflection();
  const FieldDescriptor* kind = reflection->GetOneofFieldDescriptor(
      layer, model::Layer::descriptor()->FindOneofByName("kind"));
  const google::protobuf::Message& settings = reflection->GetMessage(layer, kind);
  std::vector<const FieldDescriptor*> fields;
  settings.GetReflection()->ListFields(settings, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == model::Initialiser::descriptor()) return field;
  }
  return nullptr;
}

class Builder {
 public:
  explicit Builder(const model::Network& network) : network_(network) {}

  Result<Graph> Build(int* layer_at_fault) {
    *layer_at_fault = -1;
    graph_.name = network_.name();
    KUMO_RETURN_IF_ERROR(CheckName(network_.name()));
    KUMO_ASSIGN_OR_RETURN(const Shape input, ReadInput(network_));
    graph_.AddValue(input);
    KUMO_RETURN_IF_ERROR(
        CheckRange("the number of layers", network_.layers_size(), 2, kMostLayers));
    for (int i = 0; i < network_.layers_size(); ++i) {
      *layer_at_fault = i;
      KUMO_RETURN_IF_ERROR(Add(i).WithContext(NameOf(i)));
    }
    for (int i = 0; i + 1 < network_.layers_size(); ++i) {
      *layer_at_fault = i;
      if (!read_.contains(outputs_.at(network_.layers(i).name()))) {
        return InvalidArgument(NameOf(i) + ": no layer reads its output");
      }
    }
    *layer_at_fault = -1;
    if (graph_.trained_parameters() == 0) {
      return InvalidArgument("the network must have a layer with weights");
    }
    return std::move(graph_);
  }

 private:
  std::string NameOf(int i) const {
    const std::string& name = network_.layers(i).name();
    return "layer " + (name.empty() ? "number " + std::to_string(i + 1) : name);
  }

  Status Add(int i) {
    const model::Layer& layer = network_.layers(i);
    KUMO_RETURN_IF_ERROR(CheckName(layer.name()));
    if (outputs_.contains(layer.name())) {
      return InvalidArgument("name must not be used twice");
    }
    if (layer.name() == kInput) {
      return InvalidArgument("name must not be \"input\", which stands for the network's input");
    }
    KUMO_ASSIGN_OR_RETURN(const std::vector<int> inputs, InputsOf(layer));
    if (i + 1 == network_.layers_size()) return AddLoss(layer, inputs);
    return AddNode(layer, i, inputs);
  }

  std::string NoLayer(const std::string& name) const {
    std::vector<std::string> known = {kInput};
    for (const auto& [layer, output] : outputs_) known.push_back(layer);
    return "there is no layer \"" + name + "\" before it" + DidYouMean(name, known);
  }

  Result<std::vector<int>> InputsOf(const model::Layer& layer) {
    std::vector<int> inputs;
    for (const std::string& name : layer.inputs()) {
      const auto found = outputs_.find(name);
      if (found == outputs_.end() && name != kInput) {
        return InvalidArgument("inputs: " + NoLayer(name));
      }
      inputs.push_back(name == kInput ? 0 : found->second);
    }
    if (inputs.empty()) inputs.push_back(last_);
    read_.insert(inputs.begin(), inputs.end());
    return inputs;
  }

  Status AddNode(const model::Layer& layer, int index, const std::vector<int>& inputs) {
    const LayerKind* kind = FindLayerKind(layer.kind_case());
    if (kind == nullptr && FindLossKind(layer.kind_case()) != nullptr) {
      return InvalidArgument("a loss must be the last layer");
    }
    if (kind == nullptr) return InvalidArgument("needs a kind, one of " + KnownKinds());
    KUMO_RETURN_IF_ERROR(CheckNumberOfInputs(*kind, static_cast<int>(inputs.size())));
    LayerInput input = {layer, {}, index};
    for (const int value : inputs) input.shapes.push_back(graph_.values[value].shape);
    KUMO_ASSIGN_OR_RETURN(LayerPlan plan, kind->plan(input));
    if (plan.output.size() > kMostNumbersOfSample) {
      return InvalidArgument("output must have at most 2^28 numbers, is " + plan.output.ToString());
    }
    Node node;
    node.name = layer.name();
    node.kind = kind->name;
    node.detail = std::move(plan.detail);
    node.spec = std::move(plan.spec);
    node.inputs = inputs;
    if (layer.tensors_of().empty()) {
      for (Parameter& parameter : plan.parameters) {
        node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
        graph_.parameters.push_back(std::move(parameter));
      }
    } else {
      KUMO_ASSIGN_OR_RETURN(node.parameters, SharedTensors(layer, *kind, plan.parameters));
    }
    node.outputs = {last_ = graph_.AddValue(plan.output)};
    outputs_[node.name] = last_;
    graph_.nodes.push_back(std::move(node));
    return OkStatus();
  }

  Result<std::vector<int>> SharedTensors(const model::Layer& layer, const LayerKind& kind,
                                         const std::vector<Parameter>& own) const {
    const auto owner = std::ranges::find(graph_.nodes, layer.tensors_of(), &Node::name);
    if (owner == graph_.nodes.end()) {
      return InvalidArgument("tensors_of: " + NoLayer(layer.tensors_of()));
    }
    if (std::string(owner->kind) != kind.name) {
      return InvalidArgument("tensors_of: layer " + owner->name + " is no " + kind.name +
                             " but a " + owner->kind);
    }
    if (own.empty())
      return InvalidArgument(std::string("tensors_of: a ") + kind.name + " has no tensors");
    if (const auto* field = InitialiserOf(layer); field != nullptr) {
      return InvalidArgument(std::string(field->name()) + " must not be given: the tensors are " +
                             owner->name + "'s");
    }
    for (size_t k = 0; k < std::max(own.size(), owner->parameters.size()); ++k) {
      const TensorSpec* mine = k < own.size() ? &own[k].tensor : nullptr;
      const TensorSpec* theirs =
          k < owner->parameters.size() ? &graph_.parameters[owner->parameters[k]].tensor : nullptr;
      if (mine != nullptr && theirs != nullptr && mine->shape == theirs->shape) continue;
      return InvalidArgument("tensors_of: " + (mine == nullptr ? theirs->name : mine->name) +
                             " has another shape than layer " + owner->name + " has, or none");
    }
    return owner->parameters;
  }

  Status AddLoss(const model::Layer& layer, const std::vector<int>& inputs) {
    const LossKind* kind = FindLossKind(layer.kind_case());
    if (kind == nullptr) {
      return InvalidArgument("the last layer must be a loss, e.g. softmax_cross_entropy");
    }
    if (inputs.size() != 1) {
      return InvalidArgument("inputs: a loss must have 1 input, has " +
                             std::to_string(inputs.size()));
    }
    if (!layer.tensors_of().empty()) return InvalidArgument("tensors_of: a loss has no tensors");
    KUMO_ASSIGN_OR_RETURN(LossPlan plan, kind->plan(layer, graph_.values[inputs[0]].shape));
    graph_.loss = {layer.name(),         kind->name, std::move(plan.detail),
                   std::move(plan.spec), inputs[0],  plan.classes};
    return OkStatus();
  }

  const model::Network& network_;
  Graph graph_;
  std::map<std::string, int> outputs_;  // values, by layers' names
  std::set<int> read_;                  // values that a layer reads
  int last_ = 0;                        // the output of the layer before
};

}  // namespace

Result<Graph> BuildGraph(const model::Network& network, int* layer_at_fault) {
  return Builder(network).Build(layer_at_fault);
}

}  // namespace kumo
