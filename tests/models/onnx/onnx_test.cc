// What ONNX's own checker and onnxruntime make of what we write. KUMO_ONNX_PYTHON names a Python
// that has both; without one the tests that need them skip.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/backend/cpu/cpu_backend.h"
#include "models/graph/rewrites/rewrites.h"
#include "models/layers/layer.h"
#include "models/net/detector.h"
#include "models/network.h"
#include "models/onnx/to_onnx.h"
#include "tests/models/branched_network.h"
#include "tests/models/graph_scores.h"
#include "tests/models/onnx/exported_graphs.h"
#include "tests/models/ops/layer_cases.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

TEST(OnnxForms, ThereIsOneForEveryKindOfLayer) {
  Rng rng(1, RngPurpose::kTest);
  for (const LayerCase& layer_case : LayerCases()) {
    const Graph graph = GraphOf(layer_case);
    EXPECT_TRUE(ToOnnx(graph, RandomTensors(graph, &rng), {}).ok()) << layer_case.name;
  }
}

TEST(OnnxForms, TheSameNetworkMakesTheSameBytes) {
  const Graph graph = PlanNetwork(BranchedNetwork()).value();
  Rng rng(1, RngPurpose::kTest);
  const Tensors tensors = RandomTensors(graph, &rng);
  const auto one = ToOnnx(graph, tensors, {});
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one->SerializeAsString(), ToOnnx(graph, tensors, {})->SerializeAsString());
  EXPECT_EQ(one->graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  // Shared tensors are there once.
  std::set<std::string> names;
  for (const auto& tensor : one->graph().initializer()) {
    EXPECT_TRUE(names.insert(tensor.name()).second) << tensor.name();
  }
}

constexpr char kDetector[] = R"(
  name: "detector"
  input { channels: 2 height: 32 width: 32 }
  layers { name: "conv" convolution { outputs: 6 kernel: 3 stride: 4 pad: 1 } }
  layers { name: "relu" relu {} }
  layers { name: "top" convolution { outputs: 6 kernel: 8 } }
  layers { name: "offsets1" inputs: "relu" convolution { outputs: 16 kernel: 3 pad: 1 } }
  layers { name: "offsets2" inputs: "top" convolution { outputs: 24 kernel: 1 } }
  layers { name: "scores1" inputs: "relu" convolution { outputs: 16 kernel: 3 pad: 1 } }
  layers { name: "scores2" inputs: "top" convolution { outputs: 24 kernel: 1 } }
  layers { name: "loss" inputs: ["offsets1", "offsets2", "scores1", "scores2"]
           multibox { classes: 3 maps { step: 4 size: 8 next_size: 14 ratios: 2 }
                      maps { step: 32 size: 14 next_size: 25 ratios: [2, 3] } } })";

class OnnxRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* configured = std::getenv("KUMO_ONNX_PYTHON");
    python_ = configured != nullptr ? configured : "python3";
    const std::string modules = python_ + " -c 'import numpy, onnx, onnxruntime' 2>/dev/null";
    if (std::system(modules.c_str()) != 0) {
      GTEST_SKIP() << python_ << " has no onnx and onnxruntime (set KUMO_ONNX_PYTHON to one that "
                   << "has)";
    }
  }

  // What compare.py is to find equal, for batches of 1 and 3.
  void Write(const std::string& name, const Graph& graph, bool fold, bool pixels = false) {
    Rng rng(17, RngPurpose::kTest);
    const Tensors tensors = RandomTensors(graph, &rng);
    Graph exported = graph;
    Tensors weights = tensors;
    if (fold) {
      EXPECT_GT(FoldBatchNormalisation(&exported, &weights), 0);
    }
    OnnxOptions options;
    const Value& given = graph.values[0];
    const int64_t size = given.shape.size();
    if (pixels) options.pixels = PixelFormula{1.0f / 255, std::vector<float>(size, 33.25f)};
    const auto model = ToOnnx(exported, weights, options);
    ASSERT_TRUE(model.ok()) << name << ": " << model.status().message();
    const std::string folder = directory_ / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/model.onnx", std::ios::binary) << model->SerializeAsString();
    for (const int batch : {1, 3}) {
      std::vector<float> inputs = NumbersWithin(batch * size, 1, &rng);
      std::vector<int64_t> words(inputs.size());
      for (size_t i = 0; given.vocabulary > 0 && i < inputs.size(); ++i) {
        words[i] = static_cast<int64_t>(rng.NextBelow(given.vocabulary));
        inputs[i] = static_cast<float>(words[i]);
      }
      std::vector<uint8_t> bytes(inputs.size());
      for (size_t i = 0; pixels && i < inputs.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(rng.NextBelow(256));
        inputs[i] = options.pixels->scale * (bytes[i] - options.pixels->mean[0]);
      }
      const std::string of_batch = folder + "/" + std::to_string(batch);
      if (pixels) {
        WriteNumbers(of_batch + ".pixels", bytes);
      } else if (given.vocabulary > 0) {
        WriteNumbers(of_batch + ".input", words);
      } else {
        WriteNumbers(of_batch + ".input", inputs);
      }
      for (size_t i = 0; i < graph.outputs.size(); ++i) {
        WriteNumbers(of_batch + "." + graph.outputs[i].name,
                     OutputOf(graph, tensors, inputs, batch, static_cast<int>(i)));
      }
    }
  }

  // A detector on random pictures, before and after its choice of detections; the number
  // of detections.
  int64_t WriteDetector(const std::string& name, float spread, const DetectionRule& rule) {
    constexpr int kPictures = 3;
    const model::Network network = ParseNetwork(kDetector, name).value();
    const Graph graph = PlanNetwork(network).value();
    Rng rng(5, RngPurpose::kTest);
    Tensors tensors = RandomTensors(graph, &rng);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!graph.parameters[i].tensor.name.starts_with("scores")) continue;
      for (float& weight : tensors[i]) weight *= spread;
    }
    const auto backend = MakeCpuBackend(1);
    const auto net = Net::Make(network, kPictures, backend.get()).value();
    const ParameterLayout layout = ParameterLayout::Make(net->tensors()).value();
    std::vector<float> weights(layout.size()), gradients(layout.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::ranges::copy(tensors[i], weights.begin() + layout.tensor(static_cast<int>(i)).begin);
    }
    EXPECT_TRUE(net->Bind(layout, weights.data(), gradients.data()).ok());
    Fields fields = net->takes();
    fields[0].type = NumberType::kFloat32;
    for (const int list : {1, 2}) fields[list].extents[0] = 1;
    EXPECT_TRUE(net->Connect(fields, {}).ok());
    const std::vector<float> pictures =
        NumbersWithin(kPictures * graph.values[0].shape.size(), 1, &rng);
    const std::vector<int32_t> none(kPictures), classes(kPictures);
    const std::vector<Box> boxes(kPictures);
    const std::span<const std::byte> values[] = {std::as_bytes(std::span(pictures)),
                                                 std::as_bytes(std::span(classes)),
                                                 std::as_bytes(std::span(boxes))};
    const std::span<const int32_t> counts[] = {{}, none, none};
    EXPECT_TRUE(net->Load({kPictures, values, counts}).ok());
    net->Evaluate();
    const auto found = Detector::Of(net.get())->Detect(kPictures, rule).value();

    OnnxOptions options;
    WriteModel(name, graph, tensors, options);
    options.detections = rule;
    WriteModel(name + "_nms", graph, tensors, options);
    WriteNumbers(directory_ / name + "/3.input", pictures);
    WriteNumbers(directory_ / name + "_nms/3.input", pictures);
    WriteRaw(directory_ / name + "/3", *net, kPictures);
    return WriteFound(directory_ / name + "_nms/3", found, rule.most);
  }

  void ExpectEqual() {
    const std::string command = python_ + " " + KUMO_COMPARE_ONNX + " " + directory_.path();
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

 private:
  void WriteModel(const std::string& name, const Graph& graph, const Tensors& tensors,
                  const OnnxOptions& options) {
    const auto model = ToOnnx(graph, tensors, options);
    ASSERT_TRUE(model.ok()) << name << ": " << model.status().message();
    const std::string folder = directory_ / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/model.onnx", std::ios::binary) << model->SerializeAsString();
  }

  // The decoded boxes and the softmax of the scores of a detector that evaluated a minibatch.
  static void WriteRaw(const std::string& of_batch, Net& net, int pictures) {
    const MultiboxSpec& spec = *net.detector();
    const std::vector<Box> defaults = DefaultBoxes(spec.grids);
    const auto maps = net.LossInputs().value();
    std::vector<Box> boxes;
    std::vector<float> scores;
    for (int n = 0; n < pictures; ++n) {
      size_t box = 0;
      for (size_t m = 0; m < spec.grids.size(); ++m) {
        const BoxGrid& grid = spec.grids[m];
        const int64_t cells = grid.rows * grid.columns;
        const auto number = [&](size_t map, int64_t numbers, int64_t i) {
          const int64_t k = i / cells, cell = i % cells;
          std::vector<float> all;
          for (int64_t c = 0; c < numbers; ++c) {
            all.push_back(
                maps[map][((n * grid.boxes_per_cell() + k) * numbers + c) * cells + cell]);
          }
          return all;
        };
        for (int64_t i = 0; i < grid.boxes(); ++i, ++box) {
          const auto offsets = number(m, 4, i);
          boxes.push_back(
              DecodeBox({offsets[0], offsets[1], offsets[2], offsets[3]}, defaults[box]));
          double sum = 0;
          const auto before = number(spec.grids.size() + m, spec.scores(), i);
          for (const float score : before) sum += std::exp(static_cast<double>(score));
          for (const float score : before) {
            scores.push_back(static_cast<float>(std::exp(static_cast<double>(score)) / sum));
          }
        }
      }
    }
    WriteNumbers(of_batch + ".boxes", boxes);
    WriteNumbers(of_batch + ".scores", scores);
  }

  // The detections, padded to `most`; their number.
  static int64_t WriteFound(const std::string& of_batch,
                            const std::vector<std::vector<Detection>>& found, int most) {
    std::vector<Box> boxes;
    std::vector<float> scores, classes, counts;
    int64_t all = 0;
    for (const std::vector<Detection>& of_picture : found) {
      for (const Detection& one : of_picture) {
        boxes.push_back(one.box);
        scores.push_back(one.score);
        classes.push_back(static_cast<float>(one.class_index));
      }
      boxes.resize(boxes.size() + most - of_picture.size());
      scores.resize(boxes.size());
      classes.resize(boxes.size(), -1);
      counts.push_back(static_cast<float>(of_picture.size()));
      all += std::ssize(of_picture);
    }
    WriteNumbers(of_batch + ".boxes", boxes);
    WriteNumbers(of_batch + ".scores", scores);
    WriteNumbers(of_batch + ".classes", classes);
    WriteNumbers(of_batch + ".counts", counts);
    return all;
  }

  template <typename Number>
  static void WriteNumbers(const std::string& path, const std::vector<Number>& numbers) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
  }

  test::ScratchDirectory directory_;
  std::string python_;
};

TEST_F(OnnxRuntimeTest, EveryKindOfLayerGivesOurNumbers) {
  for (const LayerCase& layer_case : LayerCases()) {
    Write(layer_case.name, GraphOf(layer_case), /*fold=*/false);
  }
  ExpectEqual();
}

TEST_F(OnnxRuntimeTest, EveryKindOfLayerGivesOurNumbersBehindNarrowShapes) {
  int written = 0;
  for (const LayerCase& layer_case : LayerCases()) {
    if (layer_case.vocabulary > 0) continue;  // reads the network's input itself
    const size_t mixtures = layer_case.more.empty() ? 1 : std::size(kNarrow);
    for (size_t first = 0; first < std::size(kNarrow); ++first) {
      for (size_t i = 0; i < mixtures; ++i) {
        const size_t others = (first + i) % std::size(kNarrow);
        const std::optional<Graph> graph = GraphBehind(layer_case, first, others);
        if (!graph) continue;
        Write(layer_case.name + std::to_string(first) + std::to_string(others), *graph, false);
        ++written;
      }
    }
  }
  EXPECT_GT(written, 100);
  ExpectEqual();
}

TEST_F(OnnxRuntimeTest, NetworksGiveOurNumbersFoldedOrNot) {
  Write("mnist_lenet", Zoo("mnist_lenet"), false);
  Write("mnist_mlp", Zoo("mnist_mlp"), false);
  Write("cifar_resnet20", Zoo("cifar_resnet20"), false);
  Write("cifar_resnet20_folded", Zoo("cifar_resnet20"), true);
  Write("char_gpt_small", Zoo("char_gpt_small"), false);
  Write("branched_folded", PlanNetwork(BranchedNetwork()).value(), true);
  Write("of_losses", PlanNetwork(NetworkOfLosses()).value(), true);
  Write("of_numbers",
        PlanNetwork(ParseNetwork(R"(
    name: "n" input { channels: 3 height: 4 width: 4 }
    layers { name: "conv" convolution { outputs: 2 kernel: 3 } }
    layers { name: "loss" mean_squared_error {} })",
                                 "n")
                        .value())
            .value(),
        false);
  ExpectEqual();
}

TEST_F(OnnxRuntimeTest, ADetectorGivesItsBoxesAndTheDetectionsThatARuleChooses) {
  constexpr DetectionRule kRule = {.candidates = 60, .most = 40};
  // More than are kept, some, and none.
  EXPECT_EQ(WriteDetector("alike", 1, kRule), 3 * 40);
  const int64_t some = WriteDetector("spread", 30, kRule);
  EXPECT_GT(some, 3);
  EXPECT_LE(some, 3 * 40);
  EXPECT_EQ(WriteDetector("unsure", 0, {.least_score = 0.9f}), 0);
  ExpectEqual();
}

TEST(OnnxDetector, NamedOutputsStandBesideItsResults) {
  const std::string named = std::string(kDetector) + " outputs: \"relu\"";
  const Graph graph = PlanNetwork(ParseNetwork(named, "named").value()).value();
  Rng rng(1, RngPurpose::kTest);
  const auto model = ToOnnx(graph, RandomTensors(graph, &rng), {}).value();
  std::vector<std::string> outputs;
  for (const auto& output : model.graph().output()) outputs.push_back(output.name());
  EXPECT_EQ(outputs, (std::vector<std::string>{"boxes", "scores", "relu"}));
  std::string taken = named;
  for (size_t at = 0; (at = taken.find("relu\"", at)) != taken.npos;)
    taken.replace(at, 4, "counts");
  EXPECT_THAT(ParseNetwork(taken, "taken").status().message(),
              testing::HasSubstr("a result of a detector"));
}

TEST(Onnx, AFileThatIsTooLongIsRefused) {
  const Graph graph = Zoo("mnist_lenet");
  Rng rng(1, RngPurpose::kTest);
  const auto model = ToOnnx(graph, RandomTensors(graph, &rng), {}).value();
  const std::string bytes = model.SerializeAsString();
  EXPECT_EQ(*OnnxBytes(model), bytes);
  EXPECT_EQ(*OnnxBytes(model, bytes.size()), bytes);
  const auto refused = OnnxBytes(model, bytes.size() - 1);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              testing::HasSubstr("an ONNX file has at most 2 GiB, network mnist_lenet with its "
                                 "constants has 2 MiB; export safetensors"));
}

TEST(Onnx, PixelsNeedANetworkWithOneInput) {
  const Graph graph = PlanNetwork(ParseNetwork(R"(
      name: "two" input { name: "left" channels: 1 height: 4 width: 4 }
      input { name: "right" channels: 1 height: 4 width: 4 }
      layers { name: "both" inputs: "left" inputs: "right" concat {} }
      layers { name: "fc" fully_connected { outputs: 3 } }
      layers { name: "loss" softmax_cross_entropy {} })",
                                               "two")
                                      .value())
                          .value();
  Rng rng(1, RngPurpose::kTest);
  const Tensors tensors = RandomTensors(graph, &rng);
  EXPECT_TRUE(ToOnnx(graph, tensors, {}).ok());
  OnnxOptions options;
  options.pixels = PixelFormula{0.5f, {}, {}};
  EXPECT_EQ(ToOnnx(graph, tensors, options).status().message(),
            "--pixels: network two has 2 inputs; omit it, and compute the model's inputs from the "
            "pixels");
}

TEST_F(OnnxRuntimeTest, PixelsBecomeInputsInTheModelItself) {
  Write("mnist_lenet", Zoo("mnist_lenet"), false, /*pixels=*/true);
  ExpectEqual();
}

}  // namespace
}  // namespace kumo
