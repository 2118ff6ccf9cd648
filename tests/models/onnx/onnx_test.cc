// What ONNX's own checker and onnxruntime make of what we write. KUMO_ONNX_PYTHON names a Python
// that has both; without one the tests that need them skip.
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

#include "models/graph/rewrites/rewrites.h"
#include "models/network.h"
#include "models/onnx/to_onnx.h"
#include "models/ops/layer.h"
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

  void ExpectEqual() {
    const std::string command = python_ + " " + KUMO_COMPARE_ONNX + " " + directory_.path();
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

 private:
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

TEST_F(OnnxRuntimeTest, PixelsBecomeInputsInTheModelItself) {
  Write("mnist_lenet", Zoo("mnist_lenet"), false, /*pixels=*/true);
  ExpectEqual();
}

}  // namespace
}  // namespace kumo
