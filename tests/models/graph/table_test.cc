#include "models/graph/table.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/terminal.h"
#include "models/network.h"
#include "tests/models/graph/small_graph.h"

namespace kumo {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string TableOfLayers(const std::string& layers, int columns = 0) {
  const model::Network network =
      ParseNetwork("name: \"n\"\ninput { channels: 1 height: 8 width: 8 }\n" + layers, "n").value();
  return TableOf(
      PlanNetwork(network).value(), [](const Shape& shape) { return shape.size() * 1000; },
      columns);
}

constexpr char kEnd[] =
    "layers { name: \"fc\" fully_connected { outputs: 10 } }\n"
    "layers { name: \"loss\" softmax_cross_entropy {} }\n";

TEST(TableTest, HasShapesParametersProductsAndMemory) {
  const std::string table = TableOfLayers(
      std::string("layers { name: \"conv\" convolution { outputs: 4 kernel: 5 stride: 1 } }\n") +
      kEnd);
  // 4x4x4 outputs of 25 products each.
  EXPECT_THAT(table, ContainsRegex("conv +convolution 5x5 +4x4x4 +104 +0.002 +0.1 MB\n"));
  EXPECT_THAT(table, ContainsRegex("fc +fully_connected +10 +650 +0.001 +0.0 MB\n"));
  EXPECT_THAT(table, ContainsRegex("loss +softmax_cross_entropy +10 +0\n"));
  EXPECT_THAT(table, Not(HasSubstr("reads"))) << "a chain";
}

TEST(TableTest, FitsIntoATerminal) {
  const std::string layers =
      std::string(
          "layers { name: \"a_convolution_with_a_long_name\" convolution { outputs: 4 kernel: 5 } "
          "}\n"
          "layers { name: \"a_pooling_with_a_long_name\" max_pooling { kernel: 2 } }\n") +
      kEnd;
  for (const int columns : {40, 80, 120}) {
    std::istringstream lines(TableOfLayers(layers, columns));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(ColumnsOf(line), columns);
      EXPECT_TRUE(line.starts_with("  "));
    }
  }
}

TEST(TableTest, AGroupHasFiltersForItsOwnChannelsAlone) {
  const std::string table = TableOfLayers(
      std::string(
          "layers { name: \"wide\" convolution { outputs: 8 kernel: 3 pad: 1 } }\n"
          "layers { name: \"deep\" convolution { outputs: 8 kernel: 3 pad: 1 groups: 8 } }\n") +
      kEnd);
  // 8 filters of 3x3 and 8 biases; 8x8x8 outputs of 9 products each.
  EXPECT_THAT(table, ContainsRegex("deep +convolution 3x3, pad 1, groups 8 +8x8x8 +80 +0.005 "));
}

TEST(TableTest, NormalisationsHaveTheTensorsThatTheirKindHas) {
  const std::string table = TableOfLayers(
      std::string("layers { name: \"conv\" convolution { outputs: 4 kernel: 3 pad: 1 } }\n"
                  "layers { name: \"group\" group_normalisation { groups: 2 } }\n"
                  "layers { name: \"whole\" layer_normalisation {} }\n"
                  "layers { name: \"length\" l2_normalisation {} }\n") +
      kEnd);
  EXPECT_THAT(table, ContainsRegex("group +group_normalisation groups 2 +4x8x8 +8 "));
  EXPECT_THAT(table, ContainsRegex("whole +layer_normalisation +4x8x8 +512 "));
  EXPECT_THAT(table, ContainsRegex("length +l2_normalisation +4x8x8 +4 "));
}

TEST(TableTest, SaysWhatALayerReadsAndWhoseTensorsItHas) {
  const std::string table = TableOfLayers(
      std::string(
          "layers { name: \"a\" convolution { outputs: 1 kernel: 3 pad: 1 } }\n"
          "layers { name: \"b\" tensors_of: \"a\" convolution { outputs: 1 kernel: 3 pad: 1 } }\n"
          "layers { name: \"sum\" inputs: \"a\" inputs: \"b\" add {} }\n") +
      kEnd);
  EXPECT_THAT(table, ContainsRegex("sum +add +a, b +1x8x8"));
  EXPECT_THAT(table, ContainsRegex("b +convolution 3x3, pad 1 +1x8x8 +a's"));
}

TEST(TableTest, MarksLayersThatAreFrozen) {
  const std::string table = TableOfLayers(
      std::string(
          "layers { name: \"conv\" trainable: false convolution { outputs: 4 kernel: 3 } }\n"
          "layers { name: \"norm\" batch_normalisation {} }\n") +
      kEnd);
  EXPECT_THAT(table, ContainsRegex("conv +convolution 3x3 +4x6x6 +40 frozen "));
  EXPECT_THAT(table, ContainsRegex("norm +batch_normalisation +4x6x6 +16 "));
}

TEST(TableTest, EachInputHasItsName) {
  const std::string table = TableOf(
      PlanNetwork(NetworkOfTwoInputs()).value(), [](const Shape& shape) { return shape.size(); },
      0);
  EXPECT_THAT(table, ContainsRegex("b +fully_connected +boxes +3 "));
  EXPECT_THAT(table, ContainsRegex("c +add +a, b +3 "));
}

}  // namespace
}  // namespace kumo
