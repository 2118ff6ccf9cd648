// Batch normalisation as BatchNormalization. Read from: BatchNormalization.
#include <utility>

#include "models/onnx/forms.h"
#include "models/onnx/readers.h"
#include "models/ops/batch_normalisation/spec.h"

namespace kumo {

OnnxValue OnnxForm(const BatchNormalisationSpec& spec, const OnnxNode& node) {
  const OnnxValue output =
      node.builder.Add("BatchNormalization", node.OperandsOf(node.input()), node.input().extents,
                       {{"epsilon", spec.epsilon}, {"momentum", spec.momentum}});
  return spec.activation ? Activated(*spec.activation, 0, output, &node.builder) : output;
}

namespace {

OnnxReading ReadBatchNormalisation(const OnnxCall& call) {
  if (!call.IsArray(0) || call.inputs.size() != 5) return NotRead();
  constexpr const char* kTensors[] = {"scale", "shift", "running_mean", "running_variance"};
  std::vector<ImportTensor> tensors;
  for (size_t i = 0; i < 4; ++i) {
    if (!call.IsConstant(1 + i)) return NotRead();
    tensors.push_back({kTensors[i], call.constant(1 + i)});
  }
  model::Layer layer;
  model::BatchNormalisation& settings = *layer.mutable_batch_normalisation();
  settings.set_epsilon(EpsilonField(call.Float("epsilon", 1e-5f)));
  const float momentum = call.Float("momentum", 0.9f);
  if (momentum != 0.9f && momentum > 0.0f && momentum < 1.0f) settings.set_momentum(momentum);
  KUMO_ASSIGN_OR_RETURN(const int input, call.graph.WithChannels(call.inputs[0], 0));
  KUMO_ASSIGN_OR_RETURN(const int node, call.graph.AddLayer(std::move(layer), {input},
                                                            std::move(tensors), &call.node));
  return Read(call.graph.OutputWithChannels(node, call.inputs[0], 0));
}

}  // namespace

std::span<const OnnxReader> BatchNormalisationOnnxReaders() {
  static constexpr OnnxReader kReaders[] = {{"BatchNormalization", ReadBatchNormalisation}};
  return kReaders;
}

}  // namespace kumo
