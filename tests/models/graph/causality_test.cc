#include "models/graph/causality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/network.h"
#include "tests/models/small_language_model.h"

namespace kumo {
namespace {

using testing::HasSubstr;

// Of 6 channels at 12 positions, between an embedding and scores of each position.
Status Causality(const std::string& layers) {
  const Result<model::Network> network = ParseNetwork(
      "name: \"n\"\ninput { name: \"tokens\" extents: 12 vocabulary: 20 }\n"
      "layers { name: \"token\" embedding { outputs: 6 } }\n" +
          layers +
          "layers { name: \"head\" fully_connected { per_position: true outputs: 20 } }\n"
          "layers { name: \"loss\" softmax_cross_entropy {} }\n",
      "n");
  if (!network.ok()) return Internal(network.status().message());
  const Result<Graph> graph = PlanNetwork(*network);
  return graph.ok() ? CheckCausal(*graph) : Internal(graph.status().message());
}

TEST(CausalityTest, ALanguageModelIsCausal) {
  EXPECT_TRUE(CheckCausal(PlanNetwork(SmallLanguageModel()).value()).ok());
}

TEST(CausalityTest, WhatKeepsToItsPositionIsCausal) {
  for (const char* const layers :
       {"", "layers { name: \"x\" layer_normalisation { per_position: true } }\n",
        "layers { name: \"x\" batch_normalisation {} }\n",
        "layers { name: \"x\" l2_normalisation {} }\n", "layers { name: \"x\" silu {} }\n",
        "layers { name: \"x\" dropout { ratio: 0.5 } }\n",
        "layers { name: \"x\" convolution { outputs: 4 kernel: 1 } }\n",
        // A gate: half of the channels times the other half.
        "layers { name: \"a\" inputs: \"token\" slice { axis: 0 end: 3 } }\n"
        "layers { name: \"b\" inputs: \"token\" slice { axis: 0 begin: 3 end: 6 } }\n"
        "layers { name: \"x\" inputs: \"a\" inputs: \"b\" multiply {} }\n"}) {
    const Status causal = Causality(layers);
    EXPECT_TRUE(causal.ok()) << layers << causal.message();
  }
}

TEST(CausalityTest, WhatMixesPositionsIsNamed) {
  for (const char* const layer :
       {"layer_normalisation {}", "group_normalisation { groups: 2 }",
        "convolution { outputs: 4 kernel: 3 pad: 1 }", "max_pooling { kernel: 3 stride: 1 pad: 1 }",
        "fully_connected { outputs: 12 }", "permute { axes: [1, 0] }",
        "reshape { extents: [12, 6] }"}) {
    const Status status = Causality(std::string("layers { name: \"x\" ") + layer + " }\n");
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << layer << ": " << status.message();
    EXPECT_THAT(status.message(), HasSubstr("layer x depends on later positions")) << layer;
  }
  const Status both_ways = Causality(
      "layers { name: \"qkv\" fully_connected { per_position: true outputs: 18 } }\n"
      "layers { name: \"x\" attention { heads: 2 } }\n");
  EXPECT_THAT(both_ways.message(), HasSubstr("layer x depends on later positions"));
}

}  // namespace
}  // namespace kumo
