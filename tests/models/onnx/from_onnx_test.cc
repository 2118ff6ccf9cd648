// Models that come back from ONNX: what Kumo exports is read as the same graph with the same
// numbers, and bytes of strangers can only be refused.
#include "models/onnx/from_onnx.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "models/layers/layer.h"
#include "models/network.h"
#include "models/onnx/strided_view.h"
#include "models/onnx/to_onnx.h"
#include "tests/models/branched_network.h"
#include "tests/models/graph_scores.h"
#include "tests/models/onnx/exported_graphs.h"
#include "tests/models/ops/layer_cases.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Returned {
  ImportedModel model;
  Graph graph;
  Tensors tensors;
};

Result<Returned> Reread(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  KUMO_ASSIGN_OR_RETURN(const onnx::ModelProto parsed, ParseOnnx(model.SerializeAsString()));
  std::vector<std::string> gaps;
  KUMO_ASSIGN_OR_RETURN(ImportedModel imported, FromOnnx(parsed, options, nullptr, &gaps));
  // The text is what is used.
  KUMO_ASSIGN_OR_RETURN(const model::Network network,
                        ParseNetwork(NetworkFileText(imported.network, {"A comment."}), "n.pbtxt"));
  KUMO_ASSIGN_OR_RETURN(Graph graph, PlanNetwork(network));
  Tensors tensors;
  for (const ImportedTensor& tensor : imported.tensors) tensors.push_back(tensor.elements);
  return Returned{std::move(imported), std::move(graph), std::move(tensors)};
}

// The network goes out and comes back, and computes the same.
std::optional<Returned> ExpectReturns(const std::string& name, const Graph& graph) {
  Rng rng(3, RngPurpose::kTest);
  const Tensors tensors = RandomTensors(graph, &rng);
  const auto exported = ToOnnx(graph, tensors, {});
  EXPECT_TRUE(exported.ok()) << name;
  if (!exported.ok()) return std::nullopt;
  auto returned = Reread(*exported);
  EXPECT_TRUE(returned.ok()) << name << ": " << returned.status().message();
  if (!returned.ok()) return std::nullopt;
  constexpr int kBatch = 2;
  const Value& input = graph.values[0];
  std::vector<float> inputs = NumbersWithin(kBatch * input.shape.size(), 1, &rng);
  for (float& x : inputs) {
    if (input.vocabulary > 0) x = static_cast<float>(rng.NextBelow(input.vocabulary));
  }
  EXPECT_EQ(returned->graph.values[0].vocabulary, input.vocabulary) << name;
  EXPECT_EQ(returned->graph.outputs.size(), graph.outputs.size()) << name;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const int output = static_cast<int>(i);
    const std::vector<float> wanted = OutputOf(graph, tensors, inputs, kBatch, output);
    const std::vector<float> found =
        OutputOf(returned->graph, returned->tensors, inputs, kBatch, output);
    EXPECT_EQ(found.size(), wanted.size()) << name;
    if (found.size() != wanted.size()) return std::nullopt;
    float largest = 0;
    float worst = 0;
    for (size_t k = 0; k < wanted.size(); ++k) {
      largest = std::max(largest, std::abs(wanted[k]));
      worst = std::max(worst, std::abs(wanted[k] - found[k]));
    }
    EXPECT_LE(worst, 1e-5f * largest) << name << "\n"
                                      << NetworkFileText(returned->model.network, {});
  }
  return *std::move(returned);
}

// "relu1 relu <- conv1", without the layers that leave numbers as they are.
std::vector<std::string> LayersOf(const Graph& graph) {
  std::map<int, std::string> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) names[static_cast<int>(i)] = "input";
  std::vector<std::string> layers;
  for (const Node& node : graph.nodes) {
    const bool moves_nothing =
        node.As<DropoutSpec>() != nullptr || node.As<FlattenSpec>() != nullptr;
    names[node.outputs[0]] = moves_nothing ? names[node.inputs[0]] : node.name;
    if (moves_nothing) continue;
    std::string text = node.name + " " + node.kind + " <-";
    for (const int input : node.inputs) text += " " + names[input];
    for (const int parameter : node.parameters) {
      const TensorSpec& tensor = graph.parameters[parameter].tensor;
      text += ", " + tensor.name + " " + tensor.ShapeText();
    }
    layers.push_back(std::move(text));
  }
  return layers;
}

TEST(FromOnnx, EveryKindOfLayerReturns) {
  for (const LayerCase& layer_case : LayerCases()) {
    const Graph graph = GraphOf(layer_case);
    const auto returned = ExpectReturns(layer_case.name, graph);
    if (!returned) continue;
    // As a layer of the same kind, unless it only moves numbers.
    const Node* const layer = &graph.nodes.back();
    const bool moves = layer->As<RearrangeSpec>() != nullptr ||
                       layer->As<FlattenSpec>() != nullptr || layer->As<DropoutSpec>() != nullptr;
    if (moves) continue;
    const Node& again = returned->graph.nodes.back();
    EXPECT_STREQ(again.kind, layer->kind) << layer_case.name;
    // And with no others around it; a sum of three is two.
    const size_t sums = layer->inputs.size() > 2 ? layer->inputs.size() - 2 : 0;
    const bool is_sum = std::string_view(layer->kind) == "add";
    EXPECT_EQ(LayersOf(returned->graph).size(), LayersOf(graph).size() + (is_sum ? sums : 0))
        << layer_case.name << "\n"
        << NetworkFileText(returned->model.network, {});
  }
}

TEST(FromOnnx, EveryKindOfLayerReturnsBehindNarrowShapes) {
  for (const LayerCase& layer_case : LayerCases()) {
    if (layer_case.vocabulary > 0) continue;  // reads the network's input itself
    const size_t mixtures = layer_case.more.empty() ? 1 : std::size(kNarrow);
    for (size_t first = 0; first < std::size(kNarrow); ++first) {
      for (size_t i = 0; i < mixtures; ++i) {
        const auto graph = GraphBehind(layer_case, first, (first + i) % std::size(kNarrow));
        if (graph)
          ExpectReturns(layer_case.name + std::to_string(first) + std::to_string(i), *graph);
      }
    }
  }
}

TEST(FromOnnx, SuppliedNetworksReturnAsTheSameLayers) {
  for (const char* const name :
       {"mnist_lenet", "mnist_mlp", "cifar_convnet", "cifar_resnet20", "char_gpt_small"}) {
    const Graph graph = Zoo(name);
    const auto returned = ExpectReturns(name, graph);
    ASSERT_TRUE(returned) << name;
    EXPECT_EQ(LayersOf(returned->graph), LayersOf(graph)) << name;
    EXPECT_EQ(returned->graph.name, name);
    EXPECT_EQ(returned->graph.loss().kind, graph.loss().kind);
  }
}

TEST(FromOnnx, BranchesOutputsAndSharedTensorsReturn) {
  const Graph graph = PlanNetwork(BranchedNetwork()).value();
  const auto returned = ExpectReturns("branched", graph);
  ASSERT_TRUE(returned);
  EXPECT_EQ(returned->graph.tensors().size(), graph.tensors().size());
}

TEST(FromOnnx, AllOutputsReturn) {
  const auto returned = ExpectReturns("of_losses", PlanNetwork(NetworkOfLosses()).value());
  ASSERT_TRUE(returned);
  EXPECT_THAT(returned->model.notes, testing::Contains(HasSubstr("frozen")));
}

TEST(FromOnnx, NetworksOfNumbersReturnWithTheirLoss) {
  const Graph graph = PlanNetwork(ParseNetwork(R"(
    name: "n" input { extents: 4 }
    layers { name: "block.0.fc" fully_connected { outputs: 8 } }
    layers { name: "block.1" relu {} }
    layers { name: "fc" fully_connected { outputs: 2 } }
    layers { name: "loss" mean_squared_error {} })",
                                               "n")
                                      .value())
                          .value();
  const auto returned = ExpectReturns("numbers", graph);
  ASSERT_TRUE(returned);
  EXPECT_STREQ(returned->graph.loss().kind, "mean_squared_error");
  EXPECT_EQ(LayersOf(returned->graph), LayersOf(graph));  // with dots in their names
}

TEST(FromOnnx, PixelsAreLeftToTheData) {
  const Graph graph = Zoo("mnist_lenet");
  Rng rng(1, RngPurpose::kTest);
  OnnxOptions options;
  options.pixels = PixelFormula{0.00390625f, {}, {}};
  const auto exported = ToOnnx(graph, RandomTensors(graph, &rng), options);
  ASSERT_TRUE(exported.ok());
  const auto returned = Reread(*exported);
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_EQ(LayersOf(returned->graph), LayersOf(graph));
  ASSERT_FALSE(returned->model.notes.empty());
  EXPECT_THAT(returned->model.notes[0], HasSubstr("(pixels - (0)) / (256)"));
}

// A model of text: nodes as onnx.proto has them, of float input "x" 2 x 3 x 4 and output "y".
onnx::ModelProto ModelOf(const std::string& nodes) {
  onnx::ModelProto model;
  const std::string text = R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "b" }
      dim { dim_value: 2 } dim { dim_value: 3 } dim { dim_value: 4 } } } } }
    output { name: "y" }
    initializer { name: "w" dims: 5 dims: 24 data_type: 1 raw_data: ")" +
                           std::string(5 * 24 * 4, 'A') + R"(" } )" + nodes + " }";
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

std::string RefusalOf(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  const auto returned = Reread(model, options);
  return returned.ok() ? "" : returned.status().message();
}

constexpr char kHead[] = R"(node { name: "/flat" op_type: "Flatten" input: "a" output: "f" }
  node { name: "/fc/Gemm" op_type: "Gemm" input: "f" input: "w" output: "y"
         attribute { name: "transB" type: INT i: 1 } })";

TEST(FromOnnx, ANodeWithoutACounterpartIsNamedWithItsOpShapeAndRemedy) {
  EXPECT_EQ(RefusalOf(ModelOf(R"(node { name: "/act/HardSwish" op_type: "HardSwish" input: "x"
                                        output: "a" } )" +
                              std::string(kHead))),
            "node /act/HardSwish (HardSwish, 2x3x4) has no counterpart: use SiLU in its place");
  EXPECT_THAT(RefusalOf(ModelOf(R"(node { name: "up" op_type: "Resize" input: "x" output: "a" } )" +
                                std::string(kHead))),
              HasSubstr("node up (Resize, 2x3x4) has no counterpart"));
  // One that no output depends on is no matter.
  EXPECT_EQ(RefusalOf(ModelOf(R"(node { name: "up" op_type: "Resize" input: "x" output: "b" }
                                 node { op_type: "Relu" input: "x" output: "a" } )" +
                              std::string(kHead))),
            "");
  EXPECT_THAT(RefusalOf(ModelOf(R"(node { name: "c" op_type: "MaxPool" input: "x" output: "a"
        attribute { name: "kernel_shape" type: INTS ints: 2 ints: 3 } } )" +
                                std::string(kHead))),
              HasSubstr("kernel_shape must be square, is 2x3"));
  EXPECT_THAT(RefusalOf(ModelOf(R"(node { name: "m" domain: "com.microsoft" op_type: "FusedConv"
                                          input: "x" output: "a" } )" +
                                std::string(kHead))),
              HasSubstr("com.microsoft"));
}

// An optional input that is computed counts, and one of the empty name is left out.
TEST(FromOnnx, ThePageOfImportsNamesEveryOpThatIsRead) {
  std::ifstream file(KUMO_EXPORT_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find("## Import a network: ONNX");
  ASSERT_NE(begin, page.npos);
  std::string section = page.substr(begin, page.find("\n## ", begin) - begin);
  std::ranges::replace_if(
      section, [](unsigned char c) { return std::isalnum(c) == 0; }, ' ');
  std::istringstream text(section);
  const std::set<std::string> words{std::istream_iterator<std::string>(text), {}};
  for (const std::string& op : ImportedOps()) EXPECT_TRUE(words.contains(op)) << op;
}

TEST(FromOnnx, OptionalInputsThatAreComputedAreNotDropped) {
  const auto model = [](const std::string& node) {
    return ModelOf(R"(
        initializer { name: "s" dims: 4 data_type: 1 float_data: [1, 2, 3, 4] }
        initializer { name: "k" dims: [2, 2, 1, 1] data_type: 1 float_data: [1, 2, 3, 4] }
        initializer { name: "zero" dims: 1 data_type: 7 int64_data: 0 }
        initializer { name: "one" dims: 1 data_type: 7 int64_data: 1 }
        initializer { name: "whole" dims: 1 data_type: 7 int64_data: 9 }
        node { op_type: "Relu" input: "x" output: "c" }
        node { name: "n" output: "a" )" +
                   node + " }" + std::string(kHead));
  };
  const std::pair<const char*, const char*> cases[] = {
      {R"(op_type: "LayerNormalization" input: ["x", "s", "c"])", "its shift must be a constant"},
      {R"(op_type: "Conv" input: ["x", "k", "c"])", "its bias must be a constant"},
      {R"(op_type: "ConvTranspose" input: ["x", "k", "c"])", "its bias must be a constant"},
      {R"(op_type: "Dropout" input: ["x", "c"])", "its ratio must be a constant"},
      {R"(op_type: "Slice" input: ["x", "zero", "one", "c"])", "must be constants"},
      {R"(op_type: "Slice" input: ["x", "zero", "one", "one", "c"])", "must be constants"},
      {R"(op_type: "Split" input: ["x", "c"] attribute { name: "axis" type: INT i: 1 })",
       "split must be a constant"}};
  for (const auto& [node, words] : cases) {
    EXPECT_THAT(RefusalOf(model(node)), testing::AllOf(HasSubstr("node n "), HasSubstr(words)))
        << node;
  }
  for (const char* const node :
       {R"(op_type: "LayerNormalization" input: ["x", "s", ""])",
        R"(op_type: "Conv" input: ["x", "k", ""])", R"(op_type: "Dropout" input: ["x", ""])",
        R"(op_type: "Slice" input: ["x", "zero", "whole", "one", ""])",
        R"(op_type: "Split" input: ["x", ""]
                                    attribute { name: "axis" type: INT i: 1 })"}) {
    EXPECT_EQ(RefusalOf(model(node)), "") << node;
  }
}

// Outputs "y" and "z" are parts of a layer's five outputs: of two and three, or both of the first
// two.
onnx::ModelProto ModelOfParts(bool different) {
  onnx::ModelProto model = ModelOf(R"(
    initializer { name: "zero" dims: 1 data_type: 7 int64_data: 0 }
    initializer { name: "one" dims: 1 data_type: 7 int64_data: 1 }
    initializer { name: "two" dims: 1 data_type: 7 int64_data: 2 }
    initializer { name: "five" dims: 1 data_type: 7 int64_data: 5 }
    node { op_type: "Flatten" input: "x" output: "f" }
    node { op_type: "Gemm" input: "f" input: "w" output: "g" attribute { name: "transB" type: INT i: 1 } }
    node { op_type: "Slice" input: "g" input: "zero" input: "two" input: "one" output: "y" }
    node { op_type: "Slice" input: "g" input: "zero" input: "two" input: "one" output: "z" })");
  if (different) {
    onnx::NodeProto* const slice = model.mutable_graph()->mutable_node(3);
    slice->set_input(1, "two");
    slice->set_input(2, "five");
  }
  model.mutable_graph()->add_output()->set_name("z");
  return model;
}

TEST(FromOnnx, PartsOfALayersOutputAreOutputsOfTheirOwn) {
  const auto parts = Reread(ModelOfParts(true));
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ(parts->graph.outputs.size(), 2);
  EXPECT_EQ(parts->graph.values[parts->graph.outputs[0].value].shape.size(), 2);
  EXPECT_EQ(parts->graph.values[parts->graph.outputs[1].value].shape.size(), 3);
  const auto twice = Reread(ModelOfParts(false));
  ASSERT_TRUE(twice.ok()) << twice.status().message();
  EXPECT_EQ(twice->graph.outputs.size(), 1);
}

// A layer behind a cast to a type of TensorProto and back.
Result<Returned> RereadCastTo(int type) {
  const auto cast = [](const char* from, const char* to, int as) {
    return std::string("node { op_type: 'Cast' input: '") + from + "' output: '" + to +
           "' attribute { name: 'to' type: INT i: " + std::to_string(as) + " } } ";
  };
  return Reread(ModelOf(cast("x", "c", type) + cast("c", "d", onnx::TensorProto::FLOAT) +
                        "node { op_type: 'Flatten' input: 'd' output: 'f' } "
                        "node { op_type: 'Gemm' input: 'f' input: 'w' output: 'y' "
                        "attribute { name: 'transB' type: INT i: 1 } }"));
}

TEST(FromOnnx, CastsThatTruncateHaveNoCounterpart) {
  using onnx::TensorProto;
  for (const int type : {TensorProto::FLOAT16, TensorProto::DOUBLE, TensorProto::BFLOAT16}) {
    const auto kept = RereadCastTo(type);
    EXPECT_TRUE(kept.ok()) << kept.status().message();
  }
  for (const int type : {TensorProto::INT64, TensorProto::INT32, TensorProto::BOOL}) {
    EXPECT_THAT(RereadCastTo(type).status().message(), HasSubstr("it rounds or truncates"));
  }
}

TEST(FromOnnx, AFreeExtentNeedsAShape) {
  onnx::ModelProto model =
      ModelOf(R"(node { op_type: "Relu" input: "x" output: "a" } )" + std::string(kHead));
  auto* const shape = model.mutable_graph()
                          ->mutable_input(0)
                          ->mutable_type()
                          ->mutable_tensor_type()
                          ->mutable_shape();
  shape->mutable_dim(3)->set_dim_param("width");
  EXPECT_THAT(RefusalOf(model), HasSubstr("--input-shape"));
  ImportOptions options;
  options.input = {2, 3, 4};
  EXPECT_EQ(RefusalOf(model, options), "");
  options.input = {2, 3, 5};
  EXPECT_NE(RefusalOf(model, options), "");
}

TEST(FromOnnx, WhatIsNoModelIsRefused) {
  EXPECT_FALSE(ParseOnnx("no protobuf").ok());
  EXPECT_THAT(RefusalOf(onnx::ModelProto()), HasSubstr("no ONNX model"));
  onnx::ModelProto model = ModelOf(R"(node { op_type: "Relu" input: "z" output: "y" })");
  EXPECT_THAT(RefusalOf(model), HasSubstr("which no node before it computes"));
  model = ModelOf(kHead);
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(RefusalOf(model), HasSubstr("tensor w"));
  // A file beside it is in its folder.
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 5);
  model.mutable_graph()->mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* const entry = model.mutable_graph()->mutable_initializer(0)->add_external_data();
  entry->set_key("location");
  entry->set_value("../../etc/passwd");
  std::vector<std::string> gaps;
  const auto escaped = FromOnnx(
      model, {},
      [](const std::string&, int64_t, int64_t) -> Result<std::string> { return std::string(); },
      &gaps);
  EXPECT_THAT(escaped.status().message(), HasSubstr("not in the model's folder"));
}

// A model of text with an input of integers "x" of that length, a table "t" of 6 rows, and output
// "y".
onnx::ModelProto ModelOfTokens(int64_t length, const std::string& nodes) {
  onnx::ModelProto model;
  const std::string text =
      R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    input { name: "x" type { tensor_type { elem_type: 7 shape { dim { dim_param: "b" }
      dim { dim_value: )" +
      std::to_string(length) + R"( } } } } }
    output { name: "y" }
    initializer { name: "t" dims: 6 dims: 4 data_type: 1 raw_data: ")" +
      std::string(6 * 4 * 4, 'A') + R"(" } )" + nodes + " }";
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

TEST(FromOnnx, AnEmbeddingOfAPartOfTheInputIsRefused) {
  constexpr char kPart[] = R"(
    initializer { name: "zero" dims: 1 data_type: 7 int64_data: 0 }
    initializer { name: "one" dims: 1 data_type: 7 int64_data: 1 }
    initializer { name: "end" dims: 1 data_type: 7 int64_data: 64 }
    node { op_type: "Slice" input: "x" input: "zero" input: "end" input: "one" output: "part" }
    node { name: "emb" op_type: "Gather" input: "t" input: "part" output: "y" })";
  EXPECT_THAT(RefusalOf(ModelOfTokens(128, kPart)),
              HasSubstr("node emb (Gather, 64) has no counterpart: an embedding reads all of an "
                        "input of integers, in its order"));
  EXPECT_EQ(RefusalOf(ModelOfTokens(64, kPart)), "");
}

TEST(FromOnnx, ATableWithoutRowsIsRefused) {
  EXPECT_THAT(RefusalOf(ModelOfTokens(5, R"(
                  initializer { name: "none" dims: 0 dims: 8 data_type: 1 }
                  node { name: "emb" op_type: "Gather" input: "none" input: "x" output: "y" })")),
              HasSubstr("node emb (Gather, 5) has no counterpart: its table has no rows"));
}

TEST(FromOnnx, ASplitWithoutOutputsIsNoMatter) {
  EXPECT_EQ(RefusalOf(ModelOf(R"(node { op_type: "Split" input: "x"
                                        attribute { name: "axis" type: INT i: 1 } }
                                 node { op_type: "Relu" input: "x" output: "a" } )" +
                              std::string(kHead))),
            "");
}

TEST(FromOnnx, AConstantThatIsExpandedToNothingIsEmpty) {
  EXPECT_THAT(RefusalOf(ModelOf(R"(
                  initializer { name: "one" dims: 1 data_type: 1 float_data: 1 }
                  initializer { name: "shape" dims: 2 data_type: 7 int64_data: 3 int64_data: 0 }
                  node { op_type: "Expand" input: "one" input: "shape" output: "none" }
                  node { name: "sum" op_type: "Add" input: "x" input: "none" output: "a" } )" +
                                std::string(kHead))),
              HasSubstr("node sum (Add, 2x3x4) has no counterpart"));
}

// An attention with one position: `mask` is a node from the scores "s" to "m".
onnx::ModelProto ModelOfOnePosition(const std::string& mask) {
  onnx::ModelProto model = ModelOf(R"(
    initializer { name: "half" data_type: 1 float_data: 0.5 }
    initializer { name: "zero" data_type: 1 float_data: 0 }
    initializer { name: "low" data_type: 1 float_data: -1e9 }
    initializer { name: "yes" data_type: 9 int32_data: 1 }
    node { op_type: "Relu" input: "x" output: "r" }
    node { op_type: "Transpose" input: "r" output: "k"
           attribute { name: "perm" type: INTS ints: 0 ints: 1 ints: 3 ints: 2 } }
    node { op_type: "MatMul" input: "r" input: "k" output: "p" }
    node { op_type: "Mul" input: "p" input: "half" output: "s" } )" +
                                   mask + R"(
    node { op_type: "Softmax" input: "m" output: "u" }
    node { op_type: "MatMul" input: "u" input: "r" output: "a" } )" +
                                   std::string(kHead));
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::TensorShapeProto& shape =
      *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(2)->set_dim_value(1);
  graph.mutable_initializer(0)->set_dims(0, 15);
  graph.mutable_initializer(0)->set_dims(1, 8);
  return model;
}

TEST(FromOnnx, ScalarMasksFitAnAttentionWithOnePosition) {
  for (const char* const mask :
       {R"(node { op_type: "Add" input: "s" input: "zero" output: "m" })",
        R"(node { op_type: "Where" input: "yes" input: "s" input: "low" output: "m" })"}) {
    const auto returned = Reread(ModelOfOnePosition(mask));
    ASSERT_TRUE(returned.ok()) << returned.status().message();
    EXPECT_THAT(LayersOf(returned->graph), testing::Contains(HasSubstr(" attention <-")));
  }
}

// The second layer has one tensor, whose name and shape read as those of the first layer's two.
TEST(FromOnnx, LayersOfOtherNumbersOfTensorsShareNone) {
  const auto returned = Reread(ModelOf(R"(
    initializer { name: "s" dims: 4 data_type: 1 float_data: [1, 2, 3, 4] }
    initializer { name: "t" dims: 4 data_type: 1 float_data: [1, 2, 3, 5] }
    initializer { name: "s[4]t" dims: 4 data_type: 1 float_data: [1, 2, 3, 4] }
    node { op_type: "LayerNormalization" input: "x" input: "s" input: "t" output: "n" }
    node { op_type: "LayerNormalization" input: "n" input: "s[4]t" output: "a" } )" +
                                       std::string(kHead)));
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_EQ(returned->graph.tensors().size(), 2 + 1 + 1);
}

// Extent `axis` of the first input's sample.
void SetExtent(int axis, int64_t extent, onnx::ModelProto* model) {
  model->mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(axis + 1)
      ->set_dim_value(extent);
}

// Numbers of one group stand for as many channels as the input declares.
TEST(FromOnnx, ANormalisationDoesNotGrowWithTheDeclaredInput) {
  onnx::ModelProto model = ModelOf(R"(
    initializer { name: "one" dims: 1 data_type: 1 float_data: 1 }
    node { name: "norm" op_type: "GroupNormalization" input: "x" input: "one" input: "one"
           output: "y" })");
  SetExtent(0, 1 << 10, &model);
  EXPECT_EQ(RefusalOf(model), "");
  SetExtent(0, 1 << 25, &model);
  SetExtent(1, 1, &model);
  SetExtent(2, 1, &model);
  EXPECT_THAT(RefusalOf(model), HasSubstr("node norm (GroupNormalization, 33554432x1x1) has no "
                                          "counterpart: the model computes too many constants"));
}

// The error of a chain of `nodes` layers that all read the file's one matrix or vector, by an op
// with `operands` of it behind the chain.
std::string RefusalOfChain(const std::string& op, const std::vector<std::string>& operands,
                           int nodes) {
  constexpr int64_t kNumbers = 1 << 10;
  onnx::ModelProto model = ModelOf("");
  onnx::GraphProto& graph = *model.mutable_graph();
  SetExtent(0, kNumbers, &model);
  graph.mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim()
      ->DeleteSubrange(2, 2);
  onnx::TensorProto& matrix = *graph.mutable_initializer(0);
  matrix.set_dims(0, kNumbers);
  matrix.set_dims(1, kNumbers);
  matrix.set_raw_data(std::string(kNumbers * kNumbers * sizeof(float), 'A'));
  std::string from = "x";
  for (int i = 0; i < nodes; ++i) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_name("node" + std::to_string(i));
    node.set_op_type(op);
    node.add_input(from);
    for (const std::string& operand : operands) node.add_input(operand);
    from = i + 1 == nodes ? "y" : "a" + std::to_string(i);
    node.add_output(from);
  }
  return RefusalOf(model);
}

TEST(FromOnnx, CopiesOfOneTensorAreBounded) {
  EXPECT_EQ(RefusalOfChain("Gemm", {"w"}, 10), "");
  EXPECT_THAT(RefusalOfChain("Gemm", {"w"}, 60),
              HasSubstr("the model computes too many constants"));
  EXPECT_THAT(RefusalOfChain("MatMul", {"w"}, 60),
              HasSubstr("the model computes too many constants"));
}

TEST(FromOnnx, ARangeOfAFileThatManyTensorsNameCounts) {
  constexpr int64_t kBytes = 4 << 20;
  const auto refusal = [](int tensors, bool one_range) {
    onnx::ModelProto model =
        ModelOf(R"(node { op_type: "Relu" input: "x" output: "a" } )" + std::string(kHead));
    for (int i = 0; i < tensors; ++i) {
      onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
      tensor.set_name("t" + std::to_string(i));
      tensor.set_data_type(onnx::TensorProto::FLOAT);
      tensor.add_dims(kBytes / 4);
      tensor.set_data_location(onnx::TensorProto::EXTERNAL);
      const auto add = [&tensor](const char* key, const std::string& value) {
        tensor.add_external_data()->set_key(key);
        tensor.mutable_external_data()->rbegin()->set_value(value);
      };
      add("location", "weights");
      // Ranges that overlap, or those that do not.
      add("offset", std::to_string(one_range ? i : i * kBytes));
      add("length", std::to_string(kBytes));
    }
    std::vector<std::string> gaps;
    const auto read = [](const std::string&, int64_t, int64_t length) -> Result<std::string> {
      return std::string(length, 'A');
    };
    return FromOnnx(model, {}, read, &gaps).status().message();
  };
  EXPECT_EQ(refusal(20, false), "");
  EXPECT_EQ(refusal(4, true), "");
  EXPECT_THAT(refusal(20, true), HasSubstr("tensor t"));
  EXPECT_THAT(refusal(20, true), HasSubstr("the model computes too many constants"));
}

// The scores of a model whose text is `nodes` behind an input "x" of a sample of these extents,
// of batch 2 and with inputs 1, 2, 3 and so on; "w" is a matrix of ones with 5 rows.
struct Scored {
  Returned returned;
  std::vector<float> inputs, scores;  // of one sample
};
Scored ScoresOf(const std::vector<int64_t>& extents, const std::string& nodes) {
  onnx::ModelProto model = ModelOf(nodes + R"( node { op_type: "Flatten" input: "a" output: "f" }
    node { op_type: "Gemm" input: "f" input: "w" output: "y"
           attribute { name: "transB" type: INT i: 1 } })");
  auto& dims = *model.mutable_graph()
                    ->mutable_input(0)
                    ->mutable_type()
                    ->mutable_tensor_type()
                    ->mutable_shape()
                    ->mutable_dim();
  dims.DeleteSubrange(1, 3);
  int64_t size = 1;
  for (const int64_t extent : extents) {
    dims.Add()->set_dim_value(extent);
    size *= extent;
  }
  onnx::TensorProto& matrix = *model.mutable_graph()->mutable_initializer(0);
  matrix.set_dims(1, size);
  const std::vector<float> ones(5 * size, 1);
  matrix.set_raw_data(ones.data(), ones.size() * sizeof(float));
  auto returned = Reread(model);
  EXPECT_TRUE(returned.ok()) << returned.status().message();
  if (!returned.ok()) return {};
  Scored scored = {*std::move(returned), std::vector<float>(size), {}};
  std::iota(scored.inputs.begin(), scored.inputs.end(), 1.0f);
  scored.scores = OutputOf(scored.returned.graph, scored.returned.tensors, scored.inputs, 1);
  return scored;
}

TEST(FromOnnx, ANormalisationOfChannelsIsNoneOfAFlatPicture) {
  EXPECT_THAT(RefusalOf(ModelOf(R"(
      initializer { name: "mean" dims: 2 dims: 1 dims: 1 data_type: 1 float_data: [1, 2] }
      initializer { name: "more" dims: 24 data_type: 1 raw_data: ")" +
                                std::string(24 * 4, 'A') + R"(" }
      node { op_type: "Sub" input: "x" input: "mean" output: "d" }
      node { op_type: "Flatten" input: "d" output: "e" }
      node { name: "mul" op_type: "Mul" input: "e" input: "more" output: "a" } )" +
                                std::string(kHead))),
              HasSubstr("node mul (Mul, 24) has no counterpart: only an input of the model is "
                        "scaled or shifted by constants"));
}

constexpr char kNormalisation[] = R"(
  initializer { name: "mean" dims: 4 data_type: 1 float_data: [1, 2, 3, 5] }
  initializer { name: "std" dims: 4 data_type: 1 float_data: [1, 2, 4, 0.5] }
  node { op_type: "Sub" input: "x" input: "mean" output: "d" }
  node { op_type: "Div" input: "d" input: "std" output: "a" })";

TEST(FromOnnx, ANormalisationOfNumbersIsALayer) {
  const Scored scored = ScoresOf({4}, kNormalisation);
  EXPECT_THAT(scored.scores, testing::Each(testing::FloatNear(-2.0f, 1e-6f)));
  EXPECT_THAT(LayersOf(scored.returned.graph),
              testing::Contains(HasSubstr("batch_normalisation batch_normalisation <- input")));
  EXPECT_THAT(scored.returned.model.notes,
              testing::Contains(HasSubstr("normalises its input x; layer "
                                          "batch_normalisation does that, and is frozen")));
  EXPECT_THAT(scored.returned.model.notes, testing::Not(testing::Contains(HasSubstr("set data."))));
  EXPECT_FALSE(scored.returned.model.network.layers(0).trainable());
}

TEST(FromOnnx, PlacesOfASequenceAreALayer) {
  const Scored scored = ScoresOf({2, 3}, R"(
      initializer { name: "places" dims: 1 dims: 2 dims: 3 data_type: 1
                    float_data: [1, 2, 3, 4, 5, 7] }
      node { op_type: "Add" input: "x" input: "places" output: "a" })");
  EXPECT_THAT(scored.scores, testing::Each(testing::FloatNear(21.0f + 22.0f, 1e-5f)));
  EXPECT_THAT(LayersOf(scored.returned.graph),
              testing::Contains(HasSubstr(" positional_embedding <- input")));
}

constexpr char kNormalisedPicture[] = R"(
  initializer { name: "mean" dims: 2 dims: 1 dims: 1 data_type: 1 float_data: [1, 2] }
  initializer { name: "std" data_type: 1 float_data: 2 }
  node { op_type: "Sub" input: "x" input: "mean" output: "d" }
  node { op_type: "Div" input: "d" input: "std" output: "n" })";

TEST(FromOnnx, APictureThatIsReadInOtherWaysTooIsNormalisedByALayer) {
  const Scored alone = ScoresOf({2, 1, 2}, kNormalisedPicture + std::string(R"(
      node { op_type: "Relu" input: "n" output: "a" })"));
  EXPECT_THAT(alone.returned.model.notes, testing::Contains(HasSubstr("(x - (1, 2)) / (2, 2)")));
  const Scored both = ScoresOf({2, 1, 2}, kNormalisedPicture + std::string(R"(
      node { op_type: "Add" input: "n" input: "x" output: "a" })"));
  EXPECT_THAT(both.scores, testing::Each(testing::FloatNear(10.0f + 2.0f, 1e-5f)));
  EXPECT_THAT(both.returned.model.notes, testing::Not(testing::Contains(HasSubstr("set data."))));
}

TEST(FromOnnx, OnlyAnImageThatIsSubtractedFromAPictureIsAMeanImage) {
  constexpr char kImage[] = R"(
      initializer { name: "image" dims: 2 dims: 1 dims: 2 data_type: 1 float_data: [1, 2, 3, 4] }
      node { name: "op" op_type: "Sub" input: "x" input: "image" output: "n" }
      node { op_type: "Relu" input: "n" output: "a" })";
  EXPECT_THAT(ScoresOf({2, 1, 2}, kImage).returned.model.notes,
              testing::Contains(HasSubstr("(x - (MEAN IMAGE))")));
  // One number of each channel is no image.
  std::string channels = kImage;
  channels.replace(channels.find("[1, 2, 3, 4]"), 12, "[1, 1, 3, 3]");
  EXPECT_THAT(ScoresOf({2, 1, 2}, channels).returned.model.notes,
              testing::Contains(HasSubstr("(x - (1, 3)) / (1, 1)")));
  onnx::ModelProto model = ModelOf(kImage + std::string(kHead));
  SetExtent(1, 1, &model);
  SetExtent(2, 2, &model);
  for (const char* const op : {"Add", "Mul", "Div"}) {
    model.mutable_graph()->mutable_node(0)->set_op_type(op);
    EXPECT_THAT(RefusalOf(model), HasSubstr("node op (" + std::string(op) +
                                            ", 2x1x2) has no counterpart: only an input"));
  }
}

// Scores "f" of five classes of the model's input, and other nodes behind them; outputs have the
// names "y", if `first`, and "z".
onnx::ModelProto ModelWithScores(const std::string& nodes, bool first) {
  onnx::ModelProto model = ModelOf(R"(node { op_type: "Flatten" input: "x" output: "e" }
    node { op_type: "Gemm" input: "e" input: "w" output: "f"
           attribute { name: "transB" type: INT i: 1 } } )" +
                                   nodes);
  if (!first) model.mutable_graph()->clear_output();
  model.mutable_graph()->add_output()->set_name("z");
  return model;
}

TEST(FromOnnx, ASoftmaxIsLeftToTheLossOfTheFirstOutputOnly) {
  const auto notes = [](const onnx::ModelProto& model, std::optional<ImportLoss> loss) {
    ImportOptions options;
    options.loss = loss;
    const auto returned = Reread(model, options);
    EXPECT_TRUE(returned.ok()) << returned.status().message();
    std::string all;
    for (const std::string& note :
         returned.ok() ? returned->model.notes : std::vector<std::string>()) {
      all += note + "\n";
    }
    return all;
  };
  constexpr char kSoftmax[] = R"(node { op_type: "Softmax" input: "f" output: "z" })";
  const onnx::ModelProto alone = ModelWithScores(kSoftmax, false);
  EXPECT_EQ(notes(alone, std::nullopt), "the softmax at the model's end is left to the loss\n");
  ImportOptions squared;
  squared.loss = ImportLoss::kMeanSquaredError;
  EXPECT_THAT(
      RefusalOf(alone, squared),
      HasSubstr("output z is a Softmax, which only the loss softmax_cross_entropy computes; "
                "omit --loss, or export the model without it"));
  // The scores are an output, too.
  const onnx::ModelProto both = ModelWithScores(
      R"(node { op_type: "Identity" input: "f" output: "y" })" + std::string(kSoftmax), true);
  EXPECT_EQ(notes(both, std::nullopt), "the softmax at the model's end is left to the loss\n");
  EXPECT_EQ(notes(both, ImportLoss::kMeanSquaredError),
            "output z is left out: it is the Softmax of another output\n");
  const onnx::ModelProto second = ModelWithScores(R"(
      node { op_type: "Relu" input: "f" output: "y" }
      node { op_type: "LogSoftmax" input: "f" output: "z" })",
                                                  true);
  EXPECT_EQ(
      notes(second, std::nullopt),
      "output z: no layer computes LogSoftmax; the network returns the input of the LogSoftmax\n");
}

TEST(FromOnnx, LayersThatATrainedLayerSharesAreNotFrozen) {
  // Two inputs go through one encoder; the second output is the code of the first input.
  onnx::ModelProto model = ModelOf(R"(
    initializer { name: "v" dims: 2 dims: 5 data_type: 1
                  float_data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
    node { op_type: "Flatten" input: "x" output: "a" }
    node { op_type: "Gemm" input: "a" input: "w" output: "z"
           attribute { name: "transB" type: INT i: 1 } }
    node { op_type: "Flatten" input: "u" output: "b" }
    node { op_type: "Gemm" input: "b" input: "w" output: "c"
           attribute { name: "transB" type: INT i: 1 } }
    node { op_type: "Gemm" input: "c" input: "v" output: "y"
           attribute { name: "transB" type: INT i: 1 } })");
  onnx::GraphProto& graph = *model.mutable_graph();
  *graph.add_input() = graph.input(0);
  graph.mutable_input(1)->set_name("u");
  graph.add_output()->set_name("z");
  std::vector<float> weights(5 * 24);
  std::iota(weights.begin(), weights.end(), 1.0f);
  graph.mutable_initializer(0)->set_raw_data(weights.data(), weights.size() * sizeof(float));
  const auto returned = Reread(model);
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_EQ(returned->graph.tensors().size(), 2);
  EXPECT_EQ(returned->graph.frozen_parameters(), 0);
  EXPECT_THAT(returned->model.notes, testing::Not(testing::Contains(HasSubstr("frozen"))));
}

TEST(FromOnnx, NoLayerHasTheNameOfAnInput) {
  onnx::ModelProto model = ModelOfTokens(5, R"(
      node { name: "/tokens/Gather" op_type: "Gather" input: "tokens.weight" input: "x"
             output: "y" })");
  model.mutable_graph()->mutable_initializer(0)->set_name("tokens.weight");
  EXPECT_EQ(RefusalOf(model), "");
  // Inputs with the name of the loss, and with names that become one.
  model = ModelOf(R"(node { op_type: "Sum" input: "x" input: "input3" input: "a.b" input: "a_b"
                            input: "loss" output: "a" } )" +
                  std::string(kHead));
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* const name : {"input3", "a.b", "a_b", "loss"}) {
    const onnx::ValueInfoProto first = graph.input(0);
    *graph.add_input() = first;
    graph.mutable_input()->rbegin()->set_name(name);
  }
  const auto returned = Reread(model);
  ASSERT_TRUE(returned.ok()) << returned.status().message();
  EXPECT_THAT(returned->graph.inputs, ElementsAre("x", "input3", "a_b", "a_b_2", "loss_2"));
}

TEST(FromOnnx, AGivenShapeKeepsTheFixedExtents) {
  onnx::ModelProto model = ModelOf(R"(node { op_type: "Relu" input: "x" output: "y" })");
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(3)
      ->set_dim_param("width");
  ImportOptions options;
  options.input = {2, 7, 4};
  EXPECT_EQ(RefusalOf(model, options),
            "input x: --input-shape 2x7x4 does not fit the model's axes, 2x3x?; give those, with a "
            "number in place of each ?");
}

// Networks of many kinds of layers, which tests damage.
std::vector<onnx::ModelProto> ModelsToDamage() {
  Rng rng(5, RngPurpose::kTest);
  std::vector<onnx::ModelProto> models;
  for (const char* const text : {
           R"(name: "n" input { extents: [4, 6] }
         layers { name: "qkv" fully_connected { outputs: 12 per_position: true } }
         layers { name: "at" attention { heads: 2 causal: true } }
         layers { name: "norm" layer_normalisation { per_position: true } }
         layers { name: "gelu" gelu {} }
         layers { name: "turned" permute { axes: [1, 0] } }
         layers { name: "part" slice { axis: 1 begin: 1 end: 3 } }
         layers { name: "silu" silu {} }
         layers { name: "loss" softmax_cross_entropy {} })",
           R"(name: "n" input { channels: 2 height: 6 width: 6 }
         layers { name: "conv" convolution { outputs: 4 kernel: 3 } }
         layers { name: "norm" batch_normalisation {} }
         layers { name: "pool" max_pooling { kernel: 2 } }
         layers { name: "l2" l2_normalisation {} }
         layers { name: "groups" group_normalisation { groups: 2 } }
         layers { name: "both" inputs: "groups" inputs: "l2" concat {} }
         layers { name: "mean" global_average_pooling {} }
         layers { name: "fc" fully_connected { outputs: 3 } }
         layers { name: "loss" softmax_cross_entropy {} })",
           R"(name: "n" input { name: "tokens" extents: 5 vocabulary: 7 }
         layers { name: "token" embedding { outputs: 6 } }
         layers { name: "place" positional_embedding {} }
         layers { name: "tanh" gelu { approximate: TANH } }
         layers { name: "norm" layer_normalisation {} }
         layers { name: "drop" dropout { ratio: 0.5 } }
         layers { name: "reshape" reshape { extents: [3, 10] } }
         layers { name: "gate" inputs: "reshape" inputs: "reshape" multiply {} }
         layers { name: "loss" softmax_cross_entropy {} })"}) {
    const Graph graph = PlanNetwork(ParseNetwork(text, "n").value()).value();
    models.push_back(*ToOnnx(graph, RandomTensors(graph, &rng), {}));
  }
  return models;
}

// Bytes are changed at random; the model is read or refused, and nothing else.
TEST(FromOnnx, DamagedBytesAreReadOrRefused) {
  Rng rng(5, RngPurpose::kTest);
  for (const onnx::ModelProto& whole : ModelsToDamage()) {
    const std::string bytes = whole.SerializeAsString();
    for (int i = 0; i < 3000; ++i) {
      std::string damaged = bytes;
      for (uint64_t k = 0; k <= rng.NextBelow(3); ++k) {
        damaged[rng.NextBelow(damaged.size())] = static_cast<char>(rng.NextBelow(256));
      }
      if (i % 10 == 0) damaged.resize(rng.NextBelow(damaged.size()));
      const auto model = ParseOnnx(damaged);
      if (!model.ok()) continue;
      std::vector<std::string> gaps;
      const auto imported = FromOnnx(*model, {}, nullptr, &gaps);
      EXPECT_TRUE(imported.ok() || !imported.status().message().empty());
    }
  }
}

// Nodes read other arrays, are other ops, and have other settings, so that anything may meet
// anything.
TEST(FromOnnx, RearrangedNodesAreReadOrRefused) {
  Rng rng(6, RngPurpose::kTest);
  const std::vector<onnx::ModelProto> models = ModelsToDamage();
  std::vector<std::string> ops = ImportedOps();
  for (const char* const op : {"Erf", "Sqrt", "Pow", "Sub", "Div", "Where", "ReduceSum", "Resize",
                               "Range", "ConstantOfShape", "Trilu", "Equal", "Clip"}) {
    ops.emplace_back(op);
  }
  const int64_t numbers[] = {
      -3, -2, -1, 0, 1, 2, 3, 4, 7, int64_t{1} << 31, int64_t{1} << 62, -(int64_t{1} << 62)};
  const auto any = [&](const auto& list) { return list[rng.NextBelow(std::size(list))]; };
  const char* const settings[] = {"axis",         "axes",     "perm",     "pads",   "strides",
                                  "kernel_shape", "group",    "keepdims", "transA", "transB",
                                  "allowzero",    "starts",   "ends",     "split",  "num_groups",
                                  "dilations",    "ceil_mode"};
  int read = 0;
  constexpr int kRounds = 4000;
  for (int i = 0; i < kRounds; ++i) {
    onnx::ModelProto model = any(models);
    onnx::GraphProto& graph = *model.mutable_graph();
    std::vector<std::string> arrays = {""};
    for (const auto& node : graph.node()) arrays.push_back(node.output(0));
    for (const auto& tensor : graph.initializer()) arrays.push_back(tensor.name());
    for (const auto& input : graph.input()) arrays.push_back(input.name());
    for (uint64_t k = 0; k <= rng.NextBelow(4); ++k) {
      auto& node = *graph.mutable_node(static_cast<int>(rng.NextBelow(graph.node_size())));
      auto& tensor =
          *graph.mutable_initializer(static_cast<int>(rng.NextBelow(graph.initializer_size())));
      switch (rng.NextBelow(6)) {
        case 0:
          node.set_op_type(any(ops));
          break;
        case 1:
          if (node.input_size() == 0) break;
          node.set_input(static_cast<int>(rng.NextBelow(node.input_size())), any(arrays));
          break;
        case 2:
          node.add_input(any(arrays));
          break;
        case 3: {
          auto& attribute = *node.add_attribute();
          attribute.set_name(any(settings));
          attribute.set_i(any(numbers));
          for (uint64_t n = rng.NextBelow(5); n > 0; --n) attribute.add_ints(any(numbers));
          break;
        }
        case 4:
          for (auto& attribute : *node.mutable_attribute()) {
            attribute.set_i(any(numbers));
            for (int64_t& number : *attribute.mutable_ints()) number = any(numbers);
          }
          break;
        default:
          std::reverse(tensor.mutable_dims()->begin(), tensor.mutable_dims()->end());
          if (tensor.data_type() != onnx::TensorProto::INT64) break;
          for (size_t at = 0; at + 8 <= tensor.raw_data().size(); at += 8) {
            const int64_t number = any(numbers);
            std::memcpy(tensor.mutable_raw_data()->data() + at, &number, sizeof(number));
          }
      }
    }
    std::vector<std::string> gaps;
    const auto imported = FromOnnx(model, {}, nullptr, &gaps);
    EXPECT_TRUE(imported.ok() || !imported.status().message().empty());
    read += imported.ok() ? 1 : 0;
  }
  EXPECT_GT(read, kRounds / 50);
}

// Models that a script writes into folders, each with an input and what the model makes of it.
class ForeignModelsTest : public testing::Test {
 protected:
  // python: a variable of the environment; modules: what it must have.
  bool Write(const char* variable, const std::string& modules, const std::string& script) {
    const char* const configured = std::getenv(variable);
    const std::string python = configured != nullptr ? configured : "python3";
    if (std::system((python + " -c 'import " + modules + "' 2>/dev/null").c_str()) != 0) {
      return false;
    }
    EXPECT_EQ(std::system((python + " " + script + " " + directory_.path()).c_str()), 0);
    return true;
  }

  static std::vector<float> Numbers(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
    return numbers;
  }

  void ExpectEqual(float relative) {
    int models = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      const std::string name = entry.path().filename();
      ++models;
      std::ifstream file(entry.path() / "model.onnx", std::ios::binary);
      onnx::ModelProto model;
      ASSERT_TRUE(model.ParseFromIstream(&file)) << name;
      const auto returned = Reread(model);
      ASSERT_TRUE(returned.ok()) << name << ": " << returned.status().message();
      const std::vector<float> inputs = Numbers(entry.path() / "input.bin");
      const std::vector<float> wanted = Numbers(entry.path() / "output.bin");
      const auto batch =
          static_cast<int>(std::ssize(inputs) / returned->graph.values[0].shape.size());
      const std::vector<float> found = OutputOf(returned->graph, returned->tensors, inputs, batch);
      ASSERT_EQ(found.size(), wanted.size()) << name;
      float largest = 0;
      float worst = 0;
      for (size_t i = 0; i < wanted.size(); ++i) {
        largest = std::max(largest, std::abs(wanted[i]));
        worst = std::max(worst, std::abs(wanted[i] - found[i]));
      }
      EXPECT_LE(worst, relative * largest) << name;
      layers_[name] = LayersOf(returned->graph);
    }
    EXPECT_GT(models, 0);
  }

  std::map<std::string, std::vector<std::string>> layers_;

 private:
  test::ScratchDirectory directory_;
};

TEST_F(ForeignModelsTest, NodesAsPytorchWritesThemGiveTheirNumbers) {
  if (!Write("KUMO_ONNX_PYTHON", "numpy, onnx, onnxruntime", KUMO_PYTORCH_FORMS)) {
    GTEST_SKIP() << "no Python with onnx and onnxruntime (KUMO_ONNX_PYTHON names one)";
  }
  ExpectEqual(1e-5f);
  EXPECT_THAT(layers_["resnet"],
              testing::Contains("layer2.0.downsample.0 convolution <- layer1.0.relu_1, "
                                "layer2.0.downsample.0.weight [12, 8, 1, 1]"));
  EXPECT_THAT(layers_["resnet"], testing::Contains("layer2.0.add add <- layer2.0.bn2 "
                                                   "layer2.0.downsample.1"));
  // Nothing moves elements: channels and positions lie as our layers want them.
  for (const char* const name : {"language", "language_free"}) {
    EXPECT_THAT(layers_[name], testing::Contains(HasSubstr("h.1.add_2 add <- h.1.add h.1.mlp.2")));
    EXPECT_THAT(layers_[name], testing::Not(testing::Contains(HasSubstr(" permute "))));
    EXPECT_THAT(layers_[name], testing::Contains(HasSubstr(" attention <- h.0.attn.c_attn")));
  }
}

TEST_F(ForeignModelsTest, WhatTorchExportsGivesItsNumbers) {
  if (!Write("KUMO_TORCH_PYTHON", "torch, numpy", KUMO_TORCH_EXPORT)) {
    GTEST_SKIP() << "no Python with torch (KUMO_TORCH_PYTHON names one)";
  }
  ExpectEqual(1e-5f);
  EXPECT_THAT(layers_["resnet18"], testing::SizeIs(68));
  EXPECT_THAT(layers_["bottleneck"],
              testing::IsSupersetOf({HasSubstr("layer1.0.downsample.0 convolution <- maxpool, "),
                                     HasSubstr("layer2.1.conv3 convolution <- "),
                                     HasSubstr("layer2.1.add add <- layer2.1.bn3 ")}));
}

TEST(StridedViews, AreReshapedIfTheirElementsAllow) {
  const StridedView view = StridedView::Of({4, 6});
  EXPECT_EQ(view.Reshaped({2, 2, 6})->strides, (std::vector<int64_t>{12, 6, 1}));
  EXPECT_TRUE(view.Reshaped({3, 8})->IsInOrder());
  EXPECT_FALSE(view.Permuted({1, 0}).Reshaped({24}));
  EXPECT_THAT(view.Permuted({1, 0}).Reshaped({6, 2, 1, 2})->Places(),
              testing::ElementsAreArray(view.Permuted({1, 0}).Places()));
  EXPECT_THAT(view.Sliced(1, 2, 3).Sliced(0, 1, 2).Places(), ElementsAre(8, 9, 10, 14, 15, 16));
}

TEST(StridedViews, AreFoundInPlaces) {
  for (const StridedView& view :
       {StridedView::Of({2, 3, 4}).Permuted({2, 0, 1}),
        StridedView::Of({2, 3, 4}).Permuted({1, 2, 0}), StridedView::Of({5, 3, 4}).Sliced(0, 1, 3),
        StridedView::Of({2, 3, 5}).Sliced(2, 2, 1), StridedView::Of({7})}) {
    const auto found = ViewOfPlaces(view.Places());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->Places(), view.Places());
  }
  EXPECT_FALSE(ViewOfPlaces({0, 1, 3}));
  EXPECT_FALSE(ViewOfPlaces({2, 1, 0}));
}

}  // namespace
}  // namespace kumo
