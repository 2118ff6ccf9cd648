// Whole networks on a GPU: the CPU's training but for the rounding of sums; in 16 bits the same but
// for theirs; recorded or not, the same again.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/detection/boxes.h"
#include "common/job/fields.h"
#include "common/job/pixels.h"
#include "common/optimiser/optimiser.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/models/branched_network.h"
#include "tests/models/gpu_under_test.h"
#include "tests/models/narrow_precisions.h"
#include "tests/models/numbers.h"

namespace kumo {
namespace {

// Steps of a net: one is run, one is recorded, the others are repeated. The simulated GPU computes
// number by number, and shows nothing new in the same step again; sanitizers watch memory, the same
// for each sample.
#ifdef KUMO_SANITIZED
const int kSteps = 3;
const int kManySteps = 3;
const int kBatch = 5;
#else
const int kSteps = GpuIsSimulated() ? 3 : 5;
const int kManySteps = GpuIsSimulated() ? 8 : 50;
const int kBatch = GpuIsSimulated() ? 10 : 32;
#endif

model::Network Zoo(const std::string& name) {
  return LoadNetwork(std::string(KUMO_ZOO) + "/" + name + ".pbtxt",
                     {.vocabulary = 65, .classes = 20})
      .value();
}

model::Network Parse(const char* text) {
  model::Network network;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &network));
  return network;
}

// Every layer, with what devices may run together or in another layout: a bias and none, ReLU
// behind batch normalisation and behind fully connected layers, these on a plane and on a vector.
model::Network EveryLayer() {
  constexpr char kText[] = R"(
      name: "every_layer"
      input { channels: 3 height: 12 width: 10 }
      layers { name: "conv1" convolution { outputs: 8 kernel: 3 pad: 1 no_bias: true } }
      layers { name: "norm1" batch_normalisation {} }
      layers { name: "relu1" relu {} }
      layers { name: "conv2" convolution { outputs: 40 kernel: 3 stride: 2 pad: 1 } }
      layers { name: "norm2" batch_normalisation {} }
      layers { name: "tanh2" tanh {} }
      layers { name: "pool2" max_pooling { kernel: 3 stride: 2 pad: 1 } }
      layers { name: "drop2" dropout { ratio: 0.25 } }
      layers { name: "conv3" convolution { outputs: 12 kernel: 1 } }
      layers { name: "pool3" average_pooling { kernel: 2 stride: 1 } }
      layers { name: "fc1" fully_connected { outputs: 20 } }
      layers { name: "relu3" relu {} }
      layers { name: "drop3" dropout { ratio: 0.5 } }
      layers { name: "fc2" fully_connected { outputs: 16 no_bias: true } }
      layers { name: "sigmoid" sigmoid {} }
      layers { name: "fc3" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })";
  return Parse(kText);
}

// The layers that the network above has not.
model::Network EveryOtherLayer() {
  constexpr char kText[] = R"(
      name: "every_other_layer"
      input { channels: 3 height: 12 width: 10 }
      layers { name: "conv1" convolution { outputs: 16 kernel: 3 pad: 1 } }
      layers { name: "group1" group_normalisation { groups: 4 } }
      layers { name: "silu1" silu {} }
      layers { name: "deep" convolution { outputs: 16 kernel: 3 pad: 1 groups: 16 no_bias: true } }
      layers { name: "length" l2_normalisation { scale: 4 } }
      layers { name: "leaky" leaky_relu { slope: 0.1 } }
      layers { name: "pool1" max_pooling { kernel: 3 stride: 2 ceil_mode: true } }
      layers { name: "conv2" convolution { outputs: 24 kernel: 3 groups: 2 } }
      layers { name: "whole" layer_normalisation {} }
      layers { name: "gelu2" gelu {} }
      layers { name: "pool2" average_pooling { kernel: 2 ceil_mode: true } }
      layers { name: "fc1" fully_connected { outputs: 20 } }
      layers { name: "layer" layer_normalisation {} }
      layers { name: "gelu3" gelu { approximate: TANH } }
      layers { name: "fc2" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy { label_smoothing: 0.1 } })";
  return Parse(kText);
}

// All layers with tensors but the first and the last one are frozen; the last one has a factor.
model::Network FrozenBetween(model::Network network) {
  std::vector<std::string> names;
  const Graph graph = PlanNetwork(network).value();
  for (const Node& node : graph.nodes) {
    if (!node.parameters.empty()) names.push_back(node.name);
  }
  network.set_name(network.name() + "_frozen");
  for (model::Layer& layer : *network.mutable_layers()) {
    if (layer.name() == names.back()) layer.set_learning_rate_factor(0.3f);
    const auto found = std::find(names.begin() + 1, names.end() - 1, layer.name());
    if (found != names.end() - 1) layer.set_trainable(false);
  }
  return network;
}

struct WalkSettings {
  int steps = 10;
  int batch = kBatch;
  bool repeat = false;
  float clip_norm = 0;
  float input_scale = 1;
  bool evaluates = false;  // other weights, before each step, as a trainer does between epochs
  // Loads a minibatch's samples; none: numbers and classes.
  std::function<Status(int batch, Rng* rng, Net* net)> load = nullptr;
};

// Of a network of ten classes: numbers, and one of the classes.
Status LoadSamples(const WalkSettings& settings, Rng* rng, Net* net) {
  if (settings.load) return settings.load(settings.batch, rng, net);
  std::vector<float> inputs(static_cast<size_t>(settings.batch * net->input().size()));
  for (float& x : inputs) x = settings.input_scale * rng->NextUniform();
  std::vector<int32_t> labels(settings.batch);
  for (int32_t& label : labels) label = static_cast<int32_t>(rng->NextBelow(10));
  return Numbers{settings.batch, inputs, labels}.LoadInto(net);
}

struct Walk {
  std::vector<double> losses;                 // of each step's minibatch, the mean
  std::vector<std::vector<float>> gradients;  // of each step, after ScaleGradients
  std::vector<std::vector<float>> weights;    // after each step
};

// A net's first steps by momentum, always the same on the same minibatches.
Walk Train(Backend& backend, const model::Network& network, const WalkSettings& settings) {
  const auto net = Net::Make(network, settings.batch, &backend).value();
  const ParameterLayout layout = ParameterLayout::Make(net->tensors()).value();
  std::vector<float> start(static_cast<size_t>(layout.size()));
  EXPECT_TRUE(net->InitialWeights(1, layout, start).ok());
  const auto vector = [&] { return DeviceArray<float>(backend, layout.size(), "a vector"); };
  DeviceArray<float> weights = vector();
  DeviceArray<float> gradients = vector();
  DeviceArray<float> velocity = vector();
  DeviceArray<float> evaluated = vector();
  const auto read = [&](const DeviceArray<float>& array) {
    std::vector<float> to(static_cast<size_t>(array.size()));
    EXPECT_TRUE(backend.Read(array.data(), static_cast<size_t>(array.bytes()), to.data()).ok());
    return to;
  };
  backend.Write(start.data(), start.size() * sizeof(float), weights.data());
  backend.Write(start.data(), start.size() * sizeof(float), evaluated.data());
  EXPECT_TRUE(net->Bind(layout, weights.data(), gradients.data()).ok());
  const std::unique_ptr<Optimiser> optimiser = MakeOptimiser({});
  const int64_t trained = layout.segment(Segment::kUndecayed).end;
  const auto work = [&] {
    net->Train();
    backend.MeasureGradients(gradients.data(), trained);
    for (const StepGroup& group : layout.groups()) {
      if (!group.trained()) continue;
      const Range range = group.range;
      float* const slots[] = {velocity.data() + range.begin};
      backend.OptimiserStep(group.segment, group.factors, gradients.data() + range.begin,
                            range.size(), weights.data() + range.begin, slots);
    }
    backend.ScaleGradients(gradients.data(), trained);
  };
  Rng rng(6, RngPurpose::kTest);
  Walk walk;
  for (int s = 0; s < settings.steps; ++s) {
    Rng again = rng;
    EXPECT_TRUE(LoadSamples(settings, &rng, net.get()).ok());
    if (settings.evaluates) {
      EXPECT_TRUE(net->Bind(layout, evaluated.data(), gradients.data()).ok());
      net->Evaluate();
      EXPECT_TRUE(net->Bind(layout, weights.data(), gradients.data()).ok());
      EXPECT_TRUE(net->TakeSums().ok());
      EXPECT_TRUE(LoadSamples(settings, &again, net.get()).ok());
    }
    StepParameters step;
    step.streams = {1, 2, 3, static_cast<uint64_t>(s)};
    step.optimiser = optimiser.get();
    step.decayed = {0.01f, 0.0005f, s + 1};
    step.undecayed = {0.01f, 0.0f, s + 1};
    step.clip_norm = settings.clip_norm;
    backend.SetStep(step);
    if (settings.repeat) {
      backend.Repeat({settings.batch, true, nullptr}, work);
    } else {
      work();
    }
    const Result<std::vector<double>> sums = net->TakeSums();
    EXPECT_TRUE(sums.ok()) << sums.status().message();
    if (!sums.ok()) break;
    walk.losses.push_back((*sums)[0] / settings.batch);
    walk.gradients.push_back(read(gradients));
    walk.weights.push_back(read(weights));
  }
  return walk;
}

double Norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

// |a - b| / |b|.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return Norm(difference) / Norm(b);
}

class CudaTrainingTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> made = MakeCudaBackend({});
    if (!made.ok()) {
      ASSERT_FALSE(GpuIsSimulated()) << made.status().message();
      GTEST_SKIP() << made.status().message();
    }
    cuda_ = std::move(made).value();
  }
  static std::unique_ptr<Backend> Cuda(Precision precision) {
    return MakeCudaBackend({.precision = precision}).value();
  }

  std::unique_ptr<Backend> cuda_;
};

void ExpectLossesNear(const Walk& found, const Walk& expected, double tolerance) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t s = 0; s < found.losses.size(); ++s) {
    EXPECT_NEAR(found.losses[s], expected.losses[s], tolerance * expected.losses[s])
        << "step " << s;
  }
}

// Fifty of them on a real GPU; but in a deep net a maximum that rounding moves to its
// neighbour has changed every weight a few steps later (the CPU's own instruction sets part ways
// like that), so there only those before.
TEST_F(CudaTrainingTest, TheFirstLossesAreTheCpusButForRounding) {
  const std::pair<const char*, int> nets[] = {
      {"mnist_mlp", kManySteps}, {"mnist_lenet", kManySteps}, {"cifar_convnet", kSteps}};
  for (const auto& [name, steps] : nets) {
    SCOPED_TRACE(name);
    const model::Network network = Zoo(name);
    ExpectLossesNear(Train(*cuda_, network, {.steps = steps}),
                     Train(*MakeCpuBackend(1), network, {.steps = steps}), 1e-3);
  }
}

TEST_F(CudaTrainingTest, GradientsOfEveryLayerAreTheCpusButForRounding) {
  for (const model::Network& network :
       {EveryLayer(), EveryOtherLayer(), BranchedNetwork(), FrozenBetween(EveryLayer()),
        FrozenBetween(EveryOtherLayer())}) {
    SCOPED_TRACE(network.name());
    const Walk expected = Train(*MakeCpuBackend(1), network, {.steps = 1});
    const Walk found = Train(*cuda_, network, {.steps = 1});
    EXPECT_LT(Distance(found.gradients[0], expected.gradients[0]), 1e-5);
    EXPECT_LT(Distance(found.weights[0], expected.weights[0]), 1e-5);
  }
}

// The second filter begins behind 27 numbers, the third behind 162.
TEST_F(CudaTrainingTest, FiltersMayLieAnywhereInTheVector) {
  const model::Network network = Parse(R"(
      name: "odd_filters"
      input { channels: 1 height: 9 width: 9 }
      layers { name: "conv1" convolution { outputs: 3 kernel: 3 } }
      layers { name: "conv2" convolution { outputs: 5 kernel: 3 } }
      layers { name: "conv3" convolution { outputs: 4 kernel: 2 } }
      layers { name: "fc" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  const Walk expected = Train(*MakeCpuBackend(1), network, {.steps = 2});
  const Walk found = Train(*cuda_, network, {.steps = 2});
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_LT(Distance(found.gradients[s], expected.gradients[s]), 1e-5) << "step " << s;
  }
}

// Not each bias begins at a multiple of 16 bytes.
TEST_F(CudaTrainingTest, BiasesMayLieAnywhereInTheVector) {
  const model::Network network = Parse(R"(
      name: "odd_biases"
      input { channels: 1 height: 3 width: 3 }
      layers { name: "fc1" fully_connected { outputs: 7 } }
      layers { name: "tanh" tanh {} }
      layers { name: "fc2" fully_connected { outputs: 5 } }
      layers { name: "relu" relu {} }
      layers { name: "fc3" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  const Walk expected = Train(*MakeCpuBackend(1), network, {.steps = 2});
  const Walk found = Train(*cuda_, network, {.steps = 2});
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_LT(Distance(found.gradients[s], expected.gradients[s]), 1e-5) << "step " << s;
  }
}

// A net that diverges has a NaN as its loss, whatever layers lie between.
TEST_F(CudaTrainingTest, ANaNInTheInputIsOneInTheLoss) {
  const std::string layers[] = {
      R"(layers { name: "fc" fully_connected { outputs: 8 } })",
      R"(layers { name: "fc" fully_connected { outputs: 8 no_bias: true } })",
      R"(layers { name: "norm" batch_normalisation {} })",
      R"(layers { name: "conv" convolution { outputs: 4 kernel: 3 } }
         layers { name: "pool" max_pooling { kernel: 2 } })",
  };
  const std::string input = R"(name: "nan" input { channels: 1 height: 4 width: 4 })";
  const std::string rest = R"(
      layers { name: "relu" relu {} }
      layers { name: "last" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })";
  for (const std::string& layer : layers) {
    SCOPED_TRACE(layer);
    const model::Network network = Parse((input + layer + rest).c_str());
    const WalkSettings settings = {.steps = 1, .input_scale = NAN};
    EXPECT_THAT(Train(*MakeCpuBackend(1), network, settings).losses,
                testing::ElementsAre(testing::IsNan()));
    EXPECT_THAT(Train(*cuda_, network, settings).losses, testing::ElementsAre(testing::IsNan()));
  }
}

TEST_F(CudaTrainingTest, NarrowNumbersChangeNoMoreThanTheirRounding) {
  for (const model::Network& network : {EveryLayer(), EveryOtherLayer(), BranchedNetwork()}) {
    SCOPED_TRACE(network.name());
    const Walk expected = Train(*cuda_, network, {.steps = kSteps});
    for (const Precision precision : NarrowPrecisions()) {
      const double unit = precision == Precision::kBf16 ? 0x1p-8 : 0x1p-11;
      SCOPED_TRACE(unit);
      const Walk found = Train(*Cuda(precision), network, {.steps = kSteps});
      // A dozen layers, each of which rounds; and maxima and kinks, where a gradient may go another
      // way. Layer by layer it is closer: layer_test.cc.
      EXPECT_LT(Distance(found.gradients[0], expected.gradients[0]), 0.1);
      ExpectLossesNear(found, expected, 12 * unit);
    }
  }
}

TEST_F(CudaTrainingTest, AStepThatIsRecordedIsTheStep) {
  std::vector<Precision> precisions = NarrowPrecisions();
  precisions.push_back(Precision::kFp32);
  for (const model::Network& network : {EveryLayer(), EveryOtherLayer(), BranchedNetwork()}) {
    SCOPED_TRACE(network.name());
    for (const Precision precision : precisions) {
      const Walk expected = Train(*Cuda(precision), network, {.steps = kSteps, .clip_norm = 0.5f});
      const Walk found =
          Train(*Cuda(precision), network, {.steps = kSteps, .repeat = true, .clip_norm = 0.5f});
      // Algorithms are chosen by measuring, so not the same bits.
      ExpectLossesNear(found, expected, precision == Precision::kFp32 ? 1e-4 : 1e-2);
      EXPECT_LT(Distance(found.weights.back(), expected.weights.back()), 1e-3);
    }
  }
}

// A step that was recorded knows where its arrays are, those of tensors that layers share too.
TEST_F(CudaTrainingTest, WhatIsEvaluatedBetweenRecordedStepsChangesNone) {
  const model::Network network = BranchedNetwork();
  const Walk expected = Train(*Cuda(Precision::kFp32), network, {.steps = kSteps, .repeat = true});
  const Walk found =
      Train(*Cuda(Precision::kFp32), network, {.steps = kSteps, .repeat = true, .evaluates = true});
  ExpectLossesNear(found, expected, 1e-4);
  EXPECT_LT(Distance(found.weights.back(), expected.weights.back()), 1e-3);
}

TEST_F(CudaTrainingTest, GradientsAreClippedAsOnTheCpu) {
  const model::Network network = Zoo("mnist_lenet");
  const Walk expected = Train(*MakeCpuBackend(1), network, {.steps = 4, .clip_norm = 0.01f});
  const Walk found = Train(*cuda_, network, {.steps = 4, .clip_norm = 0.01f});
  for (size_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(Norm(found.gradients[s]), 0.01, 1e-6);
    EXPECT_LT(Distance(found.weights[s], expected.weights[s]), 1e-4) << "step " << s;
  }
}

// Lists of objects go from the samples to the loss: a detector's own form of targets.
TEST_F(CudaTrainingTest, ADetectorTrainsOnListsOfBoxesAsOnTheCpu) {
  const model::Network network = Parse(R"(
      name: "detector"
      input { channels: 3 height: 16 width: 16 }
      layers { name: "trunk" convolution { outputs: 8 kernel: 3 stride: 2 pad: 1 } }
      layers { name: "relu" relu {} }
      layers { name: "offsets" convolution { outputs: 16 kernel: 3 pad: 1 } }
      layers { name: "scores" inputs: "relu" convolution { outputs: 12 kernel: 3 pad: 1 } }
      layers { name: "loss" inputs: "offsets" inputs: "scores"
               multibox { classes: 2 maps { step: 2 size: 4 next_size: 8 ratios: 2 } } })");
  // Another number of objects in each sample, none in the first one.
  const auto load = [](int batch, Rng* rng, Net* net) {
    constexpr int kRoom = 3;
    Fields fields = net->takes();
    for (Field& field : fields) {
      if (field.list) field.extents[0] = kRoom;
    }
    KUMO_RETURN_IF_ERROR(net->Connect(fields, {}));
    std::vector<uint8_t> images(static_cast<size_t>(batch * net->input().size()));
    for (uint8_t& pixel : images) pixel = static_cast<uint8_t>(rng->NextBelow(2));
    std::vector<int32_t> classes(static_cast<size_t>(batch * kRoom)), counts(batch);
    std::vector<Box> boxes(classes.size());
    for (int n = 0; n < batch; ++n) {
      counts[n] = n % (kRoom + 1);
      for (int i = n * kRoom; i < n * kRoom + counts[n]; ++i) {
        classes[i] = static_cast<int32_t>(rng->NextBelow(2));
        const float left = rng->NextUniform(0, 10), top = rng->NextUniform(0, 10);
        boxes[i] = {left, top, left + rng->NextUniform(3, 6), top + rng->NextUniform(3, 6)};
      }
    }
    const std::span<const std::byte> values[] = {std::as_bytes(std::span(images)),
                                                 std::as_bytes(std::span(classes)),
                                                 std::as_bytes(std::span(boxes))};
    const std::span<const int32_t> lengths[] = {{}, counts, counts};
    return net->Load({batch, values, lengths});
  };
  for (const bool repeat : {false, true}) {
    const WalkSettings settings = {.steps = kSteps, .repeat = repeat, .load = load};
    const Walk expected = Train(*MakeCpuBackend(1), network, settings);
    const Walk found = Train(*cuda_, network, settings);
    EXPECT_GT(Norm(expected.gradients[0]), 0.0);
    ExpectLossesNear(found, expected, 1e-4);
    for (size_t s = 0; s < expected.weights.size(); ++s) {
      EXPECT_LT(Distance(found.gradients[s], expected.gradients[s]), 1e-4) << "step " << s;
      EXPECT_LT(Distance(found.weights[s], expected.weights[s]), 1e-5) << "step " << s;
    }
  }
}

TEST_F(CudaTrainingTest, APictureIsATargetAsOnTheCpu) {
  const model::Network network = Parse(R"(
      name: "image_to_image"
      input { name: "left" channels: 1 height: 4 width: 6 }
      layers { name: "conv" convolution { outputs: 8 kernel: 3 pad: 1 } }
      layers { name: "right" pixel_shuffle { factor: 2 } }
      layers { name: "loss" targets: "right" huber {} })");
  const auto load = [](int batch, Rng* rng, Net* net) {
    const Fields fields = {{"left", NumberType::kUint8, {1, 4, 6}, FieldKind::kPicture},
                           {"right", NumberType::kUint8, {2, 8, 12}, FieldKind::kPicture}};
    const PixelFormula formulas[] = {
        {.scale = 1 / 255.0f}, {.mean = std::vector<float>(192, 100), .scales = {0.1f, 0.02f}}};
    KUMO_RETURN_IF_ERROR(net->Connect(fields, formulas));
    std::vector<uint8_t> left(batch * 24), right(batch * 192);
    for (uint8_t& pixel : left) pixel = static_cast<uint8_t>(rng->NextBelow(256));
    for (uint8_t& pixel : right) pixel = static_cast<uint8_t>(rng->NextBelow(256));
    const std::span<const std::byte> values[] = {std::as_bytes(std::span(left)),
                                                 std::as_bytes(std::span(right))};
    return net->Load({batch, values});
  };
  const WalkSettings settings = {.steps = kSteps, .repeat = true, .load = load};
  const Walk expected = Train(*MakeCpuBackend(1), network, settings);
  const Walk found = Train(*cuda_, network, settings);
  ExpectLossesNear(found, expected, 1e-5);
  EXPECT_LT(Distance(found.weights.back(), expected.weights.back()), 1e-5);
}

// The first loss scale is too much for the filters' gradients of inputs like these, so the first
// steps are left out, each with half the scale of the one before.
TEST_F(CudaTrainingTest, AStepWhoseGradientsOverflowIsLeftOutAndTheLossScaledLess) {
  constexpr char kText[] = R"(
      name: "filters"
      input { channels: 1 height: 8 width: 8 }
      layers { name: "conv" convolution { outputs: 4 kernel: 3 } }
      layers { name: "fc" fully_connected { outputs: 10 } }
      layers { name: "loss" softmax_cross_entropy {} })";
  const Walk found = Train(*Cuda(Precision::kFp16), Parse(kText),
                           {.steps = 20, .clip_norm = 0.01f, .input_scale = 1000.0f});
  size_t left_out = 0;
  while (left_out + 1 < found.weights.size() &&
         found.weights[left_out] == found.weights[left_out + 1]) {
    EXPECT_THAT(found.gradients[left_out], testing::Each(0.0f));
    ++left_out;
  }
  EXPECT_GT(left_out, 0u) << "nothing has overflowed: the test tests nothing";
  EXPECT_LT(left_out, found.weights.size() - 1) << "no step was good";
  for (const double loss : found.losses) EXPECT_TRUE(std::isfinite(loss));
  // The first good step is of weights that nothing has moved yet.
  EXPECT_GT(Norm(found.gradients[left_out + 1]), 0.0);
}

}  // namespace
}  // namespace kumo
