// The conformance test of the registry: every layer agrees with a plain reference and its gradients
// with differences of its own values, on every instruction-set level of this machine with one
// thread and with three, and on its GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"
#include "tests/models/narrow_precisions.h"
#include "tests/models/ops/layer_on_device.h"
#include "tests/models/ops/reference.h"

namespace kumo {
namespace {

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

// What a layer is tried on.
std::vector<float> InputNumbers(const LayerCase& layer_case, int batch, Rng* rng) {
  const int64_t n = batch * layer_case.size();
  if (layer_case.vocabulary == 0) return SpacedNumbers(n, rng);
  std::vector<float> numbers;
  for (int64_t i = 0; i < n; ++i) {
    numbers.push_back(static_cast<float>(rng->NextBelow(layer_case.vocabulary)));
  }
  return numbers;
}

reference::Numbers Doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// A forward step, and its output by the reference.
struct ForwardCase {
  int batch = 0;
  bool training = false;
  std::vector<float> x;
  reference::Numbers y;
};

// The same on every device, since all begin with the same parameters.
std::vector<ForwardCase> ForwardCases(const LayerCase& layer_case, LayerOnDevice* layer) {
  std::vector<reference::Numbers> parameters;
  for (const auto& tensor : layer->weights()) parameters.push_back(Doubles(tensor));
  Rng rng(2, RngPurpose::kTest);
  std::vector<ForwardCase> cases;
  // One vector, less than one, more than one tile of vectors, and back.
  for (const int batch : {16, 5, kMaxBatch, 4, 33, 8, 1}) {
    const std::vector<float> x = InputNumbers(layer_case, batch, &rng);
    for (const bool training : {true, false}) {
      cases.push_back({batch, training, x,
                       reference::Forward(
                           {layer->layer(), layer_case.inputs(), kIndex, batch, training, kStreams},
                           Doubles(x), parameters)});
    }
  }
  return cases;
}

class LayerTest : public testing::TestWithParam<LayerCase> {};

TEST_P(LayerTest, AgreesWithThePlainReference) {
  const LayerCase& layer_case = GetParam();
  LayerOnDevice plain(layer_case, {"CPU", [] { return MakeCpuBackend(1); }});
  const std::vector<ForwardCase> cases = ForwardCases(layer_case, &plain);
  for (const Setting& setting : Settings()) {
    LayerOnDevice layer(layer_case, setting);
    ASSERT_EQ(layer.weights(), plain.weights()) << setting.name;
    for (const ForwardCase& of : cases) {
      const std::vector<float> y = layer.Forward(of.x, of.batch, of.training);
      ASSERT_EQ(y.size(), of.y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(y[i]), of.y[i], 2e-5 * (1 + std::abs(of.y[i])))
            << "number " << i << ", batch " << of.batch << ", " << setting.name;
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
                  const std::vector<float>& weight, float step, float* at) {
  const float before = *at;
  *at = before + step;
  const double up = static_cast<double>(*at);
  const double above = Objective(layer->Forward(x, batch, true), weight);
  *at = before - step;
  const double down = static_cast<double>(*at);
  const double below = Objective(layer->Forward(x, batch, true), weight);
  *at = before;
  return (above - below) / (up - down);
}

constexpr int kGradientBatch = 5;

// A layer with its input `x`, and the weights of its objective: the same on every device.
struct GradientCase {
  GradientCase(const LayerCase& layer_case, const Setting& setting) : layer(layer_case, setting) {
    Rng rng(3, RngPurpose::kTest);
    x = InputNumbers(layer_case, kGradientBatch, &rng);
    const std::vector<float> y = layer.Forward(x, kGradientBatch, true);
    weight = RandomNumbers(static_cast<int64_t>(y.size()), &rng);
  }

  LayerOnDevice layer;
  std::vector<float> x;
  std::vector<float> weight;
};

// Differences at numbers 0, stride, 2 stride, ... of an array.
struct ArrayDifferences {
  size_t numbers = 0;
  size_t stride = 1;
  std::vector<double> differences;
};

// Differences at the inputs, then at each parameter tensor.
std::vector<ArrayDifferences> Differences(GradientCase* of, float step) {
#ifdef KUMO_SANITIZED  // which watch memory, the same at each number
  constexpr size_t kMost = 4;
#else
  constexpr size_t kMost = SIZE_MAX;
#endif
  const auto at_each = [&](std::vector<float>* numbers) {
    ArrayDifferences found;
    found.numbers = numbers->size();
    found.stride = numbers->size() / kMost + 1;
    for (size_t i = 0; i < numbers->size(); i += found.stride) {
      found.differences.push_back(
          Difference(&of->layer, of->x, kGradientBatch, of->weight, step, &(*numbers)[i]));
    }
    return found;
  };
  std::vector<ArrayDifferences> all = {at_each(&of->x)};
  for (std::vector<float>& tensor : of->layer.weights()) all.push_back(at_each(&tensor));
  return all;
}

void ExpectNear(const std::vector<float>& gradient, const ArrayDifferences& expected,
                const std::string& name) {
  ASSERT_EQ(gradient.size(), expected.numbers) << name;
  for (size_t d = 0; d < expected.differences.size(); ++d) {
    const size_t i = d * expected.stride;
    ASSERT_NEAR(static_cast<double>(gradient[i]), expected.differences[d],
                5e-3 * (1 + std::abs(expected.differences[d])))
        << name << ", number " << i;
  }
}

// Differences are taken on one device, since the values of all agree with the reference.
TEST_P(LayerTest, GradientsAreThoseOfItsValues) {
  const LayerCase& layer_case = GetParam();
  GradientCase plain(layer_case, {"CPU", [] { return MakeCpuBackend(1); }});
  const std::vector<ArrayDifferences> differences = Differences(&plain, layer_case.step);
  for (const Setting& setting : Settings()) {
    GradientCase here(layer_case, setting);
    ASSERT_EQ(here.layer.weights(), plain.layer.weights()) << setting.name;
    const std::vector<float> dx = here.layer.Backward(here.weight, kGradientBatch);
    if (layer_case.vocabulary == 0) {
      ExpectNear(dx, differences[0], setting.name + ", inputs");
    } else {
      EXPECT_THAT(dx, testing::IsEmpty()) << "token numbers have no gradient";
    }
    const auto gradients = here.layer.gradients();
    for (size_t t = 0; t < gradients.size(); ++t) {
      const TensorSpec& spec = here.layer.plan().parameters[t].tensor;
      if (spec.segment == Segment::kStatistics) {
        EXPECT_THAT(gradients[t], testing::Each(1e6f)) << spec.name << " is no gradient";
        continue;
      }
      ExpectNear(gradients[t], differences[t + 1], setting.name + ", " + spec.name);
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
      const std::vector<float> x = InputNumbers(layer_case, batch, &rng);
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
  for (const Precision precision : NarrowPrecisions()) {
    const double unit = precision == Precision::kBf16 ? 0x1p-9 : 0x1p-12;
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
    const auto expect_near = [unit](const std::vector<float>& found,
                                    const std::vector<float>& expected, const char* what) {
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 6 * unit * std::max(1.0, Largest(expected)))
            << what << ' ' << i << ", rounding " << unit;
      }
    };
    const std::vector<float> x = layer_case.vocabulary > 0 ? InputNumbers(layer_case, kBatch, &rng)
                                                           : numbers(kBatch * layer_case.size());
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

// As PyTorch's. Rows of one sample are pooled by vectors of positions, others by vectors of
// samples.
TEST(MaxPoolingTest, ANumberThatIsNoneIsTheMaximumOfItsWindowsWhereverItLies) {
  constexpr int64_t kHeight = 5, kWidth = 39;
  for (const int stride : {1, 2}) {
    const std::string text =
        "name: \"l\" max_pooling { kernel: 3 stride: " + std::to_string(stride) + " }";
    const int64_t height = (kHeight - 3) / stride + 1, width = (kWidth - 3) / stride + 1;
    for (const Setting& setting : Settings()) {
      LayerOnDevice layer({"", {1, kHeight, kWidth}, text.c_str()}, setting);
      for (const int batch : {1, 5, 16}) {
        Rng rng(6, RngPurpose::kTest);
        std::vector<float> x = SpacedNumbers(batch * kHeight * kWidth, &rng);
        for (int i = 0; i < 6 * batch; ++i) {
          x[rng.NextBelow(x.size())] = std::numeric_limits<float>::quiet_NaN();
        }
        const std::vector<float> y = layer.Forward(x, batch, true);
        for (int64_t i = 0; i < std::ssize(y); ++i) {
          const int64_t sample = i / (height * width);
          const int64_t row = i / width % height * stride, column = i % width * stride;
          float expected = -std::numeric_limits<float>::infinity();
          bool none = false;
          for (int64_t tap = 0; tap < 9; ++tap) {
            const float number = x[(sample * kHeight + row + tap / 3) * kWidth + column + tap % 3];
            none = none || std::isnan(number);
            expected = std::max(expected, number);
          }
          ASSERT_EQ(std::isnan(y[i]), none)
              << i << ", batch " << batch << ", stride " << stride << ", " << setting.name;
          if (none) continue;
          ASSERT_NEAR(y[i], expected, 1e-5f) << i << ", " << setting.name;
        }
      }
    }
  }
}

// One float32 sum of a large window loses the last digits of each number.
TEST(AveragePoolingTest, TheMeanOfALargeImageIsAsExactAsThatOfASmallOne) {
  constexpr int64_t kHeight = 600, kWidth = 700;
  for (const Setting& setting : Settings()) {
    if (setting.make()->name() != "cpu") continue;  // on a GPU cuDNN adds up
    LayerOnDevice layer({"", {1, kHeight, kWidth}, R"(name: "l" global_average_pooling {})"},
                        setting);
    for (const int batch : {1, 3}) {
      const std::vector<float> x(static_cast<size_t>(batch * kHeight * kWidth), 1.1f);
      for (const float mean : layer.Forward(x, batch, true)) {
        ASSERT_NEAR(mean, 1.1f, 1e-5f) << "batch " << batch << ", " << setting.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, LayerTest, testing::ValuesIn(LayerCases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Settings, and each narrow precision of a GPU.
std::vector<Setting> SettingsAndPrecisions() {
  std::vector<Setting> settings = Settings();
  if (!MakeCudaBackend({}).ok()) return settings;
  for (const Precision precision : NarrowPrecisions()) {
    settings.push_back({"cuda, 16 bits",
                        [precision] { return MakeCudaBackend({.precision = precision}).value(); }});
  }
  return settings;
}

// Of ones every sum is a count. cuBLASLt is reported to leave out the end of sums that it splits,
// of some shapes and on some cards.
TEST(FullyConnectedTest, ItsSumsAreOverAllInputsAndAllSamples) {
  const LayerCase cases[] = {
      {"ManyInputs", {784}, R"(name: "l" fully_connected { outputs: 10 })"},
      {"OddInputs", {251}, R"(name: "l" fully_connected { outputs: 130 })"},
      {"MoreInputs", {2064}, R"(name: "l" fully_connected { outputs: 3 })"},
      {"ManyPositions", {29, 24}, R"(name: "l" fully_connected { outputs: 8 per_position: true })"},
  };
  for (const LayerCase& layer_case : cases) {
    for (const Setting& setting : SettingsAndPrecisions()) {
      LayerOnDevice layer(layer_case, setting);
      for (float& w : layer.weights()[0]) w = 1;
      for (float& b : layer.weights()[1]) b = 0;
      const auto& spec = std::get<FullyConnectedSpec>(layer.plan().spec);
      for (const int batch : {kMaxBatch, 61}) {
        const std::vector<float> x(static_cast<size_t>(batch * layer_case.size()), 1);
        EXPECT_THAT(layer.Forward(x, batch, true), testing::Each(static_cast<float>(spec.inputs)))
            << layer_case.name << ", " << setting.name;
        const std::vector<float> dy(static_cast<size_t>(batch * layer.plan().output.size()), 1);
        layer.Backward(dy, batch);
        for (const std::vector<float>& gradient : layer.gradients()) {
          EXPECT_THAT(gradient, testing::Each(static_cast<float>(batch * spec.positions)))
              << layer_case.name << ", " << setting.name;
        }
      }
    }
  }
}

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

}  // namespace
}  // namespace kumo
