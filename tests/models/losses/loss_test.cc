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

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/losses/loss.h"
#include "tests/models/ops/layer_on_device.h"

namespace kumo {
namespace {

constexpr int kSums = 2;  // of softmax_cross_entropy

// Labels of a loss, as the host has them.
struct Labels {
  Labels(const Label& label, int batch, Rng* rng) {
    const int64_t numbers = batch * Shape(label.extents).size();
    for (int64_t i = 0; i < numbers; ++i) {
      if (label.classes > 0) {
        whole.push_back(static_cast<int32_t>(rng->NextBelow(label.classes)));
      } else {
        any.push_back(rng->NextUniform(-2, 2));
      }
    }
  }
  std::span<const std::byte> bytes() const {
    return whole.empty() ? std::as_bytes(std::span(any)) : std::as_bytes(std::span(whole));
  }

  std::vector<int32_t> whole;
  std::vector<float> any;
};

// Every entry of the list with its defaults, on random scores: the slope is measured; and the
// gradient goes by the weight, the sums do not.
TEST(LossRegistryTest, EveryLossHasTheGradientOfItsMeanTimesItsWeight) {
  constexpr int kBatch = 19;
  constexpr float kStep = 1e-2f;
  const Shape shape = {7, 2, 3};
  for (const LossKind& kind : LossKinds()) {
    model::Layer layer;
    const auto* field = model::Layer::descriptor()->FindFieldByNumber(kind.kind);
    model::Layer::GetReflection()->MutableMessage(&layer, field);
    const auto backend = MakeCpuBackend(1);
    Result<LossPlan> plan = kind.plan(layer, shape);
    ASSERT_TRUE(plan.ok()) << kind.name << ": " << plan.status().message();
    const auto loss = backend->MakeLoss(plan->spec, kBatch).value();
    std::visit([](auto& spec) { spec.weight = 0.5f; }, plan->spec);
    const auto half = backend->MakeLoss(plan->spec, kBatch).value();
    Rng rng(7, RngPurpose::kTest);
    const Labels labels(plan->label, kBatch, &rng);
    DeviceArray<std::byte> device_labels(*backend, std::ssize(labels.bytes()), "labels");
    backend->Write(labels.bytes().data(), labels.bytes().size(), device_labels.data());
    const int64_t size = backend->ActivationBytes(shape, kBatch) / int64_t{sizeof(float)};
    DeviceArray<float> device(*backend, size, "scores");
    const auto mean_of = [&](LossOp& op, const std::vector<float>& scores, float* gradient) {
      DeviceArray<double> sums(*backend, plan->metrics.sums(), "sums");
      LoadActivations(*backend, shape, kBatch, scores.data(), device.data());
      op.Run(kBatch, device.data(), device_labels.data(), gradient, sums.data());
      double result = 0;  // the first sum is that of the losses
      EXPECT_TRUE(backend->Read(sums.data(), sizeof(result), &result).ok());
      return result / kBatch;
    };
    const auto gradient_of = [&](LossOp& op, const std::vector<float>& scores) {
      DeviceArray<float> gradient(*backend, size, "their gradients");
      (void)mean_of(op, scores, gradient.data());
      std::vector<float> found(scores.size());
      backend->StoreOutputs(shape, kBatch, gradient.data(), found.data());
      return found;
    };
    const std::vector<float> scores = RandomNumbers(kBatch * shape.size(), &rng);
    const std::vector<float> found = gradient_of(*loss, scores);
    const std::vector<float> halved = gradient_of(*half, scores);
    EXPECT_EQ(mean_of(*loss, scores, nullptr), mean_of(*half, scores, nullptr)) << kind.name;
    for (size_t i = 0; i < scores.size(); ++i) {
      ASSERT_NEAR(halved[i], found[i] / 2, 1e-8f) << kind.name;
      std::vector<float> above = scores;
      std::vector<float> below = scores;
      above[i] += kStep;
      below[i] -= kStep;
      const double slope = (mean_of(*loss, above, nullptr) - mean_of(*loss, below, nullptr)) /
                           (static_cast<double>(above[i]) - static_cast<double>(below[i]));
      ASSERT_NEAR(static_cast<double>(found[i]), slope, 1e-4) << kind.name << ", score " << i;
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
        const Labels labels({0, shape.extents()}, batch, &rng);
        const int64_t bytes = backend->ActivationBytes(shape, batch);
        DeviceArray<std::byte> device(*backend, bytes, "scores");
        DeviceArray<std::byte> gradient(*backend, bytes, "their gradients");
        DeviceArray<float> device_labels(*backend, std::ssize(labels.any), "labels");
        DeviceArray<double> sums(*backend, DifferenceLossSpec::sums(), "sums");
        backend->SetStep({});
        backend->Write(labels.any.data(), labels.bytes().size(), device_labels.data());
        LoadActivations(*backend, shape, batch, scores.data(), device.data());
        loss->Run(batch, device.data(), device_labels.data(), gradient.data(), sums.data());
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
    loss->Run(1, device.data(), device_label.data(), gradient.data(), sums.data());
    double found = 0;
    float slope = 0;
    ASSERT_TRUE(backend->Read(sums.data(), sizeof found, &found).ok());
    backend->StoreOutputs({1}, 1, gradient.data(), &slope);
    EXPECT_TRUE(std::isnan(found) && std::isnan(slope)) << setting.name;
  }
}

TEST(DifferenceLossTest, DeltaIsAPositiveNumber) {
  model::Layer layer;
  EXPECT_EQ(std::get<DifferenceLossSpec>(FindLossKind(model::Layer::kHuber)->plan(layer, {3})->spec)
                .delta,
            1);
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    layer.mutable_huber()->set_delta(bad);
    EXPECT_NE(FindLossKind(model::Layer::kHuber)
                  ->plan(layer, {3})
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
  loss->Run(kBatch, device.data(), device_labels.data(), gradient.data(), sums.data());
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
  loss->Run(batch, device.data(), device_labels.data(), gradient.data(), sums.data());
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
    return FindLossKind(model::Layer::kSoftmaxCrossEntropy)->plan(layer, {10});
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
