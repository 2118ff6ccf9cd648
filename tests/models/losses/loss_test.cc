// Losses and their gradients, beside their definitions and the slope that is measured.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/losses/loss.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

constexpr int kSums = 2;  // of softmax_cross_entropy

// Runs a loss of one input and one target.
void RunLoss(LossOp& loss, int batch, const void* scores, const void* labels, void* gradient,
             double* sums) {
  const TargetArray target = {labels};
  loss.Run(batch, {{&scores, 1}, {&target, 1}, {&gradient, 1}}, sums);
}

// Labels of a loss, as the host has them. A list has between 0 and kRoom entries in a sample;
// numbers of a list are boxes.
struct Labels {
  static constexpr int64_t kRoom = 3;

  Labels(const Target& label, int batch, Rng* rng) {
    room = label.list ? kRoom : 1;
    for (int n = 0; label.list && n < batch; ++n) {
      counts.push_back(static_cast<int32_t>((n + 1) % (kRoom + 1)));
    }
    for (int64_t entry = 0; entry < batch * room; ++entry) {
      for (int64_t i = 0; i < Shape(label.extents).size(); ++i) {
        if (label.classes > 0) {
          whole.push_back(static_cast<int32_t>(rng->NextBelow(label.classes)));
        } else if (label.list && i >= 2) {
          any.push_back(any[any.size() - 2] + rng->NextUniform(4, 20));
        } else {
          any.push_back(label.list ? rng->NextUniform(0, 24) : rng->NextUniform(-2, 2));
        }
      }
    }
  }
  std::span<const std::byte> bytes() const {
    return whole.empty() ? std::as_bytes(std::span(any)) : std::as_bytes(std::span(whole));
  }

  int64_t room = 1;
  std::vector<int32_t> counts;
  std::vector<int32_t> whole;
  std::vector<float> any;
};

struct LossCase {
  model::Layer layer;
  std::vector<Shape> inputs;
};

// With the defaults of its settings, if they are one network's.
LossCase CaseOf(const LossKind& kind) {
  LossCase made = {{}, {{7, 2, 3}}};
  const auto* field = model::Layer::descriptor()->FindFieldByNumber(kind.kind);
  auto* const settings = model::Layer::GetReflection()->MutableMessage(&made.layer, field);
  if (kind.kind == model::Layer::kMultibox) {
    // So many negatives are all there are: a choice of them has no slope.
    CHECK(google::protobuf::TextFormat::ParseFromString(
        R"(classes: 2 negatives: 1000
           maps { step: 8 size: 6 next_size: 9 ratios: 2 }
           maps { step: 12 size: 12 next_size: 20 })",
        settings));
    made.inputs = {{16, 3, 3}, {8, 2, 2}, {12, 3, 3}, {6, 2, 2}};
  }
  return made;
}

// A loss on a device, with its targets.
class LossUnderTest {
 public:
  LossUnderTest(Backend* backend, const LossCase& of, const LossPlan& plan, int batch)
      : backend_(*backend), shapes_(of.inputs), metrics_(plan.metrics), batch_(batch) {
    Rng rng(7, RngPurpose::kTest);
    loss_ = backend_.MakeLoss(plan.spec, batch).value();
    for (const Target& target : plan.targets) {
      labels_.emplace_back(target, batch, &rng);
      const Labels& labels = labels_.back();
      values_.emplace_back(backend_, std::ssize(labels.bytes()), "labels");
      counts_.emplace_back(backend_, std::ssize(labels.counts), "their counts");
      backend_.Write(labels.bytes().data(), labels.bytes().size(), values_.back().data());
      backend_.Write(labels.counts.data(), labels.counts.size() * sizeof(int32_t),
                     counts_.back().data());
      targets_.push_back({values_.back().data(), counts_.back().data(), labels.room});
    }
    for (const Shape& shape : shapes_) {
      const int64_t bytes = backend_.ActivationBytes(shape, batch);
      device_.emplace_back(backend_, bytes, "inputs");
      gradients_.emplace_back(backend_, bytes, "their gradients");
    }
  }

  // All inputs, one after the other.
  int64_t numbers() const {
    int64_t numbers = 0;
    for (const Shape& shape : shapes_) numbers += batch_ * shape.size();
    return numbers;
  }
  // Of the minibatch, as the metric `loss` has it.
  double Mean(const std::vector<float>& inputs, bool backward = false) {
    std::vector<const void*> arrays;
    std::vector<void*> gradients;
    const float* from = inputs.data();
    for (size_t i = 0; i < shapes_.size(); ++i) {
      LoadActivations(backend_, shapes_[i], batch_, from, device_[i].data());
      from += batch_ * shapes_[i].size();
      arrays.push_back(device_[i].data());
      if (backward) gradients.push_back(gradients_[i].data());
    }
    DeviceArray<double> sums(backend_, metrics_.sums(), "sums");
    backend_.SetStep({});
    loss_->Run(batch_, {arrays, targets_, gradients}, sums.data());
    MetricSums found = {batch_, std::vector<double>(static_cast<size_t>(metrics_.sums()))};
    EXPECT_TRUE(
        backend_.Read(sums.data(), found.sums.size() * sizeof(double), found.sums.data()).ok());
    return *MetricList::FigureOf(metrics_.metrics()[0], found);
  }
  std::vector<float> Gradient(const std::vector<float>& inputs) {
    (void)Mean(inputs, true);
    std::vector<float> found(inputs.size());
    float* to = found.data();
    for (size_t i = 0; i < shapes_.size(); ++i) {
      backend_.StoreOutputs(shapes_[i], batch_, gradients_[i].data(), to);
      to += batch_ * shapes_[i].size();
    }
    return found;
  }

 private:
  Backend& backend_;
  const std::vector<Shape> shapes_;
  const MetricList metrics_;
  const int batch_;
  std::unique_ptr<LossOp> loss_;
  std::vector<Labels> labels_;
  std::vector<DeviceArray<std::byte>> values_;
  std::vector<DeviceArray<int32_t>> counts_;
  std::vector<TargetArray> targets_;
  std::vector<DeviceArray<std::byte>> device_;
  std::vector<DeviceArray<std::byte>> gradients_;
};

// Every entry of the list on random inputs: the slope is measured; and the gradient goes by the
// weight, the sums do not.
TEST(LossRegistryTest, EveryLossHasTheGradientOfItsMeanTimesItsWeight) {
  constexpr int kBatch = 19;
  constexpr float kStep = 1e-2f;
  for (const LossKind& kind : LossKinds()) {
    const LossCase of = CaseOf(kind);
    const auto backend = MakeCpuBackend(1);
    Result<LossPlan> plan = kind.plan(of.layer, of.inputs);
    ASSERT_TRUE(plan.ok()) << kind.name << ": " << plan.status().message();
    LossUnderTest loss(backend.get(), of, *plan, kBatch);
    std::visit([](auto& spec) { spec.weight = 0.5f; }, plan->spec);
    LossUnderTest half(backend.get(), of, *plan, kBatch);
    Rng rng(8, RngPurpose::kTest);
    const std::vector<float> inputs = RandomNumbers(loss.numbers(), &rng);
    const std::vector<float> found = loss.Gradient(inputs);
    const std::vector<float> halved = half.Gradient(inputs);
    EXPECT_EQ(loss.Mean(inputs), half.Mean(inputs)) << kind.name;
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_NEAR(halved[i], found[i] / 2, 1e-8f) << kind.name;
      std::vector<float> above = inputs;
      std::vector<float> below = inputs;
      above[i] += kStep;
      below[i] -= kStep;
      const double slope = (loss.Mean(above) - loss.Mean(below)) /
                           (static_cast<double>(above[i]) - static_cast<double>(below[i]));
      ASSERT_NEAR(static_cast<double>(found[i]), slope, 1e-4) << kind.name << ", input " << i;
    }
  }
}

// Every entry of the list on every backend, beside the CPU.
TEST(LossRegistryTest, EveryBackendHasTheLossAndGradientOfTheCpu) {
  for (const LossKind& kind : LossKinds()) {
    const LossCase of = CaseOf(kind);
    const LossPlan plan = kind.plan(of.layer, of.inputs).value();
    for (const int batch : {1, 19}) {
      const auto cpu = MakeCpuBackend(1);
      LossUnderTest reference(cpu.get(), of, plan, batch);
      Rng rng(9, RngPurpose::kTest);
      const std::vector<float> inputs = RandomNumbers(reference.numbers(), &rng);
      const double mean = reference.Mean(inputs);
      const std::vector<float> gradient = reference.Gradient(inputs);
      for (const Setting& setting : Settings()) {
        const auto backend = setting.make();
        LossUnderTest loss(backend.get(), of, plan, batch);
        EXPECT_NEAR(loss.Mean(inputs), mean, 1e-5 * (1 + mean))
            << setting.name << ", " << kind.name;
        const std::vector<float> found = loss.Gradient(inputs);
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_NEAR(found[i], gradient[i], 1e-6f)
              << setting.name << ", " << kind.name << ", input " << i;
        }
      }
    }
  }
}

// By every backend beside the definition in double, in every shape and order of numbers.
TEST(DifferenceLossTest, LossAndGradientAreThoseOfTheDefinition) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  Rng rng(3, RngPurpose::kTest);
  for (const Setting& setting : Settings()) {
    for (const auto& [factor, delta] : {std::pair(2.0f, kNever), {1.0f, 1.0f}, {1.0f, 0.25f}}) {
      for (const auto& [batch, shape] :
           {std::pair(1, Shape{1}), {19, Shape{7}}, {33, Shape{3, 2, 5}}, {6, Shape{4, 9}}}) {
        const DifferenceLossSpec spec = {shape, factor, delta, 0.75f};
        const auto backend = setting.make();
        const auto loss = backend->MakeLoss(spec, kMaxBatch).value();
        const std::vector<float> scores = RandomNumbers(batch * shape.size(), &rng);
        const Labels labels({.extents = shape.extents()}, batch, &rng);
        const int64_t bytes = backend->ActivationBytes(shape, batch);
        DeviceArray<std::byte> device(*backend, bytes, "scores");
        DeviceArray<std::byte> gradient(*backend, bytes, "their gradients");
        DeviceArray<float> device_labels(*backend, std::ssize(labels.any), "labels");
        DeviceArray<double> sums(*backend, DifferenceLossSpec::sums(), "sums");
        backend->SetStep({});
        backend->Write(labels.any.data(), labels.bytes().size(), device_labels.data());
        LoadActivations(*backend, shape, batch, scores.data(), device.data());
        RunLoss(*loss, batch, device.data(), device_labels.data(), gradient.data(), sums.data());
        double found[2];
        ASSERT_TRUE(backend->Read(sums.data(), sizeof found, found).ok());
        std::vector<float> gradients(scores.size());
        backend->StoreOutputs(shape, batch, gradient.data(), gradients.data());
        const auto numbers = static_cast<double>(shape.size());
        double expected = 0, absolute = 0;
        for (size_t i = 0; i < scores.size(); ++i) {
          const double d = static_cast<double>(scores[i]) - static_cast<double>(labels.any[i]);
          const auto held = static_cast<double>(delta);
          const bool near = std::abs(d) < held;
          expected += static_cast<double>(factor) *
                      (near ? d * d / 2 : held * (std::abs(d) - held / 2)) / numbers;
          absolute += std::abs(d) / numbers;
          const double slope =
              0.75 * static_cast<double>(factor) * std::clamp(d, -held, held) / (numbers * batch);
          ASSERT_NEAR(static_cast<double>(gradients[i]), slope, 1e-6) << setting.name;
        }
        EXPECT_NEAR(found[0], expected, 1e-5 * (1 + expected)) << setting.name;
        EXPECT_NEAR(found[1], absolute, 1e-5 * (1 + absolute)) << setting.name;
      }
    }
  }
}

TEST(DifferenceLossTest, WhatIsNoNumberIsNoneInLossAndGradient) {
  for (const Setting& setting : Settings()) {
    const auto backend = setting.make();
    const auto loss = backend->MakeLoss(DifferenceLossSpec{{1}, 1, 1}, 1).value();
    const float score = std::numeric_limits<float>::quiet_NaN(), label = 0;
    DeviceArray<std::byte> device(*backend, backend->ActivationBytes({1}, 1), "scores");
    DeviceArray<std::byte> gradient(*backend, backend->ActivationBytes({1}, 1), "gradients");
    DeviceArray<float> device_label(*backend, 1, "labels");
    DeviceArray<double> sums(*backend, 2, "sums");
    backend->SetStep({});
    backend->Write(&label, sizeof label, device_label.data());
    LoadActivations(*backend, {1}, 1, &score, device.data());
    RunLoss(*loss, 1, device.data(), device_label.data(), gradient.data(), sums.data());
    double found = 0;
    float slope = 0;
    ASSERT_TRUE(backend->Read(sums.data(), sizeof found, &found).ok());
    backend->StoreOutputs({1}, 1, gradient.data(), &slope);
    EXPECT_TRUE(std::isnan(found) && std::isnan(slope)) << setting.name;
  }
}

TEST(DifferenceLossTest, DeltaIsAPositiveNumber) {
  const std::vector<Shape> kThree = {Shape{3}};
  model::Layer layer;
  EXPECT_EQ(
      std::get<DifferenceLossSpec>(FindLossKind(model::Layer::kHuber)->plan(layer, kThree)->spec)
          .delta,
      1);
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    layer.mutable_huber()->set_delta(bad);
    EXPECT_NE(FindLossKind(model::Layer::kHuber)
                  ->plan(layer, kThree)
                  .status()
                  .message()
                  .find("delta must be"),
              std::string::npos);
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
  DeviceArray<double> sums(*backend, kSums, "sums");
  LoadActivations(*backend, {kClasses}, kBatch, scores.data(), device.data());
  RunLoss(*loss, kBatch, device.data(), device_labels.data(), gradient.data(), sums.data());
  std::array<double, kSums> result = {};
  ASSERT_TRUE(backend->Read(sums.data(), sizeof(result), result.data()).ok());
  std::vector<float> found(scores.size());
  backend->StoreOutputs({kClasses}, kBatch, gradient.data(), found.data());
  std::vector<float> all(static_cast<size_t>(size));
  ASSERT_TRUE(backend->Read(gradient.data(), all.size() * sizeof(float), all.data()).ok());
  EXPECT_EQ(SumOfSizes(all), SumOfSizes(found)) << "padding must hold zeros";

  double loss_sum = 0;
  double correct = 0;
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
  EXPECT_NEAR(result[0], loss_sum, 1e-4);
  EXPECT_EQ(result[1], correct);
}

// A minibatch's losses and their gradients by one backend; or in double, by the definition.
struct LossOfBatch {
  double sum = 0;
  double correct = 0;
  std::vector<double> gradient;  // of the mean
};

// labels: numbers of classes, or shares.
template <typename Number>
std::vector<double> SumsOnDevice(const Setting& setting, const SoftmaxCrossEntropySpec& spec,
                                 int batch, const std::vector<float>& scores,
                                 const std::vector<Number>& labels,
                                 std::vector<float>* gradient_found = nullptr) {
  const auto backend = setting.make();
  const auto loss = backend->MakeLoss(spec, kMaxBatch).value();
  const int64_t bytes = backend->ActivationBytes(spec.scores, batch);
  DeviceArray<std::byte> device(*backend, bytes, "scores");
  DeviceArray<std::byte> gradient(*backend, bytes, "their gradients");
  DeviceArray<Number> device_labels(*backend, std::ssize(labels), "labels");
  DeviceArray<double> sums(*backend, spec.sums(), "sums");
  backend->SetStep({});
  backend->Write(labels.data(), labels.size() * sizeof(Number), device_labels.data());
  LoadActivations(*backend, spec.scores, batch, scores.data(), device.data());
  RunLoss(*loss, batch, device.data(), device_labels.data(), gradient.data(), sums.data());
  std::vector<double> result(static_cast<size_t>(spec.sums()));
  EXPECT_TRUE(backend->Read(sums.data(), result.size() * sizeof(double), result.data()).ok());
  if (gradient_found != nullptr) {
    gradient_found->resize(scores.size());
    backend->StoreOutputs(spec.scores, batch, gradient.data(), gradient_found->data());
  }
  return result;
}

LossOfBatch LossOnDevice(const Setting& setting, const SoftmaxCrossEntropySpec& spec, int batch,
                         const std::vector<float>& scores, const std::vector<int32_t>& labels) {
  std::vector<float> gradient;
  const std::vector<double> sums = SumsOnDevice(setting, spec, batch, scores, labels, &gradient);
  return {sums[0], sums[1], {gradient.begin(), gradient.end()}};
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

// Cross-entropy is linear in the label: with shares of classes it is the mean of what these have as
// labels, weighed, and so is its gradient.
TEST(SoftmaxCrossEntropyTest, SharesOfClassesAreWeightsOfTheirLosses) {
  constexpr int kBatch = 5, kClasses = 37, kLength = 3;
  const Shape shape = {kClasses, kLength};
  Rng rng(12, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  std::vector<int32_t> first, second;
  std::vector<float> shares(scores.size());
  for (int i = 0; i < kBatch * kLength; ++i) {
    first.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
    second.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
    const auto at = [&](int32_t c) {
      return (int64_t{i / kLength} * kClasses + c) * kLength + i % kLength;
    };
    shares[at(first.back())] += 0.625f;
    shares[at(second.back())] += 0.375f;
  }
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {shape, 0.1f, {2}};
    std::vector<float> of_first, of_second, found;
    const auto sums_of_first = SumsOnDevice(setting, spec, kBatch, scores, first, &of_first);
    const auto sums_of_second = SumsOnDevice(setting, spec, kBatch, scores, second, &of_second);
    spec.shares = true;
    const auto sums = SumsOnDevice(setting, spec, kBatch, scores, shares, &found);
    EXPECT_NEAR(sums[0], 0.625 * sums_of_first[0] + 0.375 * sums_of_second[0], 1e-4)
        << setting.name;
    EXPECT_EQ(sums[1], sums_of_first[1]) << "the larger share is the label";
    EXPECT_EQ(sums[2], sums_of_first[2]);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], 0.625f * of_first[i] + 0.375f * of_second[i], 1e-7f) << setting.name;
    }
  }
}

// Weights that are powers of 2 scale without rounding.
TEST(SoftmaxCrossEntropyTest, TheWeightOfALabelsClassScalesItsLossAndGradient) {
  constexpr int kBatch = 6, kClasses = 37, kLength = 3;
  const Shape shape = {kClasses, kLength};
  Rng rng(14, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
  std::vector<int32_t> labels;
  for (int i = 0; i < kBatch * kLength; ++i) {
    labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  }
  std::vector<float> weights;
  for (int c = 0; c < kClasses; ++c) weights.push_back(std::array{0.0f, 0.5f, 1.0f, 4.0f}[c % 4]);
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {shape, 0.1f, {2}};
    std::vector<float> plain, ones, found;
    const auto sums_of_plain = SumsOnDevice(setting, spec, kBatch, scores, labels, &plain);
    spec.class_weights.assign(kClasses, 1.0f);
    EXPECT_EQ(SumsOnDevice(setting, spec, kBatch, scores, labels, &ones), sums_of_plain)
        << setting.name << ": weights of 1 change no bit";
    EXPECT_EQ(ones, plain) << setting.name;
    spec.class_weights = weights;
    const auto sums = SumsOnDevice(setting, spec, kBatch, scores, labels, &found);
    EXPECT_EQ(sums[1], sums_of_plain[1]) << "metrics are not weighted";
    EXPECT_EQ(sums[2], sums_of_plain[2]);
    double expected = 0;
    for (int n = 0; n < kBatch; ++n) {
      for (int p = 0; p < kLength; ++p) {
        const int32_t label = labels[n * kLength + p];
        std::vector<float> score(kClasses);
        for (int c = 0; c < kClasses; ++c) {
          const int64_t at = (int64_t{n} * kClasses + c) * kLength + p;
          score[c] = scores[at];
          ASSERT_EQ(found[at], weights[label] * plain[at]) << setting.name;
        }
        const SoftmaxCrossEntropySpec alone = {{kClasses}, 0.1f};
        expected += static_cast<double>(weights[label]) *
                    LossOnDevice(setting, alone, 1, score, {label}).sum / kLength;
      }
    }
    EXPECT_NEAR(sums[0], expected, 1e-6) << setting.name;
  }
}

TEST(SoftmaxCrossEntropyTest, ASampleOfWeightTwoCountsAsTwoSamples) {
  constexpr int kClasses = 3;
  Rng rng(15, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(2 * kClasses, &rng);
  std::vector<int32_t> labels = {0, 1};
  for (const Setting& setting : Settings()) {
    SoftmaxCrossEntropySpec spec = {{kClasses}};
    spec.class_weights = {1, 2, 1};
    const LossOfBatch found = LossOnDevice(setting, spec, 2, scores, labels);
    std::vector<float> repeated = scores;
    repeated.insert(repeated.end(), scores.begin() + kClasses, scores.end());
    const LossOfBatch expected =
        LossOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}}, 3, repeated, {0, 1, 1});
    EXPECT_DOUBLE_EQ(found.sum, expected.sum) << setting.name;
    for (int c = 0; c < kClasses; ++c) {
      // Means over 2 and over 3 samples.
      EXPECT_NEAR(2 * found.gradient[c], 3 * expected.gradient[c], 1e-6);
      EXPECT_NEAR(2 * found.gradient[kClasses + c],
                  3 * (expected.gradient[kClasses + c] + expected.gradient[2 * kClasses + c]),
                  1e-6);
    }
  }
}

TEST(SoftmaxCrossEntropyTest, SharesWeighAsMuchAsTheirClassesDoOnAverage) {
  constexpr int kBatch = 5, kClasses = 37;
  Rng rng(16, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  std::vector<float> shares(scores.size());
  SoftmaxCrossEntropySpec spec = {{kClasses}, 0.1f};
  spec.shares = true;
  std::vector<float> weights;
  for (int c = 0; c < kClasses; ++c) weights.push_back(rng.NextUniform(0, 3));
  std::vector<float> of_samples;
  for (int n = 0; n < kBatch; ++n) {
    const auto first = static_cast<int64_t>(rng.NextBelow(kClasses));
    const auto second = (first + 1 + static_cast<int64_t>(rng.NextBelow(kClasses - 1))) % kClasses;
    shares[n * kClasses + first] = 0.625f;
    shares[n * kClasses + second] = 0.375f;
    of_samples.push_back(0.625f * weights[first] + 0.375f * weights[second]);
  }
  for (const Setting& setting : Settings()) {
    std::vector<float> plain, found;
    spec.class_weights = {};
    (void)SumsOnDevice(setting, spec, kBatch, scores, shares, &plain);
    spec.class_weights = weights;
    const auto sums = SumsOnDevice(setting, spec, kBatch, scores, shares, &found);
    double expected = 0;
    spec.class_weights = {};
    for (int n = 0; n < kBatch; ++n) {
      const auto part = [&](const std::vector<float>& of) {
        return std::vector<float>(of.begin() + n * kClasses, of.begin() + (n + 1) * kClasses);
      };
      expected += static_cast<double>(of_samples[n]) *
                  SumsOnDevice(setting, spec, 1, part(scores), part(shares))[0];
      for (int c = n * kClasses; c < (n + 1) * kClasses; ++c) {
        ASSERT_NEAR(found[c], of_samples[n] * plain[c], 1e-7f) << setting.name;
      }
    }
    EXPECT_NEAR(sums[0], expected, 1e-5) << setting.name;
  }
}

// The slope is measured.
TEST(SoftmaxCrossEntropyTest, TheGradientOfAWeightedLossIsItsSlope) {
  constexpr int kBatch = 4, kClasses = 5;
  constexpr float kStep = 1e-2f;
  Rng rng(17, RngPurpose::kTest);
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  const std::vector<int32_t> labels = {3, 0, 4, 0};
  SoftmaxCrossEntropySpec spec = {{kClasses}, 0.2f};
  spec.class_weights = {0.3f, 1, 7, 2.5f, 0};
  const Setting setting = Settings().front();
  const LossOfBatch found = LossOnDevice(setting, spec, kBatch, scores, labels);
  for (size_t i = 0; i < scores.size(); ++i) {
    std::vector<float> above = scores, below = scores;
    above[i] += kStep;
    below[i] -= kStep;
    const double slope = (LossOnDevice(setting, spec, kBatch, above, labels).sum -
                          LossOnDevice(setting, spec, kBatch, below, labels).sum) /
                         kBatch / (static_cast<double>(above[i]) - static_cast<double>(below[i]));
    ASSERT_NEAR(found.gradient[i], slope, 1e-4) << "score " << i;
  }
}

// The loss of a sequence is the mean of what its positions would have as samples.
TEST(SoftmaxCrossEntropyTest, OverPositionsItIsTheMeanOfTheirs) {
  constexpr int kBatch = 6, kClasses = 11, kLength = 7;
  Rng rng(9, RngPurpose::kTest);
  // Samples x classes x positions, and the same with a sample for each position.
  const std::vector<float> scores = RandomNumbers(kBatch * kClasses * kLength, &rng);
  std::vector<float> apart(scores.size());
  const auto place = [](int64_t i) {
    const int64_t sample = i / (kClasses * kLength);
    return (sample * kLength + i % kLength) * kClasses + i / kLength % kClasses;
  };
  for (int64_t i = 0; i < std::ssize(scores); ++i) apart[place(i)] = scores[i];
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch * kLength; ++n) {
    labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  }
  for (const Setting& setting : Settings()) {
    const LossOfBatch found = LossOnDevice(
        setting, SoftmaxCrossEntropySpec{{kClasses, kLength}, 0.1f}, kBatch, scores, labels);
    const LossOfBatch expected = LossOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}, 0.1f},
                                              kBatch * kLength, apart, labels);
    EXPECT_NEAR(found.sum, expected.sum / kLength, 1e-5) << setting.name;
    EXPECT_NEAR(found.correct, expected.correct / kLength, 1e-9) << setting.name;
    for (int64_t i = 0; i < std::ssize(scores); ++i) {
      ASSERT_NEAR(found.gradient[i], expected.gradient[place(i)], 1e-8) << setting.name;
    }
  }
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
            setting, SoftmaxCrossEntropySpec{{classes}, smoothing}, batch, scores, labels);
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

TEST(SoftmaxCrossEntropyTest, LabelsAmongTheLargestScoresAreCountedAsSortingCountsThem) {
  constexpr int kBatch = 33;
  constexpr int kClasses = 70;
  const std::vector<int> tops = {2, 5, 69};
  Rng rng(9, RngPurpose::kTest);
  std::vector<float> scores = RandomNumbers(kBatch * kClasses, &rng);
  for (float& score : scores) score = std::round(score * 8);  // so that many are equal
  std::vector<int32_t> labels;
  for (int n = 0; n < kBatch; ++n) labels.push_back(static_cast<int32_t>(rng.NextBelow(kClasses)));
  std::vector<double> expected(1 + tops.size());
  for (int n = 0; n < kBatch; ++n) {
    std::vector<int> classes(kClasses);
    std::iota(classes.begin(), classes.end(), 0);
    const float* s = scores.data() + n * kClasses;
    std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) { return s[a] > s[b]; });
    const auto rank = std::find(classes.begin(), classes.end(), labels[n]) - classes.begin();
    expected[0] += rank < 1 ? 1 : 0;
    for (size_t i = 0; i < tops.size(); ++i) expected[1 + i] += rank < tops[i] ? 1 : 0;
  }
  for (const Setting& setting : Settings()) {
    const std::vector<double> sums = SumsOnDevice(
        setting, SoftmaxCrossEntropySpec{{kClasses}, 0.0f, tops}, kBatch, scores, labels);
    EXPECT_EQ(std::vector(sums.begin() + 1, sums.end()), expected) << setting.name;
    std::vector<float> one(scores.begin(), scores.begin() + kClasses);
    one[static_cast<size_t>(labels[0])] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(SumsOnDevice(setting, SoftmaxCrossEntropySpec{{kClasses}, 0.0f, {69}}, 1, one,
                           std::vector<int32_t>{labels[0]})[2],
              0)
        << setting.name << ": what is no number is among no largest ones";
  }
}

TEST(SoftmaxCrossEntropyTest, ItsMetricsAreThoseThatItsFieldsAskFor) {
  const auto plan_of = [](const std::vector<int>& tops, bool perplexity) {
    model::Layer layer;
    model::SoftmaxCrossEntropy& loss = *layer.mutable_softmax_cross_entropy();
    for (const int top : tops) loss.add_top(top);
    loss.set_perplexity(perplexity);
    return FindLossKind(model::Layer::kSoftmaxCrossEntropy)->plan(layer, std::vector<Shape>{{10}});
  };
  EXPECT_EQ(plan_of({}, false)->metrics.Names(), "loss, accuracy");
  EXPECT_EQ(plan_of({3, 5}, true)->metrics.Names(),
            "loss, accuracy, top3_accuracy, top5_accuracy, perplexity");
  EXPECT_EQ(plan_of({3, 5}, true)->metrics.sums(), 4) << "a perplexity is made of the losses";
  for (const std::vector<int>& tops :
       {std::vector<int>{1}, {0}, {-5}, {10}, {5, 5}, {5, 3}, {2, 3, 4, 5, 6}}) {
    EXPECT_NE(plan_of(tops, false).status().message().find("top"), std::string::npos);
  }
}

}  // namespace
}  // namespace kumo
