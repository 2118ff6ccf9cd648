#include "models/net.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"
#include "models/graph/sums.h"
#include "models/graph/table.h"
#include "models/network.h"
#include "models/ops/layer.h"

namespace kumo {
namespace {

// "input 1x28x28", "tokens 64 of 65 words"
std::string InputsText(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.values[i];
    text += (i == 0 ? "" : ", ") + graph.inputs[i] + " " + value.shape.ToString();
    if (value.vocabulary > 0) text += " of " + std::to_string(value.vocabulary) + " words";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Net>> Net::Make(const model::Network& network, int max_batch,
                                       Backend* backend) {
  KUMO_RETURN_IF_ERROR(CheckRange("max_batch", max_batch, 1, 1 << 20));
  KUMO_ASSIGN_OR_RETURN(Graph graph, PlanNetwork(network));
  std::unique_ptr<Net> net(new Net(std::move(graph), max_batch, backend));
  KUMO_ASSIGN_OR_RETURN(net->execution_, Execution::Make(net->graph_, max_batch, backend));
  const int64_t labels = net->takes().back().bytes();
  net->labels_ = DeviceArray<std::byte>(*backend, max_batch * labels, "a minibatch's labels");
  net->sums_ = DeviceArray<double>(*backend, net->metrics().sums(), "the sums of metrics");
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

const std::string& Net::scores_layer() const {
  const int scores = graph_.losses.back().scores;
  const auto of_scores = [&](const Node& node) { return node.outputs[0] == scores; };
  const auto node = std::ranges::find_if(graph_.nodes, of_scores);
  return node == graph_.nodes.end() ? graph_.losses.back().name : node->name;
}

Fields Net::takes() const {
  Fields wanted;
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const Value& value = graph_.values[i];
    const NumberType type = value.vocabulary > 0 ? NumberType::kInt32 : NumberType::kUint8;
    wanted.push_back({graph_.inputs[i], type, value.shape.extents()});
  }
  wanted.push_back({kLabelField, graph_.label.type(), graph_.label.extents});
  return wanted;
}

Status Net::Connect(const Fields& fields, const PixelFormula& pixels) {
  Fields taken;
  std::vector<int> places;
  std::vector<InputField> inputs;
  for (Field wanted : takes()) {
    const int place = FindField(fields, wanted.name);
    if (place < 0) {
      return FailedPrecondition("network " + graph_.name + " takes a field \"" + wanted.name +
                                "\", which the samples have not");
    }
    const Field& found = fields[place];
    // By its place: an input may have the same name.
    const bool is_label = taken.size() == graph_.inputs.size();
    if (is_label && AreShares(found)) wanted = found;
    // Bytes have a formula with a scale for each channel.
    const bool same = found.type == NumberType::kFloat32
                          ? Shape(wanted.extents).Takes(Shape(found.extents))
                          : Shape(wanted.extents) == Shape(found.extents);
    if (!same) {
      return FailedPrecondition("network " + graph_.name + " takes a field \"" + wanted.name +
                                "\" of " + ExtentsText(wanted.extents) +
                                ", that of the samples is " + ExtentsText(found.extents));
    }
    const bool any = wanted.type == NumberType::kUint8 && found.type == NumberType::kFloat32;
    if (found.type != wanted.type && !any) {
      return FailedPrecondition("network " + graph_.name + " takes " + NameOf(wanted.type) +
                                " as field \"" + wanted.name + "\", the samples have " +
                                NameOf(found.type));
    }
    taken.push_back(found);
    places.push_back(place);
    inputs.push_back({found.type, Shape(wanted.extents),
                      found.type == NumberType::kUint8 ? pixels : PixelFormula{}, is_label});
  }
  if (classes() > 0) KUMO_RETURN_IF_ERROR(execution_->TakeShares(AreShares(taken.back())));
  if (labels_.bytes() < max_batch_ * taken.back().bytes()) {
    labels_ = DeviceArray<std::byte>(*backend_, max_batch_ * taken.back().bytes(),
                                     "a minibatch's labels");
  }
  loader_ = backend_->MakeInputLoader(std::move(inputs), max_batch_);
  fields_ = std::move(taken);
  taken_ = std::move(places);
  loaded_.resize(fields_.size());
  return OkStatus();
}

bool Net::AreShares(const Field& label) const {
  std::vector<int64_t> extents = {classes()};
  extents.insert(extents.end(), graph_.label.extents.begin(), graph_.label.extents.end());
  return classes() > 0 && label.type == NumberType::kFloat32 &&
         Shape(label.extents) == Shape(extents);
}

Status Net::CheckShares(const SampleBatch& batch, int place) const {
  const std::span<const std::byte> bytes = batch.fields[taken_[place]];
  const int64_t per_sample = fields_[place].numbers();
  for (size_t i = 0; i * sizeof(float) < bytes.size(); ++i) {
    float share = 0;
    std::memcpy(&share, bytes.data() + i * sizeof(share), sizeof(share));
    if (share >= 0 && share <= 1) continue;
    return InvalidArgument("the labels are numbers, so shares of the classes: that of sample " +
                           std::to_string(static_cast<int64_t>(i) / per_sample) +
                           " of the minibatch must be 0 .. 1, is " + std::to_string(share));
  }
  return OkStatus();
}

Status Net::CheckIntegers(const SampleBatch& batch, int place, int64_t below,
                          const std::string& what) const {
  const std::span<const std::byte> bytes = batch.fields[taken_[place]];
  const int64_t per_sample = fields_[place].numbers();
  for (size_t i = 0; i * sizeof(int32_t) < bytes.size(); ++i) {
    int32_t number = 0;
    std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
    if (number < 0 || number >= below) {
      return InvalidArgument(fields_[place].name + " " + std::to_string(number) + " of sample " +
                             std::to_string(static_cast<int64_t>(i) / per_sample) +
                             " of the minibatch is outside the " + std::to_string(below) + " " +
                             what + " of network " + graph_.name);
    }
  }
  return OkStatus();
}

Status Net::Load(const SampleBatch& batch) {
  CHECK(loader_) << "Load before Connect";
  KUMO_RETURN_IF_ERROR(CheckRange("the size of a minibatch", batch.size, 1, max_batch_));
  for (size_t f = 0; f < fields_.size(); ++f) {
    loaded_[f] = batch.fields[taken_[f]];
    const int64_t expected = batch.size * fields_[f].bytes();
    if (std::ssize(loaded_[f]) != expected) {
      return InvalidArgument("field \"" + fields_[f].name + "\" of a minibatch of " +
                             std::to_string(batch.size) + " samples of " +
                             ExtentsText(fields_[f].extents) + " has " + std::to_string(expected) +
                             " bytes, not " + std::to_string(loaded_[f].size()));
    }
  }
  const auto label = static_cast<int>(graph_.inputs.size());
  if (AreShares(fields_[label])) {
    KUMO_RETURN_IF_ERROR(CheckShares(batch, label));
  } else if (classes() > 0) {
    KUMO_RETURN_IF_ERROR(CheckIntegers(batch, label, classes(), "classes"));
  }
  std::vector<void*> arrays;
  for (int i = 0; i < label; ++i) {
    const int64_t vocabulary = graph_.values[i].vocabulary;
    if (vocabulary > 0) {
      KUMO_RETURN_IF_ERROR(CheckIntegers(batch, i, vocabulary, "words"));
    }
    arrays.push_back(execution_->input(i));
  }
  arrays.push_back(labels_.data());
  batch_ = batch.size;
  loader_->Load({batch.size, loaded_}, arrays);
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
  execution_->AddLosses(batch_, labels_.data(), sums_.data());
  backend_->SetPlace(nullptr);
}

Status Net::Predict(int output, std::span<float> numbers) {
  CHECK(bound_) << "Predict before Bind";
  CHECK_EQ(std::ssize(numbers), batch_ * output_shape(output).size());
  execution_->Forward({batch_, false});
  execution_->ReadOutput(output, batch_, numbers.data());
  backend_->SetPlace(nullptr);
  return backend_->Wait();
}

Result<std::vector<double>> Net::TakeSums() {
  std::vector<double> sums(static_cast<size_t>(metrics().sums()));
  const size_t bytes = sums.size() * sizeof(double);
  KUMO_RETURN_IF_ERROR(backend_->Read(sums_.data(), bytes, sums.data()));
  backend_->Zero(sums_.data(), bytes);
  AddUpTotal(graph_, sums);
  return sums;
}

std::string Net::Describe(int columns) const {
  const auto bytes_of = [&](const Shape& shape) {
    return backend_->ActivationBytes(shape, max_batch_);
  };
  const int64_t fixed = graph_.frozen_parameters();
  const std::string frozen = fixed > 0 ? ", " + std::to_string(fixed) + " frozen" : "";
  return graph_.name + ", " + InputsText(graph_) + "\n" + TableOf(graph_, bytes_of, columns) +
         std::to_string(graph_.trained_parameters()) + " trained parameters" + frozen +
         "; minibatches of up to " + std::to_string(max_batch_) + " on " + backend_->name() +
         " take " + Megabytes(execution_->bytes()) + "\n";
}

}  // namespace kumo
