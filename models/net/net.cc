// A net joins three things: the fields of the samples (Connect), the graph's ops (Execution), and
// the caller's vectors of weights and gradients (Bind).
//
// Fields. takes() lists the inputs, then the targets. Connect looks each one up by its name among
// the samples' fields and notes its place; other fields are passed over. The fields of a minibatch
// come in three forms: bytes of pictures (converted on the device by a PixelFormula, or on the host
// if they are a target), bytes of masks (widened to int32), and int32 or float32 as they are.
//
// Checks come before effects. Load checks the whole minibatch (lengths, ranges of integers,
// probabilities) before it queues the first copy: an index out of range would read foreign memory
// in an embedding or a loss. A failed Load leaves the loaded minibatch as it was.
//
// Nothing waits for a step. Losses are added to sums_ on the device in double; TakeSums reads and
// clears them. A later Connect keeps arrays that are large enough, since a device may have recorded
// their addresses (MakeTargets).
#include "models/net/net.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <glog/logging.h>

#include "models/backend/memory_ledger.h"
#include "models/graph/sums.h"
#include "models/graph/table.h"
#include "models/layers/layer.h"
#include "models/network.h"

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
  for (Field& field : net->takes()) net->taken_.push_back({std::move(field)});
  net->MakeTargets();
  net->sums_ = DeviceArray<double>(*backend, net->metrics().sums(), "the sums of metrics");
  KUMO_RETURN_IF_ERROR(backend->Wait());
  return net;
}

Status Net::CheckLayout(const ParameterLayout& layout) const {
  if (layout.tensors() == graph_.tensors()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(const ParameterLayout own, ParameterLayout::Make(graph_.tensors()));
  return FailedPrecondition("the parameter layout differs from the layout of network " +
                            graph_.name + ": " + own.FirstDifference(layout));
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
  trains_ = gradients != nullptr;
  return OkStatus();
}

const std::string& Net::scores_layer() const {
  const int scores = graph_.loss().inputs[0];
  const auto of_scores = [&](const Node& node) { return node.outputs[0] == scores; };
  const auto node = std::ranges::find_if(graph_.nodes, of_scores);
  return node == graph_.nodes.end() ? graph_.loss().name : node->name;
}

Fields Net::takes() const {
  Fields wanted;
  for (size_t i = 0; i < graph_.inputs.size(); ++i) {
    const Value& value = graph_.values[i];
    const NumberType type = value.vocabulary > 0 ? NumberType::kInt32 : NumberType::kUint8;
    wanted.push_back({graph_.inputs[i], type, value.shape.extents()});
  }
  for (const Target& target : graph_.targets) {
    Field field = {target.field, target.type(), target.extents, FieldKind::kNumbers, target.list};
    if (target.list) field.extents.insert(field.extents.begin(), 0);
    wanted.push_back(std::move(field));
  }
  return wanted;
}

namespace {

// Whether such a target takes the field's bytes as numbers, by their pixel formula.
bool TakesPicture(const Target& target, const Field& found) {
  return target.classes == 0 && !target.list && found.type == NumberType::kUint8 &&
         found.kind != FieldKind::kMask;
}

// Whether a field of the samples is one of classes for such a target: integers, bytes or shares.
bool FitsClasses(const Target& target, const Field& wanted, const Field& found) {
  if (target.classes == 0) return false;
  if (found.type == NumberType::kUint8) return Shape(found.extents) == Shape(wanted.extents);
  if (found.type != NumberType::kFloat32 || !target.shares) return false;
  std::vector<int64_t> extents = {target.classes};
  extents.insert(extents.end(), target.extents.begin(), target.extents.end());
  return Shape(found.extents) == Shape(extents);
}

}  // namespace

Result<Net::Taken> Net::Take(const Fields& fields, const Field& wanted,
                             const Target* target) const {
  const int place = FindField(fields, wanted.name);
  const std::string name = "network " + graph_.name + " takes a field \"" + wanted.name + "\"";
  if (place < 0) {
    return FailedPrecondition(name +
                              ", but the samples have no such field; take another field in the "
                              "network file, or, for a table, name the field in data.columns");
  }
  Field found = fields[place];
  if (found.list != wanted.list) {
    return FailedPrecondition(name + (wanted.list ? " as a list" : " as an array") +
                              ", but in the samples it is " + (found.list ? "a list" : "an array"));
  }
  if (found.list && (found.extents.empty() || found.extents[0] < 1)) {
    return FailedPrecondition(name + ", and the lists of the samples have room for no entry");
  }
  Field expected = wanted;
  if (wanted.list) expected.extents[0] = found.extents[0];
  if (target != nullptr && FitsClasses(*target, expected, found)) {
    return Taken{std::move(found), place};
  }
  const bool is_picture = target != nullptr && TakesPicture(*target, found);
  // Bytes of an input have a formula with a scale for each channel.
  const bool same = found.type == NumberType::kFloat32 || is_picture
                        ? Shape(expected.extents).Takes(Shape(found.extents))
                        : Shape(expected.extents) == Shape(found.extents);
  if (!same) {
    return FailedPrecondition(name + " of " + ExtentsText(expected.extents) +
                              ", but in the samples it is " + ExtentsText(found.extents));
  }
  const bool any = wanted.type == NumberType::kUint8 && found.type == NumberType::kFloat32;
  if (found.type != wanted.type && !any && !is_picture) {
    const bool is_mask = found.kind == FieldKind::kMask;
    return FailedPrecondition("network " + graph_.name + " takes " + NameOf(wanted.type) +
                              " as field \"" + wanted.name + "\", the samples have " +
                              (is_mask ? "a mask, whose pixels are classes; losses of masks are "
                                         "softmax_cross_entropy and dice"
                                       : NameOf(found.type)));
  }
  return Taken{std::move(found), place};
}

namespace {

Status CheckFormulaFits(const PixelFormula& formula, const Field& field, const std::string& name) {
  const Shape shape(field.extents);
  const auto fits = [](const std::vector<float>& numbers, int64_t size) {
    return numbers.empty() || std::ssize(numbers) == size;
  };
  if (fits(formula.mean, shape.size()) && fits(formula.scales, shape.channels())) return OkStatus();
  return FailedPrecondition("field \"" + field.name + "\" of network " + name + " is one of " +
                            ExtentsText(field.extents) + ", but its mean has " +
                            std::to_string(formula.mean.size()) + " numbers and its scale " +
                            std::to_string(formula.scales.size()) +
                            "; use data of the form on which the network was trained");
}

}  // namespace

Status Net::Connect(const Fields& fields, std::span<const PixelFormula> pixels) {
  const Fields wanted = takes();
  std::vector<Taken> taken;
  std::vector<PixelFormula> formulas(wanted.size());
  for (size_t t = 0; t < wanted.size(); ++t) {
    const Target* const target = TargetOf(t);
    KUMO_ASSIGN_OR_RETURN(Taken one, Take(fields, wanted[t], target));
    if ((target == nullptr || TakesPicture(*target, one.field)) &&
        one.field.type == NumberType::kUint8 && one.place < std::ssize(pixels)) {
      formulas[t] = pixels[one.place];
      KUMO_RETURN_IF_ERROR(CheckFormulaFits(formulas[t], one.field, graph_.name));
    }
    taken.push_back(std::move(one));
  }
  taken_ = std::move(taken);
  widened_.resize(taken_.size());
  scaled_.resize(taken_.size());
  MakeTargets();
  std::vector<InputField> inputs;
  for (size_t t = 0; t < taken_.size(); ++t) {
    const NumberType type = taken_[t].field.type;
    if (TargetOf(t) != nullptr) {
      inputs.push_back({NumberType::kInt32, Shape{1}, {}, true});
    } else {
      inputs.push_back({type, Shape(wanted[t].extents), formulas[t]});
    }
  }
  formulas_ = std::move(formulas);
  for (const DeviceArray<int32_t>& counts : target_counts_) {
    if (!counts.empty()) inputs.push_back({NumberType::kInt32, Shape{1}, {}, true});
  }
  for (size_t i = 0; i < graph_.targets.size(); ++i) {
    const Target& target = graph_.targets[i];
    if (!target.shares) continue;
    const Field& field = taken_[graph_.inputs.size() + i].field;
    KUMO_RETURN_IF_ERROR(execution_->TakeShares(static_cast<int>(i), AreShares(target, field)));
  }
  loader_ = backend_->MakeInputLoader(std::move(inputs), max_batch_);
  return OkStatus();
}

// Arrays that are large enough stay, as a device may have recorded their addresses.
void Net::MakeTargets() {
  target_values_.resize(graph_.targets.size());
  target_counts_.resize(graph_.targets.size());
  targets_.resize(graph_.targets.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Field& field = taken_[graph_.inputs.size() + i].field;
    // Bytes become integers or numbers.
    const int64_t bytes = max_batch_ * field.numbers() * static_cast<int64_t>(sizeof(int32_t));
    if (target_values_[i].bytes() < bytes) {
      target_values_[i] = DeviceArray<std::byte>(*backend_, bytes, "a minibatch's targets");
    }
    if (field.list && target_counts_[i].empty()) {
      target_counts_[i] = DeviceArray<int32_t>(*backend_, max_batch_, "the lengths of lists");
    }
    targets_[i] = {target_values_[i].data(), field.list ? target_counts_[i].data() : nullptr,
                   field.list ? field.extents[0] : 1};
  }
}

Status Net::CheckProbabilities(const Field& field, std::span<const std::byte> bytes,
                               const std::string& what) const {
  for (size_t i = 0; i * sizeof(float) < bytes.size(); ++i) {
    float share = 0;
    std::memcpy(&share, bytes.data() + i * sizeof(share), sizeof(share));
    if (share >= 0 && share <= 1) continue;
    return InvalidArgument(
        what + ": sample " + std::to_string(static_cast<int64_t>(i) / field.numbers()) +
        " of the minibatch has " + std::to_string(share) + ", and values must be 0 .. 1");
  }
  return OkStatus();
}

Status Net::CheckIntegers(const Field& field, std::span<const std::byte> bytes,
                          std::span<const int32_t> counts, int64_t below, const Target* target,
                          const std::string& what) const {
  const int64_t ignored = target == nullptr ? -1 : target->ignored;
  const int64_t per_sample = field.numbers();
  const int64_t of_entry = field.list ? per_sample / field.extents[0] : per_sample;
  const int64_t samples = std::ssize(bytes) / (per_sample * static_cast<int64_t>(sizeof(int32_t)));
  for (int64_t n = 0; n < samples; ++n) {
    const int64_t numbers = field.list ? counts[n] * of_entry : per_sample;
    for (int64_t i = 0; i < numbers; ++i) {
      int32_t number = 0;
      std::memcpy(&number, bytes.data() + (n * per_sample + i) * sizeof(number), sizeof(number));
      if (number >= 0 && (number < below || number == ignored)) continue;
      std::string message = field.name + " " + std::to_string(number) + " of sample " +
                            std::to_string(n) + " of the minibatch is outside the " +
                            std::to_string(below) + " " + what + " of network " + graph_.name;
      const bool of_pixel = target != nullptr && !target->extents.empty();
      const LossNode* const loss = of_pixel && number == kIgnoredClass
                                       ? graph_.FindLossWithout(field.name, number)
                                       : nullptr;
      if (loss != nullptr) {
        message +=
            "; if it marks pixels of no class, such as the borders in masks of Pascal VOC, write " +
            std::string(loss->kind) + " { ignored_label: " + std::to_string(number) +
            " } in layer " + loss->name;
      }
      return InvalidArgument(std::move(message));
    }
  }
  return OkStatus();
}

Result<std::span<const std::byte>> Net::CheckedField(const SampleBatch& batch, size_t t) {
  const auto& [field, place] = taken_[t];
  std::span<const std::byte> bytes = batch.fields[place];
  const std::string of_batch = " of a minibatch of " + std::to_string(batch.size) + " samples";
  const int64_t expected = batch.size * field.bytes();
  if (std::ssize(bytes) != expected) {
    return InvalidArgument("field \"" + field.name + "\"" + of_batch + " of " +
                           ExtentsText(field.extents) + " has " + std::to_string(expected) +
                           " bytes, not " + std::to_string(bytes.size()));
  }
  std::span<const int32_t> counts;
  if (field.list) {
    if (place < std::ssize(batch.counts)) counts = batch.counts[place];
    if (std::ssize(counts) != batch.size) {
      return InvalidArgument("list \"" + field.name + "\"" + of_batch + " has " +
                             std::to_string(batch.size) + " lengths, not " +
                             std::to_string(counts.size()));
    }
    for (const int32_t count : counts) {
      if (0 <= count && count <= field.extents[0]) continue;
      return InvalidArgument("list \"" + field.name + "\"" + of_batch + " has at most " +
                             std::to_string(field.extents[0]) + " entries in a sample, not " +
                             std::to_string(count));
    }
  }
  const Target* const target = TargetOf(t);
  if (target == nullptr) {
    const int64_t vocabulary = graph_.values[t].vocabulary;
    if (vocabulary > 0) {
      KUMO_RETURN_IF_ERROR(CheckIntegers(field, bytes, counts, vocabulary, nullptr, "words"));
    }
    return bytes;
  }
  if (AreShares(*target, field)) {
    KUMO_RETURN_IF_ERROR(
        CheckProbabilities(field, bytes, "the labels are numbers, so shares of the classes"));
    return bytes;
  }
  if (field.type == NumberType::kUint8) {
    const std::span numbers(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (TakesPicture(*target, field)) {
      const Shape shape(field.extents);
      scaled_[t].resize(numbers.size());
      ScalePictures(formulas_[t], shape.channels(), shape.plane(), numbers, scaled_[t].data());
      bytes = std::as_bytes(std::span(scaled_[t]));
    } else {
      widened_[t].assign(numbers.begin(), numbers.end());
      bytes = std::as_bytes(std::span(widened_[t]));
    }
  }
  if (target->probabilities) {
    KUMO_RETURN_IF_ERROR(
        CheckProbabilities(field, bytes, "field \"" + field.name + "\" is of numbers from 0 to 1"));
  }
  if (target->classes > 0) {
    KUMO_RETURN_IF_ERROR(CheckIntegers(field, bytes, counts, target->classes, target, "classes"));
  }
  return bytes;
}

Status Net::Load(const SampleBatch& batch) {
  CHECK(loader_) << "Load before Connect";
  KUMO_RETURN_IF_ERROR(CheckRange("the size of a minibatch", batch.size, 1, max_batch_));
  loaded_.clear();
  std::vector<void*> arrays;
  for (size_t t = 0; t < taken_.size(); ++t) {
    KUMO_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, CheckedField(batch, t));
    loaded_.push_back(bytes);
    const bool is_input = TargetOf(t) == nullptr;
    arrays.push_back(is_input ? execution_->input(static_cast<int>(t))
                              : target_values_[t - graph_.inputs.size()].data());
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (target_counts_[i].empty()) continue;
    const int place = taken_[graph_.inputs.size() + i].place;
    loaded_.push_back(std::as_bytes(batch.counts[place]));
    arrays.push_back(target_counts_[i].data());
  }
  batch_ = batch.size;
  loader_->Load({batch.size, loaded_}, arrays);
  return OkStatus();
}

void Net::Train(const std::function<void(int)>& on_stage) {
  CHECK(bound_ && trains_) << "Train before Bind with gradients";
  const Pass pass = {.batch = batch_, .training = true};
  execution_->Forward(pass);
  execution_->Backward(pass, targets_, sums_.data(), on_stage);
  backend_->SetPlace(nullptr);
}

void Net::UseForward() {
  CHECK(bound_) << "a forward pass before Bind";
  execution_->Forward({.batch = batch_, .training = false, .fixed_tensors = !trains_});
}

void Net::Evaluate() {
  UseForward();
  execution_->AddLosses(batch_, targets_, sums_.data());
  backend_->SetPlace(nullptr);
}

void Net::Forward() {
  UseForward();
  backend_->SetPlace(nullptr);
}

Status Net::Predict(int output, std::span<float> numbers) {
  CHECK_EQ(std::ssize(numbers), batch_ * output_shape(output).size());
  UseForward();
  execution_->ReadOutput(output, batch_, numbers.data());
  backend_->SetPlace(nullptr);
  return backend_->Wait();
}

Result<std::vector<std::vector<float>>> Net::LossInputs() {
  std::vector<std::vector<float>> inputs;
  const std::vector<int>& values = graph_.loss().inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.emplace_back(static_cast<size_t>(batch_ * graph_.values[values[i]].shape.size()));
    execution_->ReadLossInput(static_cast<int>(i), batch_, inputs.back().data());
  }
  KUMO_RETURN_IF_ERROR(backend_->Wait());
  return inputs;
}

Result<std::vector<double>> Net::TakeSums() {
  std::vector<double> sums(static_cast<size_t>(metrics().sums()));
  const size_t bytes = sums.size() * sizeof(double);
  KUMO_RETURN_IF_ERROR(backend_->Read(sums_.data(), bytes, sums.data()));
  backend_->Zero(sums_.data(), bytes);
  AddUpTotal(graph_, sums);
  metrics().Unsettle(sums);
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
