#include "models/graph/matrices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/network.h"
#include "tests/models/small_language_model.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> MatricesIn(const model::Network& network) {
  const Graph graph = PlanNetwork(network).value();
  std::vector<std::string> found;
  for (const MatrixTensor& m : MatricesOf(graph)) {
    found.push_back(graph.parameters[static_cast<size_t>(m.tensor)].tensor.name + " " +
                    std::to_string(m.rows) + "x" + std::to_string(m.columns));
  }
  return found;
}
std::vector<std::string> MatricesIn(const std::string& layers) {
  return MatricesIn(ParseNetwork("name: \"n\"\ninput { channels: 3 height: 8 width: 8 }\n" +
                                     layers +
                                     "layers { name: \"loss\" softmax_cross_entropy {} }\n",
                                 "n")
                        .value());
}

constexpr char kConv[] = "layers { name: \"conv\" convolution { outputs: 4 kernel: 3 } }\n";
constexpr char kHead[] = "layers { name: \"head\" fully_connected { outputs: 10 } }\n";

TEST(MatricesTest, ConvolutionsAndFullyConnectedLayersButForTheHead) {
  EXPECT_THAT(MatricesIn(std::string(kConv) +
                         "layers { name: \"norm\" batch_normalisation {} }\n"
                         "layers { name: \"fc\" fully_connected { outputs: 5 } }\n" +
                         kHead),
              ElementsAre("conv.weight 4x27", "fc.weight 5x144"));
  EXPECT_THAT(MatricesIn(kHead), IsEmpty());
}

TEST(MatricesTest, TransposedConvolutionsAreMatricesAndHeads) {
  const std::string up =
      "layers { name: \"up\" transposed_convolution { outputs: 5 kernel: 2 stride: 2 } }\n";
  EXPECT_THAT(MatricesIn(kConv + up + kHead), ElementsAre("conv.weight 4x27", "up.weight 4x20"));
  EXPECT_THAT(MatricesIn(kConv + up), ElementsAre("conv.weight 4x27"));
}

TEST(MatricesTest, LayersBehindTheHeadDoNotHideIt) {
  EXPECT_THAT(MatricesIn(std::string(kConv) + kHead + "layers { name: \"x\" tanh {} }\n"),
              ElementsAre("conv.weight 4x27"));
}

TEST(MatricesTest, EachLossHasAHead) {
  EXPECT_THAT(MatricesIn(std::string(kConv) +
                         "layers { name: \"other\" fully_connected { outputs: 10 } }\n"
                         "layers { name: \"other_loss\" softmax_cross_entropy {} }\n"
                         "layers { name: \"head\" inputs: \"conv\" fully_connected { outputs: 10 } "
                         "}\n"),
              ElementsAre("conv.weight 4x27"));
}

TEST(MatricesTest, AFrozenLayerHasNone) {
  EXPECT_THAT(
      MatricesIn("layers { name: \"conv\" trainable: false convolution { outputs: 4 kernel: "
                 "3 } }\n" +
                 std::string(kHead)),
      IsEmpty());
}

TEST(MatricesTest, AnEmbeddingIsNoneThoughTheHeadMultipliesByIt) {
  const model::Network network = SmallLanguageModel();
  const std::vector<std::string> found = MatricesIn(network);
  EXPECT_FALSE(found.empty());
  for (const std::string& name : found) {
    EXPECT_THAT(name, testing::Not(testing::HasSubstr("token")));
    EXPECT_THAT(name, testing::Not(testing::HasSubstr("position")));
    EXPECT_THAT(name, testing::Not(testing::HasSubstr("head")));
  }
}

}  // namespace
}  // namespace kumo
