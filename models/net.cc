#include "models/net.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"
#include "models/graph/table.h"
#include "models/layers/layer.h"
#include "models/network.h"

namespace kumo {
namespace {

// What a network takes of a sample.
constexpr int kImage = 0;
constexpr int kLabel = 1;
constexpr int kFields = 2;

}  // namespace

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

Status Net::Connect(const Fields& fields, const PixelFormula& pixels) {
  const Shape& input = graph_.input();
  const Field image = {
      kImageField, NumberType::kUint8, {input.channels(), input.height(), input.width()}};
  const Field label = {kLabelField, NumberType::kInt32, {}};
  Fields taken;
  std::vector<int> places;
  for (const Field& wanted : {image, label}) {
    const int place = FindField(fields, wanted.name);
    if (place < 0) {
      return FailedPrecondition("network " + graph_.name + " takes a field \"" + wanted.name +
                                "\", which the samples have not");
    }
    const Field& found = fields[place];
    if (found.extents != wanted.extents) {
      return FailedPrecondition("network " + graph_.name + " takes a field \"" + wanted.name +
                                "\" of " + ExtentsText(wanted.extents) +
                                ", that of the samples is " + ExtentsText(found.extents));
    }
    const bool inputs = wanted.name == kImageField && found.type == NumberType::kFloat32;
    if (found.type != wanted.type && !inputs) {
      return FailedPrecondition("network " + graph_.name + " takes " + NameOf(wanted.type) +
                                " as field \"" + wanted.name + "\", the samples have " +
                                NameOf(found.type));
    }
    taken.push_back(found);
    places.push_back(place);
  }
  loader_ = backend_->MakeInputLoader(
      {{taken[kImage].type, input, pixels}, {taken[kLabel].type, Shape{1}, {}}}, max_batch_);
  fields_ = std::move(taken);
  taken_ = std::move(places);
  return OkStatus();
}

Status Net::CheckLabels(std::span<const std::byte> labels) const {
  for (size_t i = 0; i * sizeof(int32_t) < labels.size(); ++i) {
    int32_t label = 0;
    std::memcpy(&label, labels.data() + i * sizeof(label), sizeof(label));
    if (label < 0 || label >= classes()) {
      return InvalidArgument("label " + std::to_string(label) + " of sample " + std::to_string(i) +
                             " of the minibatch is outside the " + std::to_string(classes()) +
                             " classes of network " + graph_.name);
    }
  }
  return OkStatus();
}

Status Net::Load(const SampleBatch& batch) {
  CHECK(loader_) << "Load before Connect";
  KUMO_RETURN_IF_ERROR(CheckRange("the size of a minibatch", batch.size, 1, max_batch_));
  std::array<std::span<const std::byte>, kFields> fields;
  for (int f = 0; f < kFields; ++f) {
    fields[f] = batch.fields[taken_[f]];
    const int64_t expected = batch.size * fields_[f].bytes();
    if (std::ssize(fields[f]) != expected) {
      return InvalidArgument("field \"" + fields_[f].name + "\" of a minibatch of " +
                             std::to_string(batch.size) + " samples of " +
                             ExtentsText(fields_[f].extents) + " has " + std::to_string(expected) +
                             " bytes, not " + std::to_string(fields[f].size()));
    }
  }
  KUMO_RETURN_IF_ERROR(CheckLabels(fields[kLabel]));
  batch_ = batch.size;
  void* const arrays[] = {execution_->input(), labels_.data()};
  loader_->Load({batch.size, fields}, arrays);
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
