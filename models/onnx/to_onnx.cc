#include "models/onnx/to_onnx.h"

#include <set>
#include <utility>
#include <variant>

#include <glog/logging.h>

#include "models/onnx/detections.h"
#include "models/onnx/forms.h"

namespace kumo {
namespace {

constexpr int64_t kMostBytes = (int64_t{1} << 31) - (int64_t{1} << 20);

void Declare(const char* name, onnx::TensorProto::DataType type,
             const std::vector<int64_t>& extents, onnx::ValueInfoProto* value) {
  value->set_name(name);
  onnx::TypeProto::Tensor* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  for (const int64_t extent : extents) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

// scale(c) * (pixel - mean), common/job/pixels.h.
OnnxValue InputOfPixels(const PixelFormula& formula, const std::vector<int64_t>& extents,
                        OnnxBuilder* builder) {
  builder->Begin("pixels");
  OnnxValue value =
      builder->Add("Cast", {"pixels"}, extents, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  if (!formula.mean.empty()) {
    value = builder->Add("Sub", {value.name, builder->Numbers(extents, formula.mean)}, extents);
  }
  if (formula.scales.empty()) {
    return builder->Add("Mul", {value.name, builder->Number(formula.scale)}, extents);
  }
  std::vector<int64_t> of_channels(extents.size(), 1);
  of_channels[0] = extents[0];
  return builder->Add("Mul", {value.name, builder->Numbers(of_channels, formula.scales)}, extents);
}

Status TooLong(const std::string& parts, size_t bytes) {
  return FailedPrecondition("an ONNX file has at most 2 GiB, " + parts + " " +
                            std::to_string((bytes >> 20) + 1) + " MiB; export safetensors");
}

Status CheckSize(const Graph& graph, std::span<const std::vector<float>> tensors) {
  CHECK_EQ(tensors.size(), graph.parameters.size());
  int64_t bytes = 0;
  for (const std::vector<float>& tensor : tensors) {
    bytes += std::ssize(tensor) * static_cast<int64_t>(sizeof(float));
  }
  if (bytes <= kMostBytes) return OkStatus();
  return TooLong("the weights have", static_cast<size_t>(bytes));
}

// Makes an output of the graph of what computes it.
void DeclareOutput(const char* name, const OnnxValue& value, onnx::GraphProto* graph,
                   onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
  onnx::NodeProto* const node = graph->add_node();
  node->set_name(name);
  node->set_op_type("Identity");
  node->add_input(value.name);
  node->add_output(name);
  Declare(name, type, value.extents, graph->add_output());
}

// The outputs of a detector. values: by the graph's.
void AddDetections(const Graph& graph, std::span<const OnnxValue> values,
                   const std::optional<DetectionRule>& rule, OnnxBuilder* builder,
                   onnx::GraphProto* to) {
  const LossNode& loss = graph.loss();
  const MultiboxSpec& spec = *graph.detector();
  builder->Begin(loss.name);
  std::vector<OnnxValue> maps;
  for (const int value : loss.inputs) maps.push_back(values[value]);
  const OnnxBoxes raw = BoxesOfMaps(spec, maps, builder);
  if (!rule) {
    DeclareOutput("boxes", raw.boxes, to);
    DeclareOutput("scores", raw.scores, to);
    return;
  }
  const OnnxDetections found = DetectionsOf(spec, raw, *rule, builder);
  DeclareOutput("boxes", found.boxes, to);
  DeclareOutput("scores", found.scores, to);
  DeclareOutput("classes", found.classes, to, onnx::TensorProto::INT64);
  DeclareOutput("counts", found.counts, to, onnx::TensorProto::INT64);
}

}  // namespace

Result<onnx::ModelProto> ToOnnx(const Graph& graph, std::span<const std::vector<float>> tensors,
                                const OnnxOptions& options) {
  KUMO_RETURN_IF_ERROR(CheckSize(graph, tensors));
  if (options.pixels && graph.inputs.size() > 1) {
    return FailedPrecondition("--pixels: network " + graph.name + " has " +
                              std::to_string(graph.inputs.size()) +
                              " inputs; omit it, and compute the model's inputs from the pixels");
  }
  onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.set_producer_name("kumo");
  model.set_producer_version(options.version);
  model.add_opset_import()->set_version(kOnnxOpset);
  for (const auto& [key, text] : options.metadata) {
    onnx::StringStringEntryProto* const entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(text);
  }
  onnx::GraphProto& to = *model.mutable_graph();
  to.set_name(graph.name);
  OnnxBuilder builder(&to);

  std::vector<OnnxValue> values(graph.values.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.values[i];
    const std::vector<int64_t>& extents = value.shape.extents();
    if (value.vocabulary == 0 && options.pixels) {
      Declare("pixels", onnx::TensorProto::UINT8, extents, to.add_input());
      values[i] = InputOfPixels(*options.pixels, extents, &builder);
      continue;
    }
    const std::string name = graph.inputs.size() == 1 ? "input" : graph.inputs[i];
    const auto type = value.vocabulary > 0 ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT;
    Declare(name.c_str(), type, extents, to.add_input());
    values[i] = {name, extents};
  }
  std::set<int> written;  // parameters
  for (const Node& node : graph.nodes) {
    OnnxNode of = {node, {}, {}, builder};
    for (const int value : node.inputs) of.inputs.push_back(values[value]);
    for (const int parameter : node.parameters) {
      const TensorSpec& tensor = graph.parameters[parameter].tensor;
      of.parameters.push_back(tensor.name);
      if (written.insert(parameter).second) {
        builder.AddTensor(tensor.name, tensor.shape, tensors[parameter]);
      }
    }
    builder.Begin(node.name);
    values[node.outputs[0]] =
        std::visit([&of](const auto& spec) { return OnnxForm(spec, of); }, node.spec);
  }
  CHECK(!options.detections || graph.detector() != nullptr) << graph.name << " is no detector";
  if (graph.detector() != nullptr) AddDetections(graph, values, options.detections, &builder, &to);
  for (const Output& output : graph.outputs) {
    if (graph.detector() != nullptr && output.implied) continue;  // it has detections
    builder.Begin(output.name);
    // Classes of a sample, or of each of its positions, without extents of 1 behind them.
    std::vector<int64_t> extents = graph.values[output.value].shape.extents();
    const bool scores = graph.IsScores(output.value);
    if (scores) {
      const Target& target = graph.target();
      extents = {target.classes};
      extents.insert(extents.end(), target.extents.begin(), target.extents.end());
    }
    const OnnxValue value = builder.WithExtents(values[output.value], extents);
    DeclareOutput(output.name.c_str(), value, &to);
    if (!scores) continue;
    DeclareOutput("probabilities",
                  builder.Add("Softmax", {value.name}, value.extents, {{"axis", int64_t{1}}}), &to);
  }
  return model;
}

Result<std::string> OnnxBytes(const onnx::ModelProto& model, size_t most) {
  const size_t bytes = model.ByteSizeLong();
  if (bytes > most)
    return TooLong("network " + model.graph().name() + " with its constants has", bytes);
  return model.SerializeAsString();
}

}  // namespace kumo
