// What tests of rewrites rewrite.
#pragma once

#include <string>

#include <glog/logging.h>

#include "models/graph/graph.h"
#include "models/network.h"

namespace kumo {

// Of an image of 2 x 8 x 8, `layers`, and a classifier of 3 classes behind them.
inline Graph GraphOf(const std::string& layers) {
  const Result<model::Network> network =
      ParseNetwork("name: \"n\"\ninput { channels: 2 height: 8 width: 8 }\n" + layers +
                       "layers { name: \"fc\" fully_connected { outputs: 3 } }\n"
                       "layers { name: \"loss\" softmax_cross_entropy {} }\n",
                   "n.pbtxt");
  CHECK(network.ok()) << network.status().message();
  return PlanNetwork(*network).value();
}

// Two inputs, words and boxes of any rank, whose branches meet.
inline model::Network NetworkOfTwoInputs() {
  const Result<model::Network> network = ParseNetwork(
      "name: \"n\"\n"
      "input { name: \"words\" extents: 6 vocabulary: 9 }\n"
      "input { name: \"boxes\" extents: [4, 2, 3, 5] }\n"
      "layers { name: \"e\" inputs: \"words\" embedding { outputs: 4 } }\n"
      "layers { name: \"a\" fully_connected { outputs: 3 } }\n"
      "layers { name: \"b\" inputs: \"boxes\" fully_connected { outputs: 3 } }\n"
      "layers { name: \"c\" inputs: \"a\" inputs: \"b\" add {} }\n"
      "layers { name: \"loss\" softmax_cross_entropy {} }\n",
      "n.pbtxt");
  CHECK(network.ok()) << network.status().message();
  return *network;
}

}  // namespace kumo
