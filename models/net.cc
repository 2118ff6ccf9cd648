#include "models/net.h"

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <sstream>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"

namespace kumo {
namespace {

// The planned layers that compute something, with max pooling moved in front of non-decreasing
// activations.
std::vector<PlannedLayer> OrderOfExecution(const NetworkPlan& plan) {
  std::vector<PlannedLayer> order;
  for (const PlannedLayer& layer : plan.layers) {
    if (layer.plan.make_op == nullptr) continue;
    order.push_back(layer);
    for (size_t i = order.size() - 1;
         i > 0 && order[i].plan.max_pooling && order[i - 1].plan.is_monotone; --i) {
      std::swap(order[i - 1], order[i]);
      PlannedLayer& activation = order[i];
      const LayerKind* kind = FindLayerKind(activation.layer.kind_case());
      // The pooling's input has the shape that the activation's had; the activation is planned
      // anew for the pooled shape.
      activation.input = order[i - 1].plan.output;
      Result<LayerPlan> planned = kind->plan({activation.layer, activation.input, 0});
      CHECK(planned.ok()) << planned.status().message();
      activation.plan = std::move(planned).value();
    }
  }
  return order;
}

bool PoolsInPlace(const PlannedLayer& convolution, const PlannedLayer& next) {
  const auto& pool = next.plan.max_pooling;
  return convolution.plan.convolution && pool && pool->pad == 0 && pool->stride == pool->kernel;
}

}  // namespace

Result<std::unique_ptr<Net>> Net::Make(const model::Network& network, int max_batch,
                                       Backend* backend) {
  KUMO_RETURN_IF_ERROR(CheckRange("max_batch", max_batch, 1, 1 << 20));
  std::unique_ptr<Net> net(new Net());
  KUMO_ASSIGN_OR_RETURN(net->plan_, PlanNetwork(network));
  net->max_batch_ = max_batch;
  net->backend_ = backend;
  net->MakeSteps();
  net->AllocateActivations();
  KUMO_RETURN_IF_ERROR(backend->Wait());
  return net;
}

void Net::MakeSteps() {
  const std::vector<PlannedLayer> order = OrderOfExecution(plan_);
  for (size_t i = 0; i < order.size(); ++i) {
    const PlannedLayer& layer = order[i];
    if (layer.plan.takes_vector) FlattenFor(layer.layer.name(), layer.input);
    Step step;
    step.input = layer.input;
    step.output = layer.plan.output;
    step.layer = layer.layer.name();
    for (size_t p = 0; p < layer.plan.parameters.size(); ++p) {
      step.tensors.push_back(layer.first_tensor + static_cast<int>(p));
    }
    if (i + 1 < order.size() && PoolsInPlace(layer, order[i + 1])) {
      ++i;
      step.op =
          backend_->MakeConvolution(*layer.plan.convolution, order[i].plan.max_pooling, max_batch_);
      step.output = order[i].plan.output;
    } else if (i + 1 < order.size() && FusesActivation(layer, order[i + 1])) {
      ++i;
      step.op = layer.plan.make_fused_op(*backend_, max_batch_, *order[i].plan.activation);
    } else {
      step.op = layer.plan.make_op(*backend_, max_batch_);
    }
    if (step.op != nullptr) steps_.push_back(std::move(step));
  }
  FlattenFor(plan_.loss_name, steps_.back().output);
  loss_ = plan_.loss.make_op(*backend_, max_batch_);
  while (steps_[first_trained_].tensors.empty()) ++first_trained_;
}

bool Net::FusesActivation(const PlannedLayer& layer, const PlannedLayer& next) const {
  return layer.plan.make_fused_op && next.plan.activation &&
         backend_->FusesActivation(*next.plan.activation);
}

// A step in front of a layer that reads a sample as one vector, where the device keeps it
// otherwise.
void Net::FlattenFor(const std::string& layer, const Shape& input) {
  if (input.plane() == 1) return;
  Step step;
  step.layer = layer;
  step.op = backend_->MakeFlatten(input);
  step.input = input;
  step.output = {input.size()};
  if (step.op != nullptr) steps_.push_back(std::move(step));
}

void Net::AllocateActivations() {
  const auto bytes_of = [&](const Shape& shape) {
    return backend_->ActivationBytes(shape, max_batch_);
  };
  input_ = DeviceArray<std::byte>(*backend_, bytes_of(plan_.input), "a minibatch");
  labels_ = DeviceArray<int32_t>(*backend_, max_batch_, "a minibatch's labels");
  sums_ = DeviceArray<StepResult>(*backend_, 1, "the sums of losses");
  int64_t most = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const bool spares_input = i > 0 && !steps_[i - 1].op->reads_output();
    step.in_place = step.op->can_run_in_place() && spares_input;
    if (step.in_place) {
      outputs_.push_back(outputs_.back());
    } else {
      buffers_.emplace_back(*backend_, bytes_of(step.output), "activations");
      outputs_.push_back(buffers_.back().data());
    }
    most = std::max({most, bytes_of(step.input), bytes_of(step.output)});
  }
  for (DeviceArray<std::byte>& gradient : gradients_) {
    gradient = DeviceArray<std::byte>(*backend_, most, "activations' gradients");
  }
}

Status Net::CheckLayout(const ParameterLayout& layout) const {
  if (layout.tensors() == plan_.tensors()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout own, ParameterLayout::Make(plan_.tensors()));
  return FailedPrecondition("the parameter layout is not that of network " + plan_.name + ": " +
                            own.FirstDifference(layout));
}

Status Net::InitialWeights(uint64_t seed, const ParameterLayout& layout,
                           std::span<float> weights) const {
  KUMO_RETURN_IF_ERROR(CheckLayout(layout));
  if (static_cast<int64_t>(weights.size()) != layout.size()) {
    return FailedPrecondition("a parameter vector of " + plan_.name + " has " +
                              std::to_string(layout.size()) + " floats, not " +
                              std::to_string(weights.size()));
  }
  std::fill(weights.begin(), weights.end(), 0.0f);
  int index = 0;
  for (const PlannedLayer& layer : plan_.layers) {
    for (const ParameterSpec& parameter : layer.plan.parameters) {
      const Range range = layout.tensor(index++);
      Initialise(
          parameter.initialiser, parameter.fans, seed, parameter.tensor.name,
          weights.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size())));
    }
  }
  return OkStatus();
}

Status Net::Bind(const ParameterLayout& layout, float* weights, float* gradients) {
  KUMO_RETURN_IF_ERROR(CheckLayout(layout));
  for (Step& step : steps_) {
    std::vector<float*> step_weights;
    std::vector<float*> step_gradients;
    for (const int tensor : step.tensors) {
      step_weights.push_back(weights + layout.tensor(tensor).begin);
      step_gradients.push_back(gradients + layout.tensor(tensor).begin);
    }
    step.op->Bind(step_weights, step_gradients);
  }
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
  const auto expected = static_cast<size_t>(size * plan_.input.size());
  if (numbers != expected) {
    return InvalidArgument("a minibatch of " + std::to_string(size) + " samples of " +
                           plan_.input.ToString() + " has " + std::to_string(expected) +
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
                             std::to_string(classes()) + " classes of network " + plan_.name);
    }
  }
  return OkStatus();
}

const void* Net::InputOf(size_t step) const {
  return step == 0 ? input_.data() : outputs_[step - 1];
}

const void* Net::Forward(const Pass& pass) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    backend_->SetPlace(&steps_[i].layer);
    steps_[i].op->Forward(pass, InputOf(i), outputs_[i]);
  }
  backend_->SetPlace(&plan_.loss_name);
  return outputs_.back();
}

// The loss left its gradient in gradients_[0].
void Net::Backward(const Pass& pass, const std::function<void(int)>& on_stage) {
  int current = 0;
  int stage = 0;
  for (size_t i = steps_.size(); i-- > first_trained_;) {
    Step& step = steps_[i];
    backend_->SetPlace(&step.layer);
    const int next = step.op->can_run_in_place() ? current : 1 - current;
    step.op->Backward(pass, InputOf(i), outputs_[i], gradients_[current].data(),
                      i == first_trained_ ? nullptr : gradients_[next].data());
    current = next;
    if (!step.tensors.empty() && on_stage) on_stage(stage++);
  }
}

std::vector<Range> Net::gradient_stages() const {
  std::vector<Range> stages;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (!step->tensors.empty()) {
      stages.push_back({step->tensors.front(), step->tensors.back() + 1});
    }
  }
  return stages;
}

Status Net::Load(const Batch& batch) {
  KUMO_RETURN_IF_ERROR(CheckSize(batch.size, 0));
  KUMO_RETURN_IF_ERROR(CheckBatch(batch.size, batch.inputs.size(), batch.labels));
  batch_ = batch.size;
  backend_->LoadInputs(plan_.input, batch.size, batch.inputs.data(), input_.data());
  backend_->Write(batch.labels.data(), batch.labels.size_bytes(), labels_.data());
  return OkStatus();
}

Status Net::Load(const DeviceFormula& formula, const PixelBatch& batch) {
  KUMO_RETURN_IF_ERROR(CheckSize(batch.size, std::ssize(batch.windows)));
  KUMO_RETURN_IF_ERROR(CheckBatch(batch.size, batch.pixels.size(), batch.labels));
  batch_ = batch.size;
  backend_->LoadPixels(formula, batch, input_.data(), labels_.data());
  return OkStatus();
}

Status Net::Load(const DeviceFormula& formula, const DeviceSamples& samples,
                 std::span<const int64_t> indices, std::span<const Window> windows) {
  KUMO_RETURN_IF_ERROR(CheckSize(std::ssize(indices), std::ssize(windows)));
  batch_ = static_cast<int>(indices.size());
  backend_->LoadSamples(formula, samples, indices, windows, input_.data(), labels_.data());
  return OkStatus();
}

void Net::Train(const std::function<void(int)>& on_stage) {
  CHECK(bound_) << "Train before Bind";
  const Pass pass = {batch_, true};
  const void* scores = Forward(pass);
  loss_->Run(batch_, scores, labels_.data(), gradients_[0].data(), sums_.data());
  Backward(pass, on_stage);
  backend_->SetPlace(nullptr);
}

void Net::Evaluate() {
  CHECK(bound_) << "Evaluate before Bind";
  const void* scores = Forward({batch_, false});
  loss_->Run(batch_, scores, labels_.data(), nullptr, sums_.data());
  backend_->SetPlace(nullptr);
}

Result<StepResult> Net::TakeSums() {
  StepResult sums;
  KUMO_RETURN_IF_ERROR(backend_->Read(sums_.data(), sizeof(sums), &sums));
  backend_->Zero(sums_.data(), sizeof(sums));
  return sums;
}

std::string Net::Describe() const {
  std::ostringstream out;
  const auto line = [&](const std::string& name, const std::string& kind, const std::string& detail,
                        const Shape& shape, int64_t parameters) {
    out << std::left << std::setw(12) << name << std::setw(24) << kind << std::setw(22) << detail
        << std::setw(14) << shape.ToString() << std::right << std::setw(12)
        << (parameters < 0 ? std::string() : std::to_string(parameters)) << '\n';
  };
  out << plan_.name << ", input " << plan_.input.ToString() << '\n';
  for (const PlannedLayer& layer : plan_.layers) {
    int64_t parameters = 0;
    for (const ParameterSpec& spec : layer.plan.parameters) parameters += spec.tensor.size();
    line(layer.layer.name(), layer.kind, layer.plan.detail, layer.plan.output, parameters);
  }
  line(plan_.loss_name, plan_.loss_kind, "", {plan_.loss.classes}, 0);
  int64_t bytes = input_.bytes() + gradients_[0].bytes() + gradients_[1].bytes();
  for (const DeviceArray<std::byte>& buffer : buffers_) bytes += buffer.bytes();
  for (const Step& step : steps_) bytes += step.op->bytes();
  out << plan_.trained_parameters() << " trained parameters; minibatches of up to " << max_batch_
      << " on " << backend_->name() << " take " << Megabytes(bytes) << '\n';
  return out.str();
}

}  // namespace kumo
