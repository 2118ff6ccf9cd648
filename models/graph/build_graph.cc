// The builder makes one pass over the layers, in the order of the file. A layer may read only
// inputs and layers before it, so the nodes are in topological order and the graph has no cycle.
// outputs_ maps each name to the number of its value; a loss has none.
//
// Each layer is planned at once (LayerKind::plan): the shapes of its inputs give the shape of its
// output and its tensors. So each error names the layer at which it appears, and layers behind it
// are not looked at. Tensors get numbers in the order of their layers; a layer with tensors_of has
// the numbers of the layer that it shares tensors with.
//
// A second pass (CheckUse) finds parts without an effect, which one pass cannot see: an output that
// no layer reads, and tensors that no loss trains. FindTrained walks the nodes backwards from the
// losses that have a weight.
//
// Invariants of the result: values of the inputs come first; the last layer is a loss; targets of
// one field are equal in all losses that read it.
#include "models/graph/build_graph.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/did_you_mean.h"
#include "common/job/fields.h"
#include "models/graph/sums.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"

namespace kumo {
namespace {

constexpr char kInput[] = "input";  // what stands for the network's input among layers' names
constexpr int kNoValue = -1;        // the output of a loss
constexpr int kMostLayers = 10000;
constexpr int kMostNetworkInputs = 16;

Status CheckName(const std::string& name, std::string_view more = "") {
  if (name.empty()) return InvalidArgument("name must not be empty");
  if (name.size() > 100) return InvalidArgument("name must have at most 100 characters");
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (!plain && more.find(c) == more.npos) {
      return InvalidArgument(std::string("name must be letters, digits") +
                             (more.empty() ? "" : ", '.'") + " and '_', is \"" + name + "\"");
    }
  }
  return OkStatus();
}

// A layer's name may have dots, as the modules of other programs do; tensors are called
// "layer.tensor".
Status CheckLayerName(const std::string& name) {
  KUMO_RETURN_IF_ERROR(CheckName(name, "."));
  if (name.starts_with('.') || name.ends_with('.') || name.find("..") != name.npos) {
    return InvalidArgument(
        "name must have letters, digits or '_' on both sides of each '.', is \"" + name + "\"");
  }
  return OkStatus();
}

// Whether a detector's results in an ONNX file have this name.
bool IsOfDetections(std::string_view name) {
  constexpr std::string_view kNames[] = {"boxes", "scores", "classes", "counts"};
  return std::ranges::count(kNames, name) > 0;
}

// The input's shape, by its extents or as an image.
Result<Shape> ReadShape(const model::Input& input) {
  if (input.extents().empty()) {
    KUMO_RETURN_IF_ERROR(CheckRange("input.channels", input.channels(), 1, 1 << 20));
    KUMO_RETURN_IF_ERROR(CheckRange("input.height", input.height(), 1, 1 << 16));
    KUMO_RETURN_IF_ERROR(CheckRange("input.width", input.width(), 1, 1 << 16));
    return Shape{input.channels(), input.height(), input.width()};
  }
  if (input.channels() != 0 || input.height() != 0 || input.width() != 0) {
    return InvalidArgument("input must have extents, or channels, height and width, not both");
  }
  KUMO_RETURN_IF_ERROR(
      CheckRange("the number of input.extents", input.extents_size(), 1, kMostRank));
  for (const int extent : input.extents()) {
    KUMO_RETURN_IF_ERROR(CheckRange("input.extents", extent, 1, 1 << 20));
  }
  return Shape({input.extents().begin(), input.extents().end()});
}

Result<Value> ReadInput(const model::Input& input) {
  KUMO_ASSIGN_OR_RETURN(const Shape shape, ReadShape(input));
  KUMO_RETURN_IF_ERROR(CheckSampleSize("input", shape));
  KUMO_RETURN_IF_ERROR(CheckRange("input.vocabulary", input.vocabulary(), 0, 1 << 30));
  return Value{shape, input.vocabulary()};
}

std::string KnownKinds() {
  std::string known;
  for (const LayerKind& kind : LayerKinds()) known += std::string(kind.name) + ", ";
  for (const LossKind& kind : LossKinds()) known += std::string(kind.name) + ", ";
  return known.substr(0, known.size() - 2);
}

// "must have 1 input, has 2", "must have 2 inputs or more, has 1"; for a LayerKind or a LossKind
template <typename Kind>
Status CheckNumberOfInputs(const Kind& kind, int inputs) {
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

// The initialiser that a layer names although it has no tensors of its own; null if it names none.
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

// The first of a layer's fields about training its tensors that the file gives; null if none.
const char* TrainingFieldOf(const model::Layer& layer) {
  if (layer.has_trainable()) return "trainable";
  if (layer.has_learning_rate_factor()) return "learning_rate_factor";
  return layer.has_weight_decay_factor() ? "weight_decay_factor" : nullptr;
}

// InvalidArgument if the layer, of that kind, has no tensors to train and yet says how.
Status CheckNoTrainingField(const model::Layer& layer, const char* kind) {
  const char* const field = TrainingFieldOf(layer);
  if (field == nullptr) return OkStatus();
  return InvalidArgument(std::string(field) + ": a " + kind +
                         " has no tensors to train; remove the field");
}

Status CheckFactor(const char* field, float factor) {
  if (std::isfinite(factor) && !std::signbit(factor)) return OkStatus();
  return InvalidArgument(std::string(field) + " must be a number of at least 0, is " +
                         std::to_string(factor));
}

// The factors of a layer that has tensors of its own.
Result<StepFactors> FactorsOf(const model::Layer& layer) {
  StepFactors factors;
  if (layer.has_learning_rate_factor()) factors.rate = layer.learning_rate_factor();
  if (layer.has_weight_decay_factor()) factors.decay = layer.weight_decay_factor();
  KUMO_RETURN_IF_ERROR(CheckFactor("learning_rate_factor", factors.rate));
  KUMO_RETURN_IF_ERROR(CheckFactor("weight_decay_factor", factors.decay));
  if (layer.has_trainable() && layer.has_learning_rate_factor() &&
      layer.trainable() == factors.frozen()) {
    return InvalidArgument("trainable and learning_rate_factor contradict each other; remove one");
  }
  if (layer.has_trainable() && !layer.trainable()) factors.rate = 0.0f;
  if (factors.frozen() && layer.has_weight_decay_factor()) {
    return InvalidArgument(
        "weight_decay_factor: tensors that are not trained do not decay; remove the field");
  }
  return factors;
}

// The factors of a kind of tensors in all layers. Layers are frozen whole, so that the rate is not
// 0.
Result<StepFactors> FactorsOfAll(const char* field, const model::TensorFactors& given) {
  StepFactors factors = {.rate = 1, .decay = given.weight_decay_factor()};
  if (given.has_learning_rate_factor()) factors.rate = given.learning_rate_factor();
  KUMO_RETURN_IF_ERROR(CheckFactor("learning_rate_factor", factors.rate).WithContext(field));
  KUMO_RETURN_IF_ERROR(CheckFactor("weight_decay_factor", factors.decay).WithContext(field));
  if (factors.frozen()) {
    return InvalidArgument(std::string(field) +
                           ": learning_rate_factor must be above 0; layers are frozen whole, with "
                           "trainable: false");
  }
  return factors;
}

// Factors of all tensors of a kind, in all layers.
struct KindFactors {
  StepFactors biases = {.decay = 0};
  StepFactors scales = {.decay = 0};

  StepFactors Of(TensorKind kind) const {
    if (kind == TensorKind::kBias) return biases;
    return kind == TensorKind::kScale ? scales : StepFactors();
  }
};

// Gives each tensor its factors: all tensors are frozen, statistics too; otherwise the learning
// rate is of those that are trained, and the weight decay of those that decay.
Status SetFactors(const model::Layer& layer, const char* kind, const KindFactors& of_kinds,
                  std::vector<Parameter>* parameters) {
  KUMO_ASSIGN_OR_RETURN(const StepFactors factors, FactorsOf(layer));
  bool decays = false;
  for (Parameter& parameter : *parameters) {
    TensorSpec& tensor = parameter.tensor;
    const StepFactors of_kind = of_kinds.Of(parameter.kind);
    if (tensor.segment != Segment::kStatistics || factors.frozen()) {
      tensor.factors.rate = factors.rate * of_kind.rate;
    }
    if (tensor.segment == Segment::kStatistics || of_kind.decay == 0) continue;
    tensor.segment = Segment::kDecayed;
    tensor.factors.decay = factors.frozen() ? 1 : factors.decay * of_kind.decay;
    decays = true;
  }
  if (decays || !layer.has_weight_decay_factor()) return OkStatus();
  return InvalidArgument(std::string("weight_decay_factor: weight decay leaves the tensors of a ") +
                         kind + " alone; remove the field");
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const model::Network& network) : network_(network) {}

  Result<Graph> Build(int* layer_at_fault) {
    *layer_at_fault = -1;
    graph_.name = network_.name();
    KUMO_RETURN_IF_ERROR(CheckName(network_.name()));
    KUMO_RETURN_IF_ERROR(AddInputs());
    KUMO_ASSIGN_OR_RETURN(of_kinds_.biases, FactorsOfAll("biases", network_.biases()));
    KUMO_ASSIGN_OR_RETURN(of_kinds_.scales, FactorsOfAll("scales", network_.scales()));
    KUMO_RETURN_IF_ERROR(
        CheckRange("the number of layers", network_.layers_size(), 2, kMostLayers));
    for (int i = 0; i < network_.layers_size(); ++i) {
      *layer_at_fault = i;
      KUMO_RETURN_IF_ERROR(Add(i).WithContext(NameOf(i)));
    }
    *layer_at_fault = -1;
    KUMO_RETURN_IF_ERROR(AddOutputs());
    for (int i = 0; i < network_.layers_size(); ++i) {
      *layer_at_fault = i;
      KUMO_RETURN_IF_ERROR(CheckUse(network_.layers(i)).WithContext(NameOf(i)));
    }
    *layer_at_fault = -1;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (!read_.contains(static_cast<int>(i))) {
        return InvalidArgument("no layer reads input " + graph_.inputs[i]);
      }
    }
    if (graph_.trained_parameters() == 0) {
      return InvalidArgument(
          graph_.frozen_parameters() == 0
              ? "the network must have a layer with weights"
              : "no layer is trained: all layers with weights have trainable: false or "
                "learning_rate_factor: 0; remove the field from the layers to be trained");
    }
    KUMO_RETURN_IF_ERROR(NumberSums(&graph_));
    return std::move(graph_);
  }

 private:
  std::string NameOf(int i) const {
    const std::string& name = network_.layers(i).name();
    return "layer " + (name.empty() ? "number " + std::to_string(i + 1) : name);
  }

  Status AddInputs() {
    if (network_.input().empty()) return InvalidArgument("input must be given");
    KUMO_RETURN_IF_ERROR(
        CheckRange("the number of inputs", network_.input_size(), 1, kMostNetworkInputs));
    for (const model::Input& input : network_.input()) {
      const std::string name = input.name().empty() ? kInput : input.name();
      KUMO_RETURN_IF_ERROR(CheckName(name).WithContext("input"));
      if (outputs_.contains(name)) return InvalidArgument("input: name must not be used twice");
      KUMO_ASSIGN_OR_RETURN(const Value value, ReadInput(input));
      outputs_[name] = static_cast<int>(graph_.values.size());
      graph_.values.push_back(value);
      graph_.inputs.push_back(input.name().empty() ? kImageField : input.name());
    }
    return OkStatus();
  }

  Status Add(int i) {
    const model::Layer& layer = network_.layers(i);
    KUMO_RETURN_IF_ERROR(CheckLayerName(layer.name()));
    if (layer.name() == kInput) {
      return InvalidArgument("name must not be \"input\", which stands for the network's input");
    }
    if (outputs_.contains(layer.name())) {
      return InvalidArgument("name must not be used twice");
    }
    KUMO_ASSIGN_OR_RETURN(const std::vector<int> inputs, InputsOf(layer));
    const LossKind* const loss = FindLossKind(layer.kind_case());
    if (loss != nullptr) return AddLoss(layer, *loss, inputs);
    if (i + 1 == network_.layers_size()) {
      return InvalidArgument("the last layer must be a loss, e.g. softmax_cross_entropy");
    }
    if (layer.has_loss_weight()) return InvalidArgument("loss_weight: only a loss has one");
    return AddNode(layer, i, inputs);
  }

  std::string NoLayer(const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& [layer, output] : outputs_) known.push_back(layer);
    return "there is no layer \"" + name + "\" before it" + DidYouMean(name, known);
  }

  Result<std::vector<int>> InputsOf(const model::Layer& layer) {
    std::vector<int> inputs;
    for (const std::string& name : layer.inputs()) {
      const auto found = outputs_.find(name);
      if (found == outputs_.end()) return InvalidArgument("inputs: " + NoLayer(name));
      if (found->second == kNoValue) {
        return InvalidArgument("inputs: layer " + name + " is a loss, which no layer reads");
      }
      inputs.push_back(found->second);
    }
    if (inputs.empty() && last_ == kNoValue) {
      return InvalidArgument("inputs must be given, since the layer before it is a loss");
    }
    if (inputs.empty()) inputs.push_back(last_);
    read_.insert(inputs.begin(), inputs.end());
    return inputs;
  }

  // Whole numbers are for layers that look things up by them, and these take nothing else.
  Status CheckNumbers(const LayerKind& kind, const std::vector<int>& inputs) const {
    for (const int input : inputs) {
      const bool whole = graph_.values[input].vocabulary > 0;
      if (whole == kind.takes_integers) continue;
      if (whole) {
        return InvalidArgument("input " + graph_.inputs[input] +
                               " gives integers, which only an embedding takes, not " + kind.name);
      }
      return InvalidArgument(std::string("inputs: ") + kind.name +
                             " must have an input of integers, such as input { name: "
                             "\"tokens\" extents: 64 vocabulary: 256 }");
    }
    return OkStatus();
  }

  Status AddNode(const model::Layer& layer, int index, const std::vector<int>& inputs) {
    const LayerKind* kind = FindLayerKind(layer.kind_case());
    if (kind == nullptr) return InvalidArgument("needs a kind, one of " + KnownKinds());
    KUMO_RETURN_IF_ERROR(CheckNumberOfInputs(*kind, static_cast<int>(inputs.size())));
    KUMO_RETURN_IF_ERROR(CheckNumbers(*kind, inputs));
    LayerInput input = {layer, {}, index, graph_.values[inputs[0]].vocabulary};
    for (const int value : inputs) input.shapes.push_back(graph_.values[value].shape);
    KUMO_ASSIGN_OR_RETURN(LayerPlan plan, kind->plan(input));
    KUMO_RETURN_IF_ERROR(CheckSampleSize("output", plan.output));
    Node node;
    node.name = layer.name();
    node.kind = kind->name;
    node.detail = std::move(plan.detail);
    node.spec = std::move(plan.spec);
    node.inputs = inputs;
    if (plan.parameters.empty()) KUMO_RETURN_IF_ERROR(CheckNoTrainingField(layer, kind->name));
    if (layer.tensors_of().empty()) {
      KUMO_RETURN_IF_ERROR(SetFactors(layer, kind->name, of_kinds_, &plan.parameters));
      for (Parameter& parameter : plan.parameters) {
        node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
        graph_.parameters.push_back(std::move(parameter));
      }
    } else {
      KUMO_ASSIGN_OR_RETURN(node.parameters, SharedTensors(layer, *kind, plan.parameters));
    }
    if (auto* const norm = node.As<BatchNormalisationSpec>()) norm->frozen = !graph_.trains(node);
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
    if (own.empty())
      return InvalidArgument(std::string("tensors_of: a ") + kind.name + " has no tensors");
    const auto* const initialiser = InitialiserOf(layer);
    const char* field = TrainingFieldOf(layer);
    const std::string given = initialiser != nullptr ? std::string(initialiser->name())
                              : field != nullptr     ? field
                                                     : "";
    if (!given.empty()) {
      return InvalidArgument(given + " must not be given: the tensors are " + owner->name + "'s");
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

  Status AddLoss(const model::Layer& layer, const LossKind& kind, const std::vector<int>& inputs) {
    KUMO_RETURN_IF_ERROR(CheckNumberOfInputs(kind, static_cast<int>(inputs.size())));
    if (!layer.tensors_of().empty()) return InvalidArgument("tensors_of: a loss has no tensors");
    KUMO_RETURN_IF_ERROR(CheckNoTrainingField(layer, "loss"));
    std::vector<Shape> shapes;
    for (const int input : inputs) {
      if (graph_.values[input].vocabulary > 0) {
        return InvalidArgument("inputs: a loss must have scores, not integers");
      }
      shapes.push_back(graph_.values[input].shape);
    }
    const float weight = layer.has_loss_weight() ? layer.loss_weight() : 1.0f;
    if (!(weight >= 0.0f && std::isfinite(weight))) {
      return InvalidArgument("loss_weight must be at least 0, is " + std::to_string(weight));
    }
    KUMO_ASSIGN_OR_RETURN(LossPlan plan, kind.plan(layer, shapes));
    KUMO_ASSIGN_OR_RETURN(std::vector<int> targets, TargetsOf(layer, std::move(plan.targets)));
    std::visit([&](auto& spec) { spec.weight = weight; }, plan.spec);
    graph_.losses.push_back({layer.name(), kind.name, std::move(plan.detail), std::move(plan.spec),
                             inputs, std::move(targets), weight, 0, std::move(plan.metrics)});
    outputs_[layer.name()] = last_ = kNoValue;
    return OkStatus();
  }

  // Adds those targets of a loss that no earlier loss has. Returns the numbers of all of them.
  Result<std::vector<int>> TargetsOf(const model::Layer& layer, std::vector<Target> targets) {
    if (!layer.targets().empty() && layer.targets_size() != std::ssize(targets)) {
      return InvalidArgument("targets: must name " + std::to_string(targets.size()) +
                             (targets.size() == 1 ? " field" : " fields") +
                             " of the samples, names " + std::to_string(layer.targets_size()));
    }
    std::vector<int> numbers;
    for (size_t t = 0; t < targets.size(); ++t) {
      Target& target = targets[t];
      if (!layer.targets().empty()) target.field = layer.targets(static_cast<int>(t));
      KUMO_RETURN_IF_ERROR(CheckName(target.field).WithContext("targets"));
      const auto found = std::ranges::find(graph_.targets, target.field, &Target::field);
      const auto number = static_cast<int>(found - graph_.targets.begin());
      if (found != graph_.targets.end() && *found != target) {
        const auto other = std::ranges::find_if(graph_.losses, [number](const LossNode& loss) {
          return std::ranges::count(loss.targets, number) > 0;
        });
        return InvalidArgument("takes " + target.ToString() + " as field \"" + target.field +
                               "\", and loss " + other->name + " " + found->ToString() +
                               "; name another field with `targets`");
      }
      numbers.push_back(number);
      if (found == graph_.targets.end()) graph_.targets.push_back(std::move(target));
    }
    return numbers;
  }

  Status AddOutputs() {
    for (const std::string& name : network_.outputs()) {
      // An ONNX file has outputs and tensors, each under its name.
      const auto called = [&name](const Parameter& parameter) {
        return parameter.tensor.name == name;
      };
      if (std::ranges::any_of(graph_.parameters, called)) {
        return InvalidArgument("outputs: \"" + name +
                               "\" is also the name of a tensor; rename the layer");
      }
      const auto found = outputs_.find(name);
      const bool layer =
          found != outputs_.end() && found->second != kNoValue && !graph_.IsInput(found->second);
      if (!layer) {
        return InvalidArgument("outputs: \"" + name + "\" is no layer that has an output");
      }
      if (name == "probabilities") {
        return InvalidArgument(
            "outputs: \"probabilities\" is reserved for the softmax of the scores in ONNX files; "
            "rename the layer");
      }
      if (graph_.detector() != nullptr && IsOfDetections(name)) {
        return InvalidArgument(
            "outputs: \"" + name +
            "\" is reserved for a result of a detector in ONNX files; rename the layer");
      }
      if (std::ranges::count(graph_.outputs, name, &Output::name) > 0) {
        return InvalidArgument("outputs: \"" + name + "\" is listed twice");
      }
      graph_.outputs.push_back({name, found->second});
      read_.insert(found->second);
    }
    if (graph_.outputs.empty()) {
      graph_.outputs.push_back({"scores", graph_.loss().inputs[0], /*implied=*/true});
    }
    return OkStatus();
  }

  // Whether something comes of the layer: somebody reads it, and, where it has tensors, some loss
  // trains them, by this layer or by another one that shares them.
  Status CheckUse(const model::Layer& layer) {
    if (layer.has_loss_weight() && graph_.losses.size() == 1) {
      return InvalidArgument("loss_weight: the only loss has none; set schedule.learning_rate");
    }
    const int output = outputs_.at(layer.name());
    if (output == kNoValue) return CheckBesideMultibox(layer.name());
    if (!read_.contains(output)) return InvalidArgument("no layer reads its output");
    if (trained_.empty()) FindTrained();
    const auto node = std::ranges::find(graph_.nodes, layer.name(), &Node::name);
    const auto trains = [&](const Node& other) {
      return trained_[other.outputs[0]] && other.parameters == node->parameters;
    };
    if (graph_.trains(*node) && std::ranges::none_of(graph_.nodes, trains)) {
      return InvalidArgument("no loss trains its tensors");
    }
    return OkStatus();
  }
  // A contribution counts by the positives of the last loss, if that is multibox (Trainer), and so
  // does the gradient of each other loss in it. Multibox divides by them.
  Status CheckBesideMultibox(const std::string& name) const {
    const auto is_multibox = [](const LossNode& loss) {
      return std::holds_alternative<MultiboxSpec>(loss.spec);
    };
    const auto mine = std::ranges::find(graph_.losses, name, &LossNode::name);
    const bool last = mine + 1 == graph_.losses.end();
    if (mine->weight == 0) {
      if (!last || !is_multibox(*mine)) return OkStatus();
      return InvalidArgument(
          "has the loss_weight 0, but the last loss determines the weight of a contribution (its "
          "boxes with an object); move it before the other losses");
    }
    for (const LossNode& other : graph_.losses) {
      if (other.name == name || other.weight == 0 || !is_multibox(other)) continue;
      return InvalidArgument("has a loss_weight above 0, and so has the loss " + other.name +
                             ": multibox divides by the boxes with an object, and no other loss "
                             "can be trained beside it; set loss_weight: 0 here");
    }
    if (!is_multibox(*mine) || last) return OkStatus();
    return InvalidArgument(
        "must be the last loss, since contributions count by its boxes with an object; move the "
        "losses behind it in front of it");
  }
  // The values that a loss depends on that weighs something.
  void FindTrained() {
    trained_.assign(graph_.values.size(), false);
    for (const LossNode& loss : graph_.losses) {
      if (loss.weight == 0) continue;
      for (const int input : loss.inputs) trained_[input] = true;
    }
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!trained_[graph_.nodes[i].outputs[0]]) continue;
      for (const int input : graph_.nodes[i].inputs) trained_[input] = true;
    }
  }

  const model::Network& network_;
  Graph graph_;
  KindFactors of_kinds_;
  std::map<std::string, int> outputs_;  // values, by the names of inputs and layers; losses' none
  std::set<int> read_;                  // values that a layer reads
  int last_ = 0;                        // the output of the layer before
  std::vector<bool> trained_;           // by value
};

}  // namespace

Result<Graph> BuildGraph(const model::Network& network, int* layer_at_fault) {
  return GraphBuilder(network).Build(layer_at_fault);
}

}  // namespace kumo
