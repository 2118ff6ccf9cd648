#include "models/network.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"

namespace kumo {
namespace {

using testing::HasSubstr;

std::string ZooFile(const std::string& name) { return std::string(KUMO_ZOO) + "/" + name; }

struct ZooCase {
  const char* file;
  int64_t parameters;
  size_t tensors;
  int64_t classes = 10;
};

class ZooTest : public testing::TestWithParam<ZooCase> {};

TEST_P(ZooTest, HasThePublishedNumberOfParameters) {
  Result<model::Network> network =
      LoadNetwork(ZooFile(GetParam().file), {.vocabulary = 65, .classes = 20});
  ASSERT_TRUE(network.ok()) << network.status().message();
  Result<Graph> plan = PlanNetwork(*network);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->trained_parameters(), GetParam().parameters);
  EXPECT_EQ(plan->tensors().size(), GetParam().tensors);
  EXPECT_EQ(plan->target().classes, GetParam().classes);
}

INSTANTIATE_TEST_SUITE_P(Files, ZooTest,
                         testing::Values(ZooCase{"mnist_lenet.pbtxt", 431080, 8},
                                         ZooCase{"mnist_mlp.pbtxt", 1796010, 6},
                                         ZooCase{"cifar_convnet.pbtxt", 1195594, 14},
                                         ZooCase{"cifar_resnet20.pbtxt", 272474, 107},
                                         ZooCase{"imagenet_resnet18.pbtxt", 11689512, 102, 1000},
                                         ZooCase{"imagenet_resnet50.pbtxt", 25557032, 267, 1000},
                                         ZooCase{"imagenet_vgg16.pbtxt", 138357544, 32, 1000},
                                         ZooCase{"voc_ssd300.pbtxt", 26285486, 71, 20},
                                         ZooCase{"voc_ssd300_slim.pbtxt", 2271902, 71, 20},
                                         ZooCase{"scenes_unet.pbtxt", 109140, 63, 20},
                                         ZooCase{"scenes_tags.pbtxt", 66458, 22, 0},
                                         ZooCase{"char_gpt_small.pbtxt", 804096, 27, 65},
                                         ZooCase{"char_gpt.pbtxt", 10745088, 39, 65}),
                         [](const auto& tested) {
                           const std::string file = tested.param.file;
                           return file.substr(0, file.find('.'));
                         });

// A network around one layer.
std::string Around(const std::string& layer) {
  return "name: \"n\"\ninput { channels: 2 height: 8 width: 8 }\n" + layer +
         "\nlayers { name: \"fc\" fully_connected { outputs: 3 } }\n"
         "layers { name: \"loss\" softmax_cross_entropy {} }\n";
}

Status Parse(const std::string& text) { return ParseNetwork(text, "n.pbtxt").status(); }

struct BadCase {
  const char* text;     // of one layer in the middle
  const char* message;  // part of it
};

TEST(NetworkTest, WrongFieldsAreRefusedByLayerAndName) {
  const BadCase cases[] = {
      {"layers { name: 'c' convolution { outputs: 3 } }",
       "n.pbtxt:3: layer c: kernel must be 1 to 64, is 0"},
      {"layers { name: 'c' convolution { kernel: 3 } }", "layer c: outputs must be 1"},
      {"layers { name: 'c' convolution { outputs: -3 kernel: 3 } }", "outputs must be 1"},
      {"layers { name: 'c' convolution { outputs: 2000000000 kernel: 5 } }", "outputs must be 1"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 9 } }", "kernel must fit the input"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 stride: -1 } }", "stride must be"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 pad: -1 } }", "pad must be"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 dilation: 99 } }", "dilation must"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 kernel_height: 2 kernel_width: 2 } }",
       "kernel must not be set beside"},
      {"layers { name: 'c' convolution { outputs: 3 kernel_height: 2 } }", "kernel_width must be"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 weight { xavier { magnitude: -2 } } "
       "} }",
       "weight: xavier.magnitude must"},
      {"layers { name: 'a' convolution { outputs: 4 kernel: 3 } }\n"
       "layers { name: 'c' convolution { outputs: 4 kernel: 3 groups: 3 } }",
       "layer c: groups must divide the input's 4 channels, is 3"},
      {"layers { name: 'a' convolution { outputs: 4 kernel: 3 } }\n"
       "layers { name: 'c' convolution { outputs: 6 kernel: 3 groups: 4 } }",
       "layer c: groups must divide outputs, which is 6, is 4"},
      {"layers { name: 'c' convolution { outputs: 99 kernel: 3 groups: 99 } }", "groups must be 1"},
      {"layers { name: 'c' convolution { outputs: 3 kernel: 3 groups: -1 } }", "groups must be 1"},
      {"layers { name: 'f' fully_connected {} }", "layer f: outputs must be 1"},
      {"layers { name: 'p' max_pooling {} }", "layer p: kernel must be 1 to 15, is 0"},
      {"layers { name: 'p' max_pooling { kernel: 3 pad: 3 } }", "pad must be 0 to 2, is 3"},
      {"layers { name: 'p' average_pooling { kernel: 9 } }", "kernel must fit"},
      {"layers { name: 'p' max_pooling { kernel: 10 stride: 2 ceil_mode: true } }",
       "with pad 0 and, by ceil_mode, 1 beyond it, is 10"},
      {"layers { name: 'a' leaky_relu { slope: 1 } }", "layer a: slope must be at least 0 (0 for"},
      {"layers { name: 'a' leaky_relu { slope: -0.5 } }", "less than 1, is -0.5"},
      {"layers { name: 'a' leaky_relu { slope: nan } }", "slope must be"},
      {"layers { name: 'a' gelu { approximate: 7 } }", "approximate must be NONE or TANH, is 7"},
      {"layers { name: 'd' dropout { ratio: 1 } }", "layer d: ratio must be"},
      {"layers { name: 'd' dropout { ratio: nan } }", "ratio must be"},
      {"layers { name: 'b' batch_normalisation { momentum: 1 } }", "momentum must be"},
      {"layers { name: 'b' batch_normalisation { epsilon: -1 } }", "epsilon must be"},
      {"layers { name: 'g' group_normalisation {} }", "layer g: groups must be 1 to"},
      {"layers { name: 'a' convolution { outputs: 6 kernel: 3 } }\n"
       "layers { name: 'g' group_normalisation { groups: 4 } }",
       "layer g: groups must divide the input's 6 channels, is 4"},
      {"layers { name: 'a' fully_connected { outputs: 6 } }\n"
       "layers { name: 'g' group_normalisation { groups: 6 } }",
       "layer g: groups must leave each group more than one number, is 6"},
      {"layers { name: 'g' group_normalisation { groups: 1 epsilon: -1 } }",
       "epsilon must be a positive number, or 0 for 1e-5, is -1"},
      {"layers { name: 'n' layer_normalisation { epsilon: inf } }", "epsilon must be"},
      {"layers { name: 'a' fully_connected { outputs: 1 } }\n"
       "layers { name: 'n' layer_normalisation {} }",
       "layer n: the input must have more than one number, is 1"},
      {"layers { name: 'a' convolution { outputs: 1 kernel: 3 } }\n"
       "layers { name: 'n' layer_normalisation { per_position: true } }",
       "layer n: the input must have more than one channel, is 1x"},
      {"layers { name: 'n' l2_normalisation { epsilon: nan } }", "or 0 for 1e-10, is nan"},
      {"layers { name: 'n' l2_normalisation { scale: inf } }", "scale must be a finite number"},
      {"layers { name: 'x' }", "layer x: needs a kind, one of fully_connected, convolution"},
      {"layers { relu {} }", "layer number 1: name must not be empty"},
      {"layers { name: 'a-b' relu {} }", "name must be letters, digits, '.' and '_', is \"a-b\""},
      {"layers { name: '.a' relu {} }", "on both sides of each '.', is \".a\""},
      {"layers { name: 'a.' relu {} }", "on both sides of each '.'"},
      {"layers { name: 'a..b' relu {} }", "on both sides of each '.'"},
      {"layers { name: 'fc' relu {} }", "layer fc: name must not be used twice"},
      {"layers { name: 'e' softmax_cross_entropy {} }",
       "layer fc: inputs must be given, since the layer before it is a loss"},
  };
  for (const BadCase& c : cases) {
    const Status status = Parse(Around(c.text));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST(NetworkTest, LayersMayHaveTheNamesOfModules) {
  std::string text = R"(name: "n" input { channels: 2 height: 8 width: 8 }
    layers { name: "layer1.0.conv" convolution { outputs: 3 kernel: 3 } }
    layers { name: "layer1.0.conv.weight" relu {} }
    layers { name: "aux.fc" fully_connected { outputs: 3 } }
    layers { name: "aux.loss" loss_weight: 0.5 softmax_cross_entropy {} }
    layers { name: "fc" inputs: "layer1.0.conv.weight" fully_connected { outputs: 3 } }
    layers { name: "loss" softmax_cross_entropy {} } )";
  const auto network = ParseNetwork(text, "n");
  ASSERT_TRUE(network.ok()) << network.status().message();
  const Graph graph = PlanNetwork(*network).value();
  EXPECT_EQ(graph.parameters[0].tensor.name, "layer1.0.conv.weight");
  std::vector<std::string> metrics;
  for (const Metric& metric : graph.metrics.metrics()) metrics.push_back(metric.name);
  EXPECT_THAT(metrics, testing::Contains("aux_loss_loss"));
  // In an ONNX file an output and a tensor would have one name.
  text += R"( outputs: "layer1.0.conv.weight")";
  EXPECT_THAT(ParseNetwork(text, "n").status().message(), HasSubstr("also the name of a tensor"));
}

TEST(NetworkTest, AFilterOfAGroupIsAsLargeAsItsOwnChannelsAreMany) {
  const auto grouped = [](const std::string& groups) {
    return Around(
        "layers { name: 'many' convolution { outputs: 9600 kernel: 1 } }\n"
        "layers { name: 'c' convolution { outputs: 9600 kernel: 15 pad: 7 groups: " +
        groups + " } }");
  };
  EXPECT_TRUE(Parse(grouped("9600")).ok()) << Parse(grouped("9600")).message();
  EXPECT_THAT(Parse(grouped("2")).message(), HasSubstr("layer c: outputs must be 1 to 1988"));
}

// torch.nn.functional.max_pool2d's shapes.
TEST(NetworkTest, PoolingHasTheShapesOfPyTorchInBothModes) {
  struct Case {
    int size, kernel, stride, pad;
    int64_t floor, ceil;
  };
  const Case cases[] = {{112, 3, 2, 0, 55, 56}, {112, 3, 2, 1, 56, 57}, {75, 2, 2, 0, 37, 38},
                        {6, 3, 2, 0, 2, 3},     {7, 3, 2, 0, 3, 3},     {4, 2, 2, 1, 3, 3},
                        {5, 2, 3, 1, 2, 2},  // a third window would begin behind the input
                        {4, 2, 3, 1, 2, 2},     {5, 2, 4, 1, 2, 2},     {3, 1, 2, 0, 2, 2}};
  for (const Case& c : cases) {
    PoolingSpec spec = {{1, c.size, c.size}, c.kernel, c.kernel, c.stride, c.pad};
    EXPECT_EQ(spec.output(), (Shape{1, c.floor, c.floor})) << c.size;
    spec.ceil = true;
    EXPECT_EQ(spec.output(), (Shape{1, c.ceil, c.ceil})) << c.size;
  }
  const PoolingSpec larger = {{1, 2, 2}, 3, 3, 2, 0, PoolingSpec::Kind::kMax, true};
  EXPECT_EQ(larger.output(), (Shape{1, 1, 1})) << "a window that is larger than the input";
}

TEST(NetworkTest, LabelsAreSmoothedByLessThanAll) {
  const std::string layers =
      "name: 'n'\ninput { channels: 4 height: 1 width: 1 }\n"
      "layers { name: 'fc' fully_connected { outputs: 3 } }\n"
      "layers { name: 'loss' softmax_cross_entropy { label_smoothing: ";
  for (const char* bad : {"1", "-0.1", "nan"}) {
    EXPECT_THAT(Parse(layers + bad + " } }").message(),
                HasSubstr("layer loss: label_smoothing must be at least 0 and less than 1, is"));
  }
  const Result<Graph> graph = PlanNetwork(ParseNetwork(layers + "0.1 } }", "n.pbtxt").value());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(std::get<SoftmaxCrossEntropySpec>(graph->loss().spec).smoothing, 0.1f);
  EXPECT_EQ(graph->loss().detail, "smoothing 0.100");
}

TEST(NetworkTest, ThereIsAFiniteWeightForEachClass) {
  const std::string head =
      "name: 'n'\ninput { channels: 4 height: 1 width: 1 }\n"
      "layers { name: 'fc' fully_connected { outputs: 3 } }\n"
      "layers { name: 'loss' softmax_cross_entropy { class_weights: ";
  const std::pair<const char*, const char*> bad[] = {
      {"[1, 2]", "must have one value for each of the 3 classes, has 2"},
      {"[1, 2, 3, 4]", "must have one value for each of the 3 classes, has 4"},
      {"[1, -2, 3]", "must be finite and at least 0; class 1 has -2"},
      {"[1, 2, nan]", "must be finite and at least 0; class 2 has nan"},
      {"[inf, 2, 1]", "must be finite and at least 0; class 0 has inf"},
      {"[0, 0, 0]", "must not all be 0"},
  };
  for (const auto& [weights, message] : bad) {
    EXPECT_THAT(Parse(head + weights + " } }").message(),
                HasSubstr(std::string(":4: layer loss: class_weights ") + message));
  }
  EXPECT_THAT(Parse(head + "[1, 2, 3] perplexity: true } }").message(), HasSubstr("perplexity"));
  const auto plan = [&](const std::string& weights) {
    return PlanNetwork(ParseNetwork(head + weights + " } }", "n.pbtxt").value())->loss();
  };
  const LossNode weighted = plan("[0.5, 0, 4]");
  EXPECT_EQ(std::get<SoftmaxCrossEntropySpec>(weighted.spec).class_weights,
            (std::vector<float>{0.5f, 0, 4}));
  EXPECT_EQ(weighted.detail, "class weights 0 .. 4");
  EXPECT_THAT(std::get<SoftmaxCrossEntropySpec>(plan("[1, 1, 1]").spec).class_weights,
              testing::IsEmpty());
}

TEST(NetworkTest, NetworksWithoutWhatTheyNeedAreRefused) {
  const BadCase cases[] = {
      {"", "name must not be empty"},
      {"name: 'n'", "input must be given"},
      {"name: 'n' input { height: 1 width: 1 }", "input.channels must be 1"},
      {"name: 'n' input { channels: 1 height: -1 width: 1 }", "input.height must be 1"},
      {"name: 'n' input { channels: 1000000 height: 65000 width: 65000 }", "at most 2^28"},
      {"name: 'n' input { channels: 1 height: 1 width: 1 }", "the number of layers must be 2"},
      {"name: 'n' input { channels: 1 height: 1 width: 1 } layers { name: 'a' relu {} } "
       "layers { name: 'b' relu {} }",
       "layer b: the last layer must be a loss"},
      {"name: 'n' input { channels: 1 height: 1 width: 1 } layers { name: 'a' relu {} } "
       "layers { name: 'b' softmax_cross_entropy {} }",
       "must have a layer with weights"},
  };
  for (const BadCase& c : cases) {
    EXPECT_THAT(Parse(c.text).message(), HasSubstr(c.message)) << c.text;
  }
}

TEST(NetworkTest, SyntaxErrorsAreGivenWithLineAndColumn) {
  const Status unknown = Parse("name: \"n\"\ninput { chanels: 1 }\n");
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.message(), testing::StartsWith("n.pbtxt:2:16: "));
  EXPECT_THAT(unknown.message(), HasSubstr("chanels"));
  EXPECT_THAT(Parse("name: \"n\"\nlayers {\n").message(), testing::StartsWith("n.pbtxt:3:1: "));
}

TEST(NetworkTest, AnErrorOfALayerNamesTheLineWhereItBegins) {
  EXPECT_THAT(
      Parse(Around("layers { name: 'r' relu {} }\n\nlayers {\n name: 'd'\n dropout { ratio: 2 "
                   "}\n}"))
          .message(),
      testing::StartsWith("n.pbtxt:5: layer d: ratio must be"));
  EXPECT_THAT(Parse("name: 'n'\ninput { channels: 1 height: 1 width: 1 }").message(),
              testing::StartsWith("n.pbtxt: the number of layers"));
}

TEST(NetworkTest, AnUnknownFieldIsToldWhatItIsCalledHere) {
  const BadCase cases[] = {
      {"layers { name: 'c' Dense { units: 3 } }", "Layer has no field Dense; did you mean fully_c"},
      {"layers { name: 'c' Linear {} }", "did you mean fully_connected?"},
      {"layers { name: 'c' Conv2d {} }", "did you mean convolution?"},
      {"layers { name: 'c' convoluton {} }", "did you mean convolution?"},
      {"layers { name: 'c' BatchNorm {} }", "did you mean batch_normalisation?"},
      {"layers { name: 'c' Dropout {} }", "did you mean dropout?"},
      {"layers { name: 'c' ReLU {} }", "did you mean relu?"},
      {"layers { name: 'c' max_pooling { ceil: true } }", "did you mean ceil_mode?"},
      {"layers { name: 'c' GroupNorm {} }", "did you mean group_normalisation?"},
      {"layers { name: 'c' LayerNorm {} }", "did you mean layer_normalisation?"},
      {"layers { name: 'c' Normalize {} }", "did you mean l2_normalisation?"},
      {"layers { name: 'c' LeakyReLU {} }", "did you mean leaky_relu?"},
      {"layers { name: 'c' swish {} }", "did you mean silu?"},
      {"layers { name: 'c' leaky_relu { negative_slope: .1 } }", "did you mean slope?"},
      {"layers { name: 'c' MaxPool2d {} }", "did you mean max_pooling?"},
      {"layers { name: 'c' pooling {} }", "did you mean max_pooling or average_pooling?"},
      {"layers { name: 'c' cross_entropy {} }", "did you mean softmax_cross_entropy?"},
      {"layers { name: 'c' frobnicate {} }",
       "Layer has no field frobnicate; it has name, fully_connected, "},
      {"layers { name: 'c' lstm {} }",
       "Kumo has no layer lstm; recurrent layers cannot be expressed: attention,"},
      {"layers { name: 'c' PixelShuffle {} }", "did you mean pixel_shuffle?"},
      {"layers { name: 'c' PixelUnshuffle {} }", "Kumo has no layer PixelUnshuffle; reshape to C"},
      {"layers { name: 'c' Conv2DTranspose {} }", "did you mean transposed_convolution?"},
      {"layers { name: 'c' deconvolution {} }", "did you mean transposed_convolution?"},
      {"layers { name: 'c' bilinear {} }", "did you mean upsampling?"},
      {"layers { name: 'c' max_unpool {} }", "neighbours (docs/networks.md#how-do-i"},
      {"layers { name: 'c' rms_norm {} }", "l2_normalisation with scale: the square root"},
      {"layers { name: 'c' type: 'relu' }", "; it has name, fully_connected, "},
      {"layers { name: 'c' fully_connected { units: 3 } }", "did you mean outputs?"},
      {"layers { name: 'c' convolution { filters: 3 } }", "did you mean outputs?"},
      {"layers { name: 'c' convolution { padding: 3 } }", "did you mean pad?"},
      {"layers { name: 'c' dropout { p: .5 } }", "did you mean ratio?"},
      {"layers { name: 'c' lr_mult: 2 relu {} }", "did you mean learning_rate_factor?"},
      {"layers { name: 'c' frozen: true relu {} }", "did you mean trainable?"},
      {"layers { name: 'c' relu { slope: .5 } }", "Relu has no field slope; it has none"},
      {"layer { name: 'c' }", "Network has no field layer; did you mean layers?"},
      {"layers { name: 'c' relu {} layers { name: 'd' tanh {} } }",
       "Layer has no field layers; is a } missing before it?"},
  };
  for (const BadCase& c : cases) {
    const Status status = Parse(Around(c.text));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), testing::StartsWith("n.pbtxt:3:"));
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST(NetworkTest, EveryWordForALayerOrALossIsAnsweredWithIt) {
  const auto check = [](const std::string& name, const std::string& also) {
    std::istringstream words(also);
    for (std::string word; words >> word;) {
      EXPECT_THAT(Parse(Around("layers { name: 'c' " + word + " {} }")).message(),
                  testing::AllOf(HasSubstr("; did you mean "), HasSubstr(name)))
          << word;
    }
  };
  for (const LayerKind& kind : LayerKinds()) check(kind.name, kind.also);
  for (const LossKind& kind : LossKinds()) check(kind.name, kind.also);
}

TEST(NetworkTest, AMissingFileIsNamed) {
  const Status status = LoadNetwork("no/such/file.pbtxt").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no/such/file.pbtxt: No such file"));
  EXPECT_THAT(status.message(), HasSubstr("network.file"));
}

// A text's vocabulary goes into the network by itself.
TEST(NetworkTest, TheWordVocabularyStandsForTheNumberOfTokens) {
  const std::string text =
      "# vocabulary as in vocabulary\n"
      "name: \"vocabulary\"\n"
      "input { name: 'tokens' extents: 4 vocabulary: vocabulary }\n"
      "layers { name: 'vocabulary' embedding { outputs: 8 } }\n"
      "layers { name: 'head' fully_connected { outputs: vocabulary per_position: true } }\n"
      "layers { name: 'loss' softmax_cross_entropy {} }\n";
  const auto network = ParseNetwork(text, "n", {.vocabulary = 65});
  ASSERT_TRUE(network.ok()) << network.status().message();
  EXPECT_EQ(network->input(0).vocabulary(), 65);
  EXPECT_EQ(network->layers(1).fully_connected().outputs(), 65);
  EXPECT_EQ(network->name(), "vocabulary");
  EXPECT_THAT(ParseNetwork(text, "n").status().message(),
              HasSubstr("n:3: the word vocabulary stands for the number of tokens"));
  EXPECT_THAT(ParseNetwork(text + "layers { name: 'x' vocabulary {} }", "n", {.vocabulary = 65})
                  .status()
                  .message(),
              HasSubstr("n:7:31: Layer has no field vocabulary"));
  std::string wrong = text;
  wrong.replace(wrong.find("per_position: true }"), 12, "per_pos");
  EXPECT_THAT(ParseNetwork(wrong, "n", {.vocabulary = 65}).status().message(),
              HasSubstr("n:5:68: "))
      << "places in the file stay";
}

TEST(NetworkTest, ADirectoryIsNoNetwork) { EXPECT_FALSE(LoadNetwork(KUMO_ZOO).ok()); }

// Whatever a file holds, the answer is a network or a Status.
TEST(NetworkTest, DamagedFilesNeverCrash) {
  std::ifstream file(ZooFile("cifar_convnet.pbtxt"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  Rng rng(1, RngPurpose::kTest);
  const std::string bytes = "{}:\"0193abc -\n#";
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (uint64_t n = rng.NextBelow(4) + 1; n > 0; --n) {
      damaged[rng.NextBelow(damaged.size())] = bytes[rng.NextBelow(bytes.size())];
    }
    if (rng.NextBelow(4) == 0) damaged.resize(rng.NextBelow(damaged.size()));
    const Result<model::Network> network = ParseNetwork(damaged, "damaged");
    if (!network.ok()) {
      EXPECT_EQ(network.status().code(), StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace kumo
