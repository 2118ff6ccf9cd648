// The backends that layers and losses are tried on, and one layer on one of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/layers/layer.h"
#include "tests/models/gpu_under_test.h"
#include "tests/models/numbers.h"
#include "tests/models/ops/layer_cases.h"

namespace kumo {

inline constexpr int kMaxBatch = 70;
inline constexpr int kIndex = 3;
inline const StepStreams kStreams = {11, 2, 5, 7};

struct Setting {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

// A backend whose nets have the padding that an op of `spec` needs, at least.
inline std::unique_ptr<Backend> CpuBackendFor(const OpSpec& spec, int threads, Isa isa) {
  auto backend = MakeCpuBackend(threads, isa);
  CHECK(backend->MakeOp(spec, 1).ok());
  return backend;
}

// The CPU on every level, with no more padding than needed and with more; and a GPU where there is
// one. Or the simulated GPU alone.
inline std::vector<Setting> Settings() {
  if (GpuIsSimulated()) {
    return {{"simulated cuda", [] { return MakeCudaBackend({}).value(); }}};
  }
  std::vector<Setting> settings;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    const std::string level = "level " + std::to_string(static_cast<int>(isa));
    settings.push_back({level + ", 1 thread", [=] { return MakeCpuBackend(1, isa); }});
    const bool few = isa == Isa::kV3;
    settings.push_back({level + ", 3 threads, lanes of " + (few ? "4, 8 or 16" : "16"), [=] {
                          return few ? CpuBackendFor(PoolingSpec(), 3, isa)
                                     : CpuBackendFor(GroupNormalisationSpec{{2}}, 3, isa);
                        }});
  }
  if (MakeCudaBackend({}).ok()) {
    settings.push_back({"cuda", [] { return MakeCudaBackend({}).value(); }});
  }
  return settings;
}

inline std::vector<float> RandomNumbers(int64_t n, Rng* rng) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) x = rng->NextUniform(-1, 1);
  return numbers;
}

// The same for a device's array and for its numbers alone, when padding holds zeros. Exact: whole
// multiples of 2^-40, added as integers that may go round.
inline uint64_t SumOfSizes(std::span<const float> x) {
  uint64_t sum = 0;
  for (const float v : x) {
    sum += static_cast<uint64_t>(std::llround(std::abs(static_cast<double>(v)) * 0x1p40));
  }
  return sum;
}

// One layer on one backend, seen from outside: samples x channels x height x width; of several
// inputs, one after the other.
class LayerOnDevice {
 public:
  LayerOnDevice(const LayerCase& layer_case, const Setting& setting)
      : shapes_(layer_case.inputs()), backend_(setting.make()) {
    CHECK(google::protobuf::TextFormat::ParseFromString(layer_case.text, &layer_));
    Result<LayerPlan> plan =
        FindLayerKind(layer_.kind_case())->plan({layer_, shapes_, kIndex, layer_case.vocabulary});
    CHECK(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
    // What a rewrite does in front of a layer, or in its place.
    whole_numbers_ = layer_case.vocabulary > 0;
    const auto* const product = std::get_if<FullyConnectedSpec>(&plan_.spec);
    if (product != nullptr && product->positions == 1) shapes_ = {{shapes_[0].size()}};
    const bool stays =
        std::holds_alternative<FlattenSpec>(plan_.spec) && !backend_->FlatteningMoves(shapes_[0]);
    if (!stays) op_ = backend_->MakeOp(plan_.spec, kMaxBatch).value();
    Rng rng(1, RngPurpose::kTest);
    for (const Parameter& spec : plan_.parameters) {
      weights_.push_back(RandomNumbers(spec.tensor.size(), &rng));
      for (float& w : weights_.back()) {
        if (spec.tensor.name == "l.running_variance") w = std::abs(w) + 0.1f;
      }
      // A gradient that is not overwritten shows.
      gradients_.emplace_back(weights_.back().size(), 1e6f);
    }
  }

  // From now on the output is written over the first input, and the gradients likewise. Whether the
  // op can do that.
  bool RunInPlace() { return in_place_ = op_ != nullptr && op_->can_run_in_place(); }

  const model::Layer& layer() const { return layer_; }
  const LayerPlan& plan() const { return plan_; }
  std::vector<std::vector<float>>& weights() { return weights_; }
  const std::vector<std::vector<float>>& gradients() const { return gradients_; }

  std::vector<float> Forward(const std::vector<float>& x, int batch, bool training) {
    if (op_ == nullptr) return x;
    Bind();
    StepParameters step;
    step.streams = kStreams;
    backend_->SetStep(step);
    inputs_.clear();
    auto from = x.begin();
    for (const Shape& shape : shapes_) {
      const auto end = from + batch * shape.size();
      inputs_.push_back(whole_numbers_ ? Integers({from, end}) : Load(shape, batch, {from, end}));
      from = end;
    }
    output_ = in_place_ ? std::move(inputs_[0]) : Activation(plan_.output, batch);
    std::vector<void*> inputs = Pointers(&inputs_);
    if (in_place_) inputs[0] = output_.data();
    void* const outputs[] = {output_.data()};
    op_->Forward({batch, training}, inputs, outputs);
    return StoreAs(plan_.output, batch, output_);
  }

  // After a Forward.
  std::vector<float> Backward(const std::vector<float>& dy, int batch) {
    if (op_ == nullptr) return dy;
    if (op_->passes_gradient()) {
      std::vector<float> dx;
      for (size_t k = 0; k < shapes_.size(); ++k) dx.insert(dx.end(), dy.begin(), dy.end());
      return dx;
    }
    DeviceArray<std::byte> grad_output = Load(plan_.output, batch, dy);
    std::vector<DeviceArray<std::byte>> grad_inputs;
    for (const Shape& shape : whole_numbers_ ? std::vector<Shape>() : shapes_) {
      grad_inputs.push_back(Activation(shape, batch));
      const auto size = static_cast<size_t>(grad_inputs.back().bytes()) / sizeof(float);
      Write(std::vector<float>(size, 1e6f), &grad_inputs.back());
    }
    // What the op says that it does not read it does not get.
    std::vector<void*> inputs, outputs;
    if (op_->reads_input()) inputs = Pointers(&inputs_);
    if (op_->reads_output()) outputs = {output_.data()};
    const void* const grad_outputs[] = {grad_output.data()};
    // The gradient of the output lies where that of the input is to be.
    if (in_place_) std::swap(grad_inputs[0], grad_output);
    std::vector<void*> wanted = Pointers(&grad_inputs);
    if (whole_numbers_) wanted = {nullptr};
    op_->Backward({batch, true}, {inputs, outputs, grad_outputs, wanted});
    for (size_t t = 0; t < gradients_.size(); ++t) gradients_[t] = Read(device_gradients_[t]);
    std::vector<float> all;  // none with respect to whole numbers
    for (size_t k = 0; k < grad_inputs.size(); ++k) {
      const std::vector<float> dx = StoreAs(shapes_[k], batch, grad_inputs[k]);
      if (backend_->name() == "cpu") {
        EXPECT_EQ(SumOfSizes(Read(grad_inputs[k])), SumOfSizes(dx)) << "padding must hold zeros";
      }
      all.insert(all.end(), dx.begin(), dx.end());
    }
    return all;
  }

 private:
  static std::vector<void*> Pointers(std::vector<DeviceArray<std::byte>>* arrays) {
    std::vector<void*> pointers;
    for (DeviceArray<std::byte>& array : *arrays) pointers.push_back(array.data());
    return pointers;
  }
  void Bind() {
    std::vector<float*> weights;
    std::vector<float*> gradients;
    device_weights_.clear();
    device_gradients_.clear();
    for (size_t t = 0; t < weights_.size(); ++t) {
      device_weights_.push_back(OnDevice(weights_[t]));
      device_gradients_.push_back(OnDevice(gradients_[t]));
      weights.push_back(device_weights_.back().data());
      gradients.push_back(device_gradients_.back().data());
    }
    op_->Bind(weights, gradients);
  }
  template <typename T>
  void Write(const std::vector<float>& from, DeviceArray<T>* to) {
    backend_->Write(from.data(), from.size() * sizeof(float), to->data());
  }
  DeviceArray<float> OnDevice(const std::vector<float>& from) {
    DeviceArray<float> to(*backend_, static_cast<int64_t>(from.size()), "a tensor");
    Write(from, &to);
    return to;
  }
  template <typename T>
  std::vector<float> Read(const DeviceArray<T>& from) {
    std::vector<float> to(static_cast<size_t>(from.bytes()) / sizeof(float));
    const Status read = backend_->Read(from.data(), static_cast<size_t>(from.bytes()), to.data());
    EXPECT_TRUE(read.ok()) << read.message();
    return to;
  }
  DeviceArray<std::byte> Activation(const Shape& shape, int batch) {
    return {*backend_, backend_->ActivationBytes(shape, batch), "an activation"};
  }
  DeviceArray<std::byte> Load(const Shape& shape, int batch, const std::vector<float>& from) {
    DeviceArray<std::byte> to = Activation(shape, batch);
    LoadActivations(*backend_, shape, batch, from.data(), to.data());
    return to;
  }
  DeviceArray<std::byte> Integers(const std::vector<int32_t>& from) {
    const auto bytes = static_cast<int64_t>(from.size() * sizeof(int32_t));
    DeviceArray<std::byte> to(*backend_, bytes, "whole numbers");
    backend_->Write(from.data(), static_cast<size_t>(bytes), to.data());
    return to;
  }
  std::vector<float> StoreAs(const Shape& shape, int batch, const DeviceArray<std::byte>& from) {
    std::vector<float> to(static_cast<size_t>(batch * shape.size()));
    backend_->StoreOutputs(shape, batch, from.data(), to.data());
    return to;
  }

  model::Layer layer_;
  std::vector<Shape> shapes_;
  std::unique_ptr<Backend> backend_;
  LayerPlan plan_;
  std::unique_ptr<Op> op_;
  std::vector<std::vector<float>> weights_;
  std::vector<std::vector<float>> gradients_;
  std::vector<DeviceArray<float>> device_weights_;
  std::vector<DeviceArray<float>> device_gradients_;
  bool in_place_ = false;
  bool whole_numbers_ = false;  // come in
  std::vector<DeviceArray<std::byte>> inputs_;
  DeviceArray<std::byte> output_;
};

}  // namespace kumo
