#include "models/onnx/import_network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "common/base/printable.h"
#include "models/layers/layer.h"
#include "models/network.h"
#include "models/onnx/import_advice.h"
#include "models/onnx/input_formula.h"
#include "models/onnx/layer_names.h"

namespace kumo {
namespace {

constexpr int kMostLayers = 10'000;  // as in BuildGraph

class NetworkMaker {
 public:
  NetworkMaker(const std::string& name, ReadModel* read)
      : name_(name),
        read_model_(*read),
        graph_(read->graph),
        inputs_(read->inputs),
        outputs_(read->outputs),
        names_(read->model) {}

  Result<ImportedModel> Make(std::vector<std::string>* gaps) {
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
    std::string name = ValidName(read_model_.model.graph().name(), /*dots=*/false);
    if (name.empty() || name.starts_with("main_graph") || name.starts_with("torch_jit")) {
      name = ValidName(name_, /*dots=*/false);
    }
    network.set_name(name.empty() ? "imported" : name);
    KUMO_RETURN_IF_ERROR(AddInputs(&imported));
    KUMO_RETURN_IF_ERROR(AddLayers(&imported));
    AddLoss(&imported);
    imported.notes.insert(imported.notes.end(), read_model_.notes.begin(), read_model_.notes.end());
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
    imported->notes.push_back("the model computes " + TextOf(formula, inputs_[formula.input].name) +
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
    switch (read_model_.loss) {
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

  struct Owner {
    std::string name;
    const ImportNode* node;
  };
  // Names in the file, and dims, of a layer's tensors.
  using TensorsKey = std::vector<std::pair<std::string, std::vector<int64_t>>>;

  const std::string& name_;
  const ReadModel& read_model_;
  ImportGraph& graph_;
  const std::vector<ModelInput>& inputs_;
  const std::vector<int>& outputs_;
  LayerNames names_;
  std::vector<bool> used_, read_, trained_;  // nodes
  std::map<int, std::string> names_by_node_;
  std::set<int> normalisations_;  // layers that stand for formulas
  std::map<TensorsKey, Owner> owners_;
};

}  // namespace

Result<ImportedModel> MakeNetwork(const std::string& name, ReadModel* read,
                                  std::vector<std::string>* gaps) {
  return NetworkMaker(name, read).Make(gaps);
}

}  // namespace kumo
