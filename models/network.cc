#include "models/network.h"

#include <cctype>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "common/base/text_file.h"
#include "models/field_advice.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestFileMib = 16;
constexpr int kMostLayers = 10000;
constexpr int64_t kMostInput = int64_t{1} << 28;  // numbers of one sample

// Keeps the first error, with its place counted from 1 as editors do.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& name) : name_(name) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!message_.empty()) return;
    message_ = name_;
    if (line >= 0) message_ += ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1);
    message_ += ": " + Explained(message);
  }
  const std::string& message() const { return message_; }

 private:
  std::string name_;
  std::string message_;
};

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

Result<Shape> PlanInput(const model::Network& network) {
  const model::Shape& shape = network.input();
  if (!network.has_input()) return InvalidArgument("input must be given");
  KUMO_RETURN_IF_ERROR(CheckRange("input.channels", shape.channels(), 1, 1 << 20));
  KUMO_RETURN_IF_ERROR(CheckRange("input.height", shape.height(), 1, 1 << 16));
  KUMO_RETURN_IF_ERROR(CheckRange("input.width", shape.width(), 1, 1 << 16));
  const Shape input = {shape.channels(), shape.height(), shape.width()};
  if (input.channels > kMostInput / input.plane()) {
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

Status PlanOne(const model::Layer& layer, int index, const Shape& shape, NetworkPlan* plan) {
  const LayerKind* kind = FindLayerKind(layer.kind_case());
  if (kind == nullptr && FindLossKind(layer.kind_case()) != nullptr) {
    return InvalidArgument("a loss must be the last layer");
  }
  if (kind == nullptr) return InvalidArgument("needs a kind, one of " + KnownKinds());
  KUMO_ASSIGN_OR_RETURN(LayerPlan layer_plan, kind->plan({layer, shape, index}));
  if (layer_plan.output.size() > kMostInput) {
    return InvalidArgument("output must have at most 2^28 numbers, is " +
                           layer_plan.output.ToString());
  }
  int first_tensor = 0;
  for (const PlannedLayer& before : plan->layers) {
    first_tensor += static_cast<int>(before.plan.parameters.size());
  }
  plan->layers.push_back({layer, kind->name, shape, std::move(layer_plan), first_tensor});
  return OkStatus();
}

Status PlanLoss(const model::Layer& layer, const Shape& scores, NetworkPlan* plan) {
  const LossKind* kind = FindLossKind(layer.kind_case());
  if (kind == nullptr)
    return InvalidArgument("the last layer must be a loss, e.g. softmax_cross_entropy");
  KUMO_ASSIGN_OR_RETURN(plan->loss, kind->plan(layer, scores));
  plan->loss_name = layer.name();
  plan->loss_kind = kind->name;
  return OkStatus();
}

// *layer_at_fault becomes the layer that an error is about, -1 where it is about no single one.
Result<NetworkPlan> PlanLayers(const model::Network& network, int* layer_at_fault) {
  NetworkPlan plan;
  *layer_at_fault = -1;
  plan.name = network.name();
  KUMO_RETURN_IF_ERROR(CheckName(network.name()));
  KUMO_ASSIGN_OR_RETURN(plan.input, PlanInput(network));
  KUMO_RETURN_IF_ERROR(CheckRange("the number of layers", network.layers_size(), 2, kMostLayers));
  Shape shape = plan.input;
  std::set<std::string> names;
  for (int i = 0; i < network.layers_size(); ++i) {
    const model::Layer& layer = network.layers(i);
    *layer_at_fault = i;
    const std::string context =
        "layer " + (layer.name().empty() ? "number " + std::to_string(i + 1) : layer.name());
    KUMO_RETURN_IF_ERROR(CheckName(layer.name()).WithContext(context));
    if (!names.insert(layer.name()).second) {
      return InvalidArgument(context + ": name must not be used twice");
    }
    const bool last = i + 1 == network.layers_size();
    const Status status = last ? PlanLoss(layer, shape, &plan) : PlanOne(layer, i, shape, &plan);
    KUMO_RETURN_IF_ERROR(status.WithContext(context));
    if (!last) shape = plan.layers.back().plan.output;
  }
  *layer_at_fault = -1;
  if (plan.trained_parameters() == 0) {
    return InvalidArgument("the network must have a layer with weights");
  }
  return plan;
}

// "net.pbtxt:12", where the layer begins; the file's name alone for layer -1.
std::string Place(const std::string& name,
                  const google::protobuf::TextFormat::ParseInfoTree& places, int layer) {
  if (layer < 0) return name;
  const google::protobuf::FieldDescriptor* field =
      model::Network::descriptor()->FindFieldByNumber(model::Network::kLayersFieldNumber);
  return name + ":" + std::to_string(places.GetLocation(field, layer).line + 1);
}

}  // namespace

std::vector<TensorSpec> NetworkPlan::tensors() const {
  std::vector<TensorSpec> specs;
  for (const PlannedLayer& layer : layers) {
    for (const ParameterSpec& parameter : layer.plan.parameters) {
      specs.push_back(parameter.tensor);
    }
  }
  return specs;
}

int64_t NetworkPlan::trained_parameters() const {
  int64_t sum = 0;
  for (const TensorSpec& tensor : tensors()) {
    if (tensor.segment != Segment::kStatistics) sum += tensor.size();
  }
  return sum;
}

Result<NetworkPlan> PlanNetwork(const model::Network& network) {
  int layer_at_fault = -1;  // which the message names
  return PlanLayers(network, &layer_at_fault);
}

Result<model::Network> ParseNetwork(const std::string& text, const std::string& name) {
  model::Network network;
  FirstError error(name);
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(text, &network)) {
    return InvalidArgument(error.message().empty() ? name + ": not a text protobuf"
                                                   : error.message());
  }
  int layer_at_fault = -1;
  const Status status = PlanLayers(network, &layer_at_fault).status();
  KUMO_RETURN_IF_ERROR(status.WithContext(Place(name, places, layer_at_fault)));
  return network;
}

Result<model::Network> LoadNetwork(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (text.ok()) return ParseNetwork(*text, path);
  return Status(text.status().code(), path + ": " + text.status().message() +
                                          "; network.file names the network's text protobuf");
}

}  // namespace kumo
