// The conformance test of the registry: every layer agrees with a plain reference and its gradients
// with differences of its own values, on every instruction-set level of this machine with one
// thread and with three, and on its GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numbers>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/layers/layer.h"
#include "models/losses/loss.h"
#include "tests/models/gpu_under_test.h"
#include "tests/models/layer_cases.h"
#include "tests/models/numbers.h"
#include "tests/models/reference.h"

namespace kumo {
namespace {

constexpr int kMaxBatch = 70;
constexpr int kIndex = 3;
const StepStreams kStreams = {11, 2, 5, 7};

struct Setting {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

// The CPU on every level, and a GPU where there is one; or the simulated GPU alone.
std::vector<Setting> Settings() {
  if (GpuIsSimulated()) {
    return {{"simulated cuda", [] { return MakeCudaBackend({}).value(); }}};
  }
  std::vector<Setting> settings;
  for (const Isa isa : {Isa::kBaseline, Isa::kV3, Isa::kV4}) {
    if (isa > DetectIsa()) continue;
    for (const int threads : {1, 3}) {
      settings.push_back({"level " + std::to_string(static_cast<int>(isa)) + ", " +
                              std::to_string(threads) + " threads",
                          [=] { return MakeCpuBackend(threads, isa); }});
    }
  }
  if (MakeCudaBackend({}).ok()) {
    settings.push_back({"cuda", [] { return MakeCudaBackend({}).value(); }});
  }
  return settings;
}

// Numbers that keep a distance from each other and from zero, in random order: a small step
// changes neither the place of a maximum nor the side of a kink.
std::vector<float> SpacedNumbers(int64_t n, Rng* rng) {
  std::vector<float> numbers(static_cast<size_t>(n));
  const float spacing = 4.0f / static_cast<float>(n);
  for (int64_t i = 0; i < n; ++i) {
    numbers[i] = (static_cast<float>(i - n / 2) + 0.5f) * spacing;
  }
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[rng->NextBelow(i)]);
  return numbers;
}

std::vector<float> RandomNumbers(int64_t n, Rng* rng) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) x = rng->NextUniform(-1, 1);
  return numbers;
}

// The same for a device's array and for its numbers alone, when padding holds zeros. Exact: whole
// multiples of 2^-40, added as integers.
int64_t SumOfSizes(std::span<const float> x) {
  int64_t sum = 0;
  for (const float v : x) sum += std::llround(std::abs(static_cast<double>(v)) * 0x1p40);
  return sum;
}

reference::Numbers Doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// One layer on one backend, seen from outside: samples x channels x height x width; of several
// inputs, one after the other.
class LayerOnDevice {
 public:
  LayerOnDevice(const LayerCase& layer_case, const Setting& setting)
      : shapes_(layer_case.inputs()), backend_(setting.make()) {
    CHECK(google::protobuf::TextFormat::ParseFromString(layer_case.text, &layer_));
    Result<LayerPlan> plan = FindLayerKind(layer_.kind_case())->plan({layer_, shapes_, kIndex});
    CHECK(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
    // What a rewrite does in front of a layer, or in its place.
    if (std::holds_alternative<FullyConnectedSpec>(plan_.spec)) shapes_ = {{shapes_[0].size()}};
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
      inputs_.push_back(Load(shape, batch, {from, end}));
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
    for (const Shape& shape : shapes_) {
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
    const std::vector<void*> wanted = Pointers(&grad_inputs);
    op_->Backward({batch, true}, {inputs, outputs, grad_outputs, wanted});
    for (size_t t = 0; t < gradients_.size(); ++t) gradients_[t] = Read(device_gradients_[t]);
    std::vector<float> all;
    for (size_t k = 0; k < shapes_.size(); ++k) {
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
  std::vector<DeviceArray<std::byte>> inputs_;
  DeviceArray<std::byte> output_;
};

class LayerTest : public testing::TestWithParam<LayerCase> {};

TEST_P(LayerTest, AgreesWithThePlainReference) {
  const LayerCase& layer_case = GetParam();
  for (const Setting& setting : Settings()) {
    LayerOnDevice layer(layer_case, setting);
    Rng rng(2, RngPurpose::kTest);
    // One vector, less than one, more than one tile of vectors, and back.
    for (const int batch : {16, 5, kMaxBatch, 33, 1}) {
      for (const bool training : {true, false}) {
        const std::vector<float> x = SpacedNumbers(batch * layer_case.size(), &rng);
        std::vector<reference::Numbers> parameters;
        for (const auto& tensor : layer.weights()) parameters.push_back(Doubles(tensor));
        const reference::Numbers expected = reference::Forward(
            {layer.layer(), layer_case.inputs(), kIndex, batch, training, kStreams}, Doubles(x),
            parameters);
        const std::vector<float> y = layer.Forward(x, batch, training);
        ASSERT_EQ(y.size(), expected.size());
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 2e-5 * (1 + std::abs(expected[i])))
              << "number " << i << ", batch " << batch << ", " << setting.name;
        }
      }
    }
  }
}

// sum weight_i y_i, whose gradient with respect to y is `weight`.
double Objective(const std::vector<float>& y, const std::vector<float>& weight) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    sum += static_cast<double>(y[i]) * static_cast<double>(weight[i]);
  }
  return sum;
}

// Central differences of the objective with respect to `*at`.
double Difference(LayerOnDevice* layer, const std::vector<float>& x, int batch,
                  const std::vector<float>& weight, float* at) {
  constexpr float kStep = 2e-3f;
  const float before = *at;
  *at = before + kStep;
  const double up = static_cast<double>(*at);
  const double above = Objective(layer->Forward(x, batch, true), weight);
  *at = before - kStep;
  const double down = static_cast<double>(*at);
  const double below = Objective(layer->Forward(x, batch, true), weight);
  *at = before;
  return (above - below) / (up - down);
}

TEST_P(LayerTest, GradientsAreThoseOfItsValues) {
  const LayerCase& layer_case = GetParam();
  constexpr int kBatch = 5;
  for (const Setting& setting : Settings()) {
    LayerOnDevice layer(layer_case, setting);
    Rng rng(3, RngPurpose::kTest);
    std::vector<float> x = SpacedNumbers(kBatch * layer_case.size(), &rng);
    const std::vector<float> y = layer.Forward(x, kBatch, true);
    const std::vector<float> weight = RandomNumbers(static_cast<int64_t>(y.size()), &rng);
    const std::vector<float> dx = layer.Backward(weight, kBatch);
    const auto gradients = layer.gradients();
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = Difference(&layer, x, kBatch, weight, &x[i]);
      ASSERT_NEAR(static_cast<double>(dx[i]), expected, 5e-3 * (1 + std::abs(expected)))
          << "input " << i;
    }
    for (size_t t = 0; t < gradients.size(); ++t) {
      const TensorSpec& spec = layer.plan().parameters[t].tensor;
      if (spec.segment == Segment::kStatistics) {
        EXPECT_THAT(gradients[t], testing::Each(1e6f)) << spec.name << " is no gradient";
        continue;
      }
      for (size_t i = 0; i < gradients[t].size(); ++i) {
        const double expected = Difference(&layer, x, kBatch, weight, &layer.weights()[t][i]);
        ASSERT_NEAR(static_cast<double>(gradients[t][i]), expected, 5e-3 * (1 + std::abs(expected)))
            << spec.name << " " << i;
      }
    }
  }
}

TEST_P(LayerTest, InPlaceItHasTheSameBits) {
  const LayerCase& layer_case = GetParam();
  for (const Setting& setting : Settings()) {
    LayerOnDevice apart(layer_case, setting);
    LayerOnDevice in_place(layer_case, setting);
    if (!in_place.RunInPlace()) continue;
    Rng rng(6, RngPurpose::kTest);
    for (const int batch : {1, 16, 33}) {
      const std::vector<float> x = SpacedNumbers(batch * layer_case.size(), &rng);
      const std::vector<float> y = apart.Forward(x, batch, true);
      EXPECT_EQ(in_place.Forward(x, batch, true), y) << setting.name;
      const std::vector<float> dy = RandomNumbers(static_cast<int64_t>(y.size()), &rng);
      EXPECT_EQ(in_place.Backward(dy, batch), apart.Backward(dy, batch)) << setting.name;
    }
  }
}

double Largest(const std::vector<float>& x) {
  double largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

// Of numbers that have no more bits than the narrow ones.
TEST_P(LayerTest, In16BitsItDiffersByTheirRoundingAlone) {
  if (!MakeCudaBackend({}).ok()) GTEST_SKIP() << MakeCudaBackend({}).status().message();
  const LayerCase& layer_case = GetParam();
  constexpr int kBatch = 6;
  const std::pair<Precision, double> precisions[] = {{Precision::kBf16, 0x1p-9},
                                                     {Precision::kFp16, 0x1p-12}};
  for (const auto& [precision, unit] : precisions) {
    const auto on = [&layer_case](Precision chosen) {
      return LayerOnDevice(layer_case, {"cuda", [chosen] {
                                          return MakeCudaBackend({.precision = chosen}).value();
                                        }});
    };
    LayerOnDevice wide = on(Precision::kFp32);
    LayerOnDevice narrow = on(precision);
    Rng rng(5, RngPurpose::kTest);
    const auto numbers = [&](int64_t n) {
      std::vector<float> x(static_cast<size_t>(n));
      for (float& v : x) v = static_cast<float>(rng.NextBelow(255)) / 64.0f - 127.0f / 64.0f;
      return x;
    };
    const auto expect_near = [unit = unit](const std::vector<float>& found,
                                           const std::vector<float>& expected, const char* what) {
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 6 * unit * std::max(1.0, Largest(expected)))
            << what << ' ' << i << ", rounding " << unit;
      }
    };
    const std::vector<float> x = numbers(kBatch * layer_case.size());
    for (const bool training : {false, true}) {
      expect_near(narrow.Forward(x, kBatch, training), wide.Forward(x, kBatch, training), "output");
    }
    const std::vector<float> dy = numbers(kBatch * wide.plan().output.size());
    expect_near(narrow.Backward(dy, kBatch), wide.Backward(dy, kBatch), "input's gradient");
    for (size_t t = 0; t < wide.gradients().size(); ++t) {
      expect_near(narrow.gradients()[t], wide.gradients()[t], "parameter's gradient");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, LayerTest, testing::ValuesIn(LayerCases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(LayerRegistryTest, EveryEntryHasACase) {
  std::set<int> tried;
  for (const LayerCase& layer_case : LayerCases()) {
    model::Layer layer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(layer_case.text, &layer));
    tried.insert(layer.kind_case());
  }
  for (const LayerKind& kind : LayerKinds()) EXPECT_EQ(tried.count(kind.kind), 1u) << kind.name;
}

TEST(LayerRegistryTest, EveryKindOfTheFormatIsALayerOrALoss) {
  const auto* kinds = model::Layer::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) {
    const auto kind = static_cast<model::Layer::KindCase>(kinds->field(i)->number());
    EXPECT_TRUE((FindLayerKind(kind) != nullptr) != (FindLossKind(kind) != nullptr))
        << kinds->field(i)->name();
  }
}

class ActivationAccuracyTest : public testing::Test {
 protected:
  // The largest error in units of the last place, over x of many sizes.
  double WorstUlps(const char* text, double (*exact)(double)) {
    double worst = 0;
    for (const Setting& setting : Settings()) {
      const Shape shape = {20000};
      LayerOnDevice layer({"", shape, text}, setting);
      std::vector<float> x;
      for (int64_t i = 0; i < shape.size(); ++i) {
        const double size = std::exp(static_cast<double>(i) / 20000.0 * 20 - 16);
        x.push_back(static_cast<float>(i % 2 == 0 ? size : -size));
      }
      const std::vector<float> y = layer.Forward(x, 1, true);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = exact(static_cast<double>(x[i]));
        const auto nearest = std::abs(static_cast<float>(expected));
        const double ulp = static_cast<double>(std::nextafter(nearest, 10.0f) - nearest);
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected) / ulp);
      }
    }
    return worst;
  }
};

TEST_F(ActivationAccuracyTest, TanhIsExactToAFewUlps) {
  EXPECT_LT(WorstUlps(R"(name: "l" tanh {})", [](double x) { return std::tanh(x); }), 4.0);
}

TEST_F(ActivationAccuracyTest, SigmoidIsExactToAFewUlps) {
  EXPECT_LT(WorstUlps(R"(name: "l" sigmoid {})", [](double x) { return 1 / (1 + std::exp(-x)); }),
            4.0);
}

// Far below 0 they lose bits with the exponential, of whose argument one bit more is lost for each
// doubling, but follow it down to where float32 has hardly anything left.
TEST_F(ActivationAccuracyTest, GeluAndSiluAreExactInRelationToTheirValue) {
  struct Function {
    const char* text;
    double (*exact)(double);
  };
  const Function functions[] = {
      {R"(name: "l" gelu {})", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
      {R"(name: "l" gelu { approximate: TANH })",
       [](double x) {
         return x /
                (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
       }},
      {R"(name: "l" silu {})", [](double x) { return x / (1 + std::exp(-x)); }}};
  for (const Function& function : functions) {
    for (const Setting& setting : Settings()) {
      std::vector<float> x;
      for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) / 200.0f);
      for (const float size : {1e-30f, 1e-6f, 70.0f, 300.0f, 1e10f, 1e25f}) {
        x.push_back(size);
        x.push_back(-size);
      }
      LayerOnDevice layer({"", {static_cast<int64_t>(x.size())}, function.text}, setting);
      const std::vector<float> y = layer.Forward(x, 1, true);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = function.exact(static_cast<double>(x[i]));
        ASSERT_NEAR(static_cast<double>(y[i]), expected, 3e-5 * std::abs(expected) + 1e-32)
            << function.text << " of " << x[i] << ", " << setting.name;
        if (std::abs(x[i]) < 1) {
          ASSERT_NEAR(static_cast<double>(y[i]), expected, 5e-7 * std::abs(expected))
              << function.text << " of " << x[i] << ", " << setting.name;
        }
      }
      // Straight lines on both sides: nothing overflows on the way to them.
      const std::vector<float> slope = layer.Backward(std::vector<float>(x.size(), 1.0f), 1);
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::abs(x[i]) < 25) continue;
        EXPECT_NEAR(slope[i], x[i] < 0 ? 0 : 1, 1e-8) << function.text << " at " << x[i];
      }
    }
  }
}

TEST_F(ActivationAccuracyTest, ActivationsKeepNotANumber) {
  for (const char* text :
       {R"(name: "l" tanh {})", R"(name: "l" sigmoid {})", R"(name: "l" relu {})",
        R"(name: "l" leaky_relu {})", R"(name: "l" gelu {})",
        R"(name: "l" gelu { approximate: TANH })", R"(name: "l" silu {})"}) {
    for (const Setting& setting : Settings()) {
      LayerOnDevice layer({"", {1}, text}, setting);
      EXPECT_TRUE(std::isnan(layer.Forward({std::nanf("")}, 1, true)[0])) << text;
    }
  }
}

// Every entry of the list with its defaults, on random scores: the slope is measured.
TEST(LossRegistryTest, EveryLossHasTheGradientOfItsMean) {
  constexpr int kBatch = 19;
  constexpr int kClasses = 7;
  constexpr float kStep = 1e-2f;
  for (const LossKind& kind : LossKinds()) {
    model::Layer layer;
    const auto* field = model::Layer::descriptor()->FindFieldByNumber(kind.kind);
    model::Layer::GetReflection()->MutableMessage(&layer, field);
    const auto backend = MakeCpuBackend(1);
    const Result<LossPlan> plan = kind.plan(layer, {kClasses});
    ASSERT_TRUE(plan.ok()) << kind.name << ": " << plan.status().message();
    EXPECT_EQ(plan->classes, kClasses) << kind.name;
    const auto loss = backend->MakeLoss(plan->spec, kBatch).value();
    Rng rng(7, RngPurpose::kTest);
    std::vector<int32_t> labels;
    for (int n = 0; n < kBatch; ++n) {
      labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
    }
    DeviceArray<int32_t> device_labels(*backend, kBatch, "labels");
    backend->Write(labels.data(), labels.size() * sizeof(int32_t), device_labels.data());
    const int64_t size = backend->ActivationBytes({kClasses}, kBatch) / int64_t{sizeof(float)};
    DeviceArray<float> device(*backend, size, "scores");
    const auto mean_of = [&](const std::vector<float>& scores, float* gradient) {
      DeviceArray<StepResult> sums(*backend, 1, "sums");
      LoadActivations(*backend, {kClasses}, kBatch, scores.data(), device.data());
      loss->Run(kBatch, device.data(), device_labels.data(), gradient, sums.data());
      StepResult result;
      EXPECT_TRUE(backend->Read(sums.data(), sizeof(result), &result).ok());
      return result.loss_sum / kBatch;
    };
    const std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
    DeviceArray<float> gradient(*backend, size, "their gradients");
    (void)mean_of(scores, gradient.data());
    std::vector<float> found(scores.size());
    backend->StoreOutputs({kClasses}, kBatch, gradient.data(), found.data());
    for (size_t i = 0; i < scores.size(); ++i) {
      std::vector<float> above = scores;
      std::vector<float> below = scores;
      above[i] += kStep;
      below[i] -= kStep;
      const double slope = (mean_of(above, nullptr) - mean_of(below, nullptr)) /
                           (static_cast<double>(above[i]) - static_cast<double>(below[i]));
      ASSERT_NEAR(static_cast<double>(found[i]), slope, 2e-4) << kind.name << ", score " << i;
    }
  }
}

TEST(SoftmaxCrossEntropyTest, LossAndGradientAgreeWithThePlainReference) {
  constexpr int kBatch = 19;
  constexpr int kClasses = 7;
  const auto backend = MakeCpuBackend(1);
  const auto loss = backend->MakeLoss(SoftmaxCrossEntropySpec{{kClasses}}, kBatch).value();
  Rng rng(4, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  scores[3] = 200.0f;  // must not overflow
  scores[10] = -300.0f;
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch; ++n) labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  const int64_t size = backend->ActivationBytes({kClasses}, kBatch) / int64_t{sizeof(float)};
  DeviceArray<float> device(*backend, size, "scores");
  DeviceArray<float> gradient(*backend, size, "their gradients");
  const std::vector<float> wrong(static_cast<size_t>(size), 1e6f);
  backend->Write(wrong.data(), wrong.size() * sizeof(float), gradient.data());
  DeviceArray<int32_t> device_labels(*backend, kBatch, "labels");
  backend->Write(labels.data(), labels.size() * sizeof(int32_t), device_labels.data());
  DeviceArray<StepResult> sums(*backend, 1, "sums");
  LoadActivations(*backend, {kClasses}, kBatch, scores.data(), device.data());
  loss->Run(kBatch, device.data(), device_labels.data(), gradient.data(), sums.data());
  StepResult result;
  ASSERT_TRUE(backend->Read(sums.data(), sizeof(result), &result).ok());
  std::vector<float> found(scores.size());
  backend->StoreOutputs({kClasses}, kBatch, gradient.data(), found.data());
  std::vector<float> all(static_cast<size_t>(size));
  ASSERT_TRUE(backend->Read(gradient.data(), all.size() * sizeof(float), all.data()).ok());
  EXPECT_EQ(SumOfSizes(all), SumOfSizes(found)) << "padding must hold zeros";

  double loss_sum = 0;
  int64_t correct = 0;
  for (int n = 0; n < kBatch; ++n) {
    const float* s = scores.data() + n * kClasses;
    const float top = *std::max_element(s, s + kClasses);
    double sum = 0;
    for (int c = 0; c < kClasses; ++c) sum += std::exp(static_cast<double>(s[c] - top));
    loss_sum += std::log(sum) - static_cast<double>(s[labels[n]] - top);
    correct += s[labels[n]] == top ? 1 : 0;
    for (int c = 0; c < kClasses; ++c) {
      const double softmax = std::exp(static_cast<double>(s[c] - top)) / sum;
      EXPECT_NEAR(static_cast<double>(found[n * kClasses + c]),
                  (softmax - (c == labels[n] ? 1 : 0)) / kBatch, 1e-7);
    }
  }
  EXPECT_NEAR(result.loss_sum, loss_sum, 1e-4);
  EXPECT_EQ(result.correct, correct);
}

// A minibatch's losses and their gradients by one backend; or in double, by the definition.
struct LossOfBatch {
  double sum = 0;
  int64_t correct = 0;
  std::vector<double> gradient;  // of the mean
};

LossOfBatch LossOnDevice(const Setting& setting, const LossSpec& spec, int classes,
                         const std::vector<float>& scores, const std::vector<int32_t>& labels) {
  const auto batch = static_cast<int>(labels.size());
  const auto backend = setting.make();
  const auto loss = backend->MakeLoss(spec, kMaxBatch).value();
  const int64_t bytes = backend->ActivationBytes({classes}, batch);
  DeviceArray<std::byte> device(*backend, bytes, "scores");
  DeviceArray<std::byte> gradient(*backend, bytes, "their gradients");
  DeviceArray<int32_t> device_labels(*backend, batch, "labels");
  DeviceArray<StepResult> sums(*backend, 1, "sums");
  backend->SetStep({});
  backend->Write(labels.data(), labels.size() * sizeof(int32_t), device_labels.data());
  LoadActivations(*backend, {classes}, batch, scores.data(), device.data());
  loss->Run(batch, device.data(), device_labels.data(), gradient.data(), sums.data());
  StepResult result;
  EXPECT_TRUE(backend->Read(sums.data(), sizeof(result), &result).ok());
  std::vector<float> found(scores.size());
  backend->StoreOutputs({classes}, batch, gradient.data(), found.data());
  return {result.loss_sum, result.correct, {found.begin(), found.end()}};
}

LossOfBatch LossByDefinition(double smoothing, int classes, const std::vector<float>& scores,
                             const std::vector<int32_t>& labels) {
  LossOfBatch result;
  for (size_t n = 0; n < labels.size(); ++n) {
    const float* s = scores.data() + static_cast<int64_t>(n) * classes;
    const auto top = static_cast<double>(*std::max_element(s, s + classes));
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(s[c]) - top);
    for (int c = 0; c < classes; ++c) {
      const double log_softmax = static_cast<double>(s[c]) - top - std::log(sum);
      const double wanted = smoothing / classes + (c == labels[n] ? 1 - smoothing : 0);
      result.sum -= wanted * log_softmax;
      result.gradient.push_back((std::exp(log_softmax) - wanted) /
                                static_cast<double>(labels.size()));
    }
    result.correct += static_cast<double>(s[labels[n]]) == top ? 1 : 0;
  }
  return result;
}

TEST(SoftmaxCrossEntropyTest, SmoothedLabelsHaveTheLossAndGradientOfTheDefinition) {
  Rng rng(8, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const float smoothing : {0.0f, 0.1f, 0.75f}) {
      for (const auto& [batch, classes] : {std::pair(1, 2), {1, 7}, {19, 7}, {33, 65}}) {
        std::vector<float> scores = RandomNumbers(int64_t{batch} * classes, &rng);
        scores[1] = 50.0f;  // must not overflow
        std::vector<int32_t> labels;
        for (int n = 0; n < batch; ++n) {
          labels.push_back(static_cast<int32_t>(rng.NextBelow(classes)));
        }
        const LossOfBatch found = LossOnDevice(
            setting, SoftmaxCrossEntropySpec{{classes}, smoothing}, classes, scores, labels);
        const LossOfBatch expected =
            LossByDefinition(static_cast<double>(smoothing), classes, scores, labels);
        EXPECT_NEAR(found.sum, expected.sum, 1e-5 * (1 + expected.sum)) << setting.name;
        EXPECT_EQ(found.correct, expected.correct) << setting.name;
        ASSERT_EQ(found.gradient.size(), expected.gradient.size());
        for (size_t i = 0; i < expected.gradient.size(); ++i) {
          ASSERT_NEAR(found.gradient[i], expected.gradient[i], 2e-7)
              << "score " << i << ", smoothing " << smoothing << ", " << setting.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kumo
