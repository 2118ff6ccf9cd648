#include "models/net.h"

#include <algorithm>
#include <cstdint>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"
#include "models/graph/table.h"
#include "models/layers/layer.h"
#include "models/network.h"

namespace kumo {

Result<std::unique_ptr<Net>> Net::Make(const model::Network& network, int max_batch,
                                       Backend* backend) {
  KUMO_RETURN_IF_ERROR(CheckRange("max_batch", max_batch, 1, 1 << 20));
  KUMO_ASSIGN_OR_RETURN(Graph graph, PlanNetwork(network));
  std::unique_ptr<Net> net(new Net(std::move(graph), max_batch, backend));
  KUMO_ASSIGN_OR_RETURN(net->execution_, Execution::Make(net->graph_, max_batch, backend));
  net->labels_ = DeviceArray<int32_t>(*backend, max_batch, "a minibatch's labels");
  net->sums_ = DeviceArray<StepResult>(*backend, 1, "the sums of losses");
  KUMO_RETURN_IF_ERROR(backend->Wait());
  return net;
}

Status Net::CheckLayout(const ParameterLayout& layout) const {
  if (layout.tensors() == graph_.tensors()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout own, ParameterLayout::Make(graph_.tensors()));
  return FailedPrecondition("the parameter layout is not that of network " + graph_.name + ": " +
                            own.FirstDifference(layout));
}

Status Net::InitialWeights(uint64_t seed, const ParameterLayout& layout,
                           std::span<float> weights) const {
  KUMO_RETURN_IF_ERROR(CheckLayout(layout));
  if (static_cast<int64_t>(weights.size()) != layout.size()) {
    return FailedPrecondition("a parameter vector of " + graph_.name + " has " +
                              std::to_string(layout.size()) + " floats, not " +
                              std::to_string(weights.size()));
  }
  std::fill(weights.begin(), weights.end(), 0.0f);
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    const Parameter& parameter = graph_.parameters[i];
    const Range range = layout.tensor(static_cast<int>(i));
    Initialise(
        parameter.initialiser, parameter.fans, seed, parameter.tensor.name,
        weights.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size())));
  }
  return OkStatus();
}

Status Net::Bind(const ParameterLayout& layout, float* weights, float* gradients) {
  KUMO_RETURN_IF_ERROR(CheckLayout(layout));
  execution_->Bind(layout, weights, gradients);
  bound_ = true;
  return OkStatus();
}

Status Net::CheckSize(int64_t size, int64_t windows) const {
  KUMO_RETURN_IF_ERROR(CheckRange("the size of a minibatch", size, 1, max_batch_));
  if (windows == 0 || windows == size) return OkStatus();
  return InvalidArgument("a minibatch of " + std::to_string(size) + " samples has " +
                         std::to_string(windows) + " windows");
}

Status Net::CheckBatch(int size, size_t numbers, std::span<const int32_t> labels) const {
  const auto expected = static_cast<size_t>(size * graph_.input().size());
  if (numbers != expected) {
    return InvalidArgument("a minibatch of " + std::to_string(size) + " samples of " +
                           graph_.input().ToString() + " has " + std::to_string(expected) +
                           " numbers, not " + std::to_string(numbers));
  }
  if (std::ssize(labels) != size) {
    return InvalidArgument("a minibatch of " + std::to_string(size) + " samples has " +
                           std::to_string(labels.size()) + " labels");
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes()) {
      return InvalidArgument("label " + std::to_string(labels[i]) + " of sample " +
                             std::to_string(i) + " of the minibatch is outside the " +
                             std::to_string(classes()) + " classes of network " + graph_.name);
    }
  }
  return OkStatus();
}

Status Net::Load(const Batch& batch) {
  KUMO_RETURN_IF_ERROR(CheckSize(batch.size, 0));
  KUMO_RETURN_IF_ERROR(CheckBatch(batch.size, batch.inputs.size(), batch.labels));
  batch_ = batch.size;
  backend_->LoadInputs(graph_.input(), batch.size, batch.inputs.data(), execution_->input());
  backend_->Write(batch.labels.data(), batch.labels.size_bytes(), labels_.data());
  return OkStatus();
}

Status Net::Load(InputLoader* loader, const PixelBatch& batch) {
  KUMO_RETURN_IF_ERROR(CheckSize(batch.size, std::ssize(batch.windows)));
  KUMO_RETURN_IF_ERROR(CheckBatch(batch.size, batch.pixels.size(), batch.labels));
  batch_ = batch.size;
  loader->Load(batch, execution_->input(), labels_.data());
  return OkStatus();
}

Status Net::Load(InputLoader* loader, const DeviceSamples& samples,
                 std::span<const int64_t> indices, std::span<const Window> windows) {
  KUMO_RETURN_IF_ERROR(CheckSize(std::ssize(indices), std::ssize(windows)));
  batch_ = static_cast<int>(indices.size());
  loader->Load(samples, indices, windows, execution_->input(), labels_.data());
  return OkStatus();
}

void Net::Train(const std::function<void(int)>& on_stage) {
  CHECK(bound_) << "Train before Bind";
  const Pass pass = {batch_, true};
  execution_->Forward(pass);
  execution_->Backward(pass, labels_.data(), sums_.data(), on_stage);
  backend_->SetPlace(nullptr);
}

void Net::Evaluate() {
  CHECK(bound_) << "Evaluate before Bind";
  execution_->Forward({batch_, false});
  execution_->AddLoss(batch_, labels_.data(), sums_.data());
  backend_->SetPlace(nullptr);
}

Result<StepResult> Net::TakeSums() {
  StepResult sums;
  KUMO_RETURN_IF_ERROR(backend_->Read(sums_.data(), sizeof(sums), &sums));
  backend_->Zero(sums_.data(), sizeof(sums));
  return sums;
}

std::string Net::Describe() const {
  const auto bytes_of = [&](const Shape& shape) {
    return backend_->ActivationBytes(shape, max_batch_);
  };
  return graph_.name + ", input " + graph_.input().ToString() + "\n" + TableOf(graph_, bytes_of) +
         std::to_string(graph_.trained_parameters()) +
         " trained parameters; minibatches of up to " + std::to_string(max_batch_) + " on " +
         backend_->name() + " take " + Megabytes(execution_->bytes()) + "\n";
}

}  // namespace kumo
