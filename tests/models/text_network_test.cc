// A small language model as a whole: whole numbers in, a head that shares the embedding's weights,
// a loss at each position.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/net/net.h"
#include "tests/models/small_language_model.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr int kWords = 7;
constexpr int kMostSamples = 19;

// A net with its arenas, and samples of tokens and labels.
class SmallGptNet {
 public:
  explicit SmallGptNet(int length, int threads = 1)
      : length_(length), backend_(MakeCpuBackend(threads)) {
    net_ = Net::Make(SmallLanguageModel(length, kWords), kMostSamples, backend_.get()).value();
    layout_ = ParameterLayout::Make(net_->tensors()).value();
    weights.resize(layout_.size());
    gradients.resize(layout_.size());
    CHECK(net_->InitialWeights(3, layout_, weights).ok());
    CHECK(net_->Bind(layout_, weights.data(), gradients.data()).ok());
    const Fields fields = {{"tokens", NumberType::kInt32, {length}},
                           {kLabelField, NumberType::kInt32, {length}}};
    CHECK(net_->Connect(fields, {}).ok());
  }

  Status Load(std::span<const int32_t> tokens, std::span<const int32_t> labels) {
    const std::span<const std::byte> fields[] = {std::as_bytes(tokens), std::as_bytes(labels)};
    return net_->Load({static_cast<int>(tokens.size()) / length_, fields});
  }
  // The sum of the samples' losses.
  double Train(std::span<const int32_t> tokens, std::span<const int32_t> labels) {
    CHECK(Load(tokens, labels).ok());
    backend_->SetStep({});
    net_->Train();
    return net_->TakeSums().value()[0];
  }
  double Evaluate(std::span<const int32_t> tokens, std::span<const int32_t> labels) {
    CHECK(Load(tokens, labels).ok());
    net_->Evaluate();
    return net_->TakeSums().value()[0];
  }
  const ParameterLayout& layout() const { return layout_; }
  const Backend& backend() const { return *backend_; }

  std::vector<float> weights;
  std::vector<float> gradients;

 private:
  int length_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Net> net_;
  ParameterLayout layout_;
};

// Of sequences whose channels fill whole vectors with any number of samples, and of others.
class TextNetworkTest : public testing::TestWithParam<int> {
 protected:
  int length() const { return GetParam(); }
  std::vector<int32_t> Tokens(int samples, uint64_t seed) const {
    Rng rng(seed, RngPurpose::kTest);
    std::vector<int32_t> tokens(static_cast<size_t>(samples * length()));
    for (int32_t& token : tokens) token = static_cast<int32_t>(rng.NextBelow(kWords));
    return tokens;
  }
};
INSTANTIATE_TEST_SUITE_P(Lengths, TextNetworkTest, testing::Values(5, 16));

TEST_P(TextNetworkTest, GradientsOfAllTensorsAreThoseOfTheLoss) {
  SmallGptNet gpt(length());
  const std::vector<int32_t> tokens = Tokens(3, 1);
  const std::vector<int32_t> labels = Tokens(3, 2);
  gpt.Train(tokens, labels);
  const std::vector<float> gradients = gpt.gradients;
  constexpr float kStep = 1e-2f;
  for (int t = 0; t < std::ssize(gpt.layout().tensors()); ++t) {
    const Range range = gpt.layout().tensor(t);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const float before = gpt.weights[i];
      gpt.weights[i] = before + kStep;
      const double above = gpt.Evaluate(tokens, labels);
      gpt.weights[i] = before - kStep;
      const double below = gpt.Evaluate(tokens, labels);
      gpt.weights[i] = before;
      const double slope = (above - below) / 3 / (2 * static_cast<double>(kStep));
      ASSERT_NEAR(static_cast<double>(gradients[i]), slope, 1e-3 * (1 + std::abs(slope)))
          << gpt.layout().tensors()[t].name << " " << i - range.begin;
    }
  }
}

TEST_P(TextNetworkTest, AMinibatchsLossIsThatOfItsSamples) {
  SmallGptNet gpt(length());
  const std::vector<int32_t> tokens = Tokens(kMostSamples, 3);
  const std::vector<int32_t> labels = Tokens(kMostSamples, 4);
  const double whole = gpt.Evaluate(tokens, labels);
  for (const int at_once : {1, 3, 12, 16}) {
    double sum = 0;
    for (int first = 0; first < kMostSamples; first += at_once) {
      const int count = std::min(at_once, kMostSamples - first);
      sum += gpt.Evaluate(std::span(tokens).subspan(first * length(), count * length()),
                          std::span(labels).subspan(first * length(), count * length()));
    }
    EXPECT_NEAR(whole, sum, 1e-6 * whole) << at_once << " at once";
  }
}

TEST_P(TextNetworkTest, AMinibatchsGradientIsTheMeanOfItsSamples) {
  SmallGptNet gpt(length());
  const std::vector<int32_t> tokens = Tokens(kMostSamples, 3);
  const std::vector<int32_t> labels = Tokens(kMostSamples, 4);
  std::vector<double> sum(gpt.gradients.size());
  for (int n = 0; n < kMostSamples; ++n) {
    gpt.Train(std::span(tokens).subspan(n * length(), length()),
              std::span(labels).subspan(n * length(), length()));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(gpt.gradients[i]);
  }
  gpt.Train(tokens, labels);
  for (size_t i = 0; i < sum.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(gpt.gradients[i]), sum[i] / kMostSamples, 1e-6) << i;
  }
}

// Normalisation per position takes whole vectors of a channel's row.
TEST_P(TextNetworkTest, NothingIsPaddedWhereAChannelIsWholeVectors) {
  const SmallGptNet gpt(length());
  const int64_t lanes = length() % 16 == 0 ? 12 : 16;
  EXPECT_EQ(gpt.backend().ActivationBytes({6, length()}, 12), 6 * length() * lanes * 4);
}

// The loss at the first position depends on nothing behind it: with one label other than the rest
// of a sample's, the difference of two losses is that position's.
TEST_P(TextNetworkTest, NoPositionSeesWhatComesAfterIt) {
  SmallGptNet gpt(length());
  const auto first = [&](std::vector<int32_t> tokens) {
    tokens.resize(static_cast<size_t>(length()));
    std::vector<int32_t> labels(static_cast<size_t>(length()), 1);
    const double one = gpt.Evaluate(tokens, labels);
    labels[0] = 2;
    return gpt.Evaluate(tokens, labels) - one;
  };
  const double before = first({3, 0, 1, 2, 4});
  EXPECT_NEAR(first({3, 6, 5, 0, 0}), before, 1e-6);
  EXPECT_GT(std::abs(first({4, 0, 1, 2, 4}) - before), 1e-3);
}

TEST_P(TextNetworkTest, HasTheSameBitsEachTimeWhateverRanBefore) {
  const std::vector<int32_t> tokens = Tokens(kMostSamples, 5);
  const std::vector<int32_t> labels = Tokens(kMostSamples, 6);
  for (const int threads : {1, 2, 3}) {
    SmallGptNet one(length(), threads), other(length(), threads);
    other.Train(Tokens(5, 9), Tokens(5, 10));
    EXPECT_EQ(one.Train(tokens, labels), other.Train(tokens, labels)) << threads << " threads";
    EXPECT_EQ(one.gradients, other.gradients) << threads << " threads";
  }
}

TEST_P(TextNetworkTest, NumbersBeyondTheVocabularyAreRefused) {
  SmallGptNet gpt(length());
  const std::vector<int32_t> labels = Tokens(2, 7);
  for (const int32_t bad : {-1, kWords, INT32_MAX}) {
    std::vector<int32_t> tokens = Tokens(2, 8);
    tokens[length() + 3] = bad;
    const Status status = gpt.Load(tokens, labels);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(),
                HasSubstr("tokens " + std::to_string(bad) +
                          " of sample 1 of the minibatch is outside the 7 words"));
    EXPECT_EQ(gpt.Load(labels, tokens).code(), StatusCode::kInvalidArgument) << "as labels";
  }
}

TEST_P(TextNetworkTest, ConnectNamesWhatDoesNotFit) {
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(SmallLanguageModel(length(), kWords), 2, backend.get()).value();
  const Field tokens = {"tokens", NumberType::kInt32, {length()}};
  const Field labels = {kLabelField, NumberType::kInt32, {length()}};
  EXPECT_TRUE(net->Connect({tokens, labels}, {}).ok());
  EXPECT_THAT(net->Connect({labels}, {}).message(), HasSubstr("takes a field \"tokens\""));
  EXPECT_THAT(net->Connect({{"tokens", NumberType::kUint8, {length()}}, labels}, {}).message(),
              HasSubstr("takes integers as field \"tokens\", the samples have bytes"));
  EXPECT_THAT(net->Connect({{"tokens", NumberType::kInt32, {8}}, labels}, {}).message(),
              HasSubstr("of " + std::to_string(length()) + ", but in the samples it is 8"));
  EXPECT_THAT(
      net->Connect({tokens, {kLabelField, NumberType::kInt32, {}}}, {}).message(),
      HasSubstr("\"label\" of " + std::to_string(length()) + ", but in the samples it is 1"));
}

}  // namespace
}  // namespace kumo
