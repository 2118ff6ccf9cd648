// SSD300 up to its heads: the shapes of the published network, and its number of parameters.
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "models/network.h"

namespace kumo {
namespace {

// The layers of a file, whose heads a loss of numbers reads as one vector.
Graph GraphOfSsd(const std::string& name) {
  std::ifstream file(std::string(KUMO_SSD) + "/" + name + ".pbtxt");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string heads;
  for (const char* const kind : {"loc", "conf"}) {
    for (int map = 1; map <= 6; ++map) {
      const std::string head = kind + std::to_string(map);
      text += "layers { name: 'flat_" + head + "' inputs: '" + head + "' flatten {} } ";
      heads += " inputs: 'flat_" + head + "'";
    }
  }
  text += "layers { name: 'heads' " + heads + " concat {} } ";
  text += "layers { name: 'loss' mean_squared_error {} }";
  return PlanNetwork(ParseNetwork(text, name).value()).value();
}

struct SsdCase {
  const char* name;
  int divisor;
  int64_t parameters;
};

class SsdTrunkTest : public testing::TestWithParam<SsdCase> {};

TEST_P(SsdTrunkTest, HasThePublishedShapesAndParameters) {
  const SsdCase& of = GetParam();
  const Graph graph = GraphOfSsd(of.name);
  std::map<std::string, Shape> shapes;
  for (const Node& node : graph.nodes) shapes[node.name] = graph.values[node.outputs[0]].shape;
  EXPECT_EQ(shapes["pool1"], Shape({64 / of.divisor, 150, 150}));
  EXPECT_EQ(shapes["pool2"], Shape({128 / of.divisor, 75, 75}));
  EXPECT_EQ(shapes["pool3"], Shape({256 / of.divisor, 38, 38}));
  EXPECT_EQ(shapes["norm4"], Shape({512 / of.divisor, 38, 38}));
  EXPECT_EQ(shapes["pool4"], Shape({512 / of.divisor, 19, 19}));
  EXPECT_EQ(shapes["pool5"], Shape({512 / of.divisor, 19, 19}));
  EXPECT_EQ(shapes["conv6"], Shape({1024 / of.divisor, 19, 19}));
  const int boxes_of[] = {4, 6, 6, 6, 4, 4};
  const int sizes[] = {38, 19, 10, 5, 3, 1};
  int boxes = 0;
  for (int map = 0; map < 6; ++map) {
    const std::string number = std::to_string(map + 1);
    EXPECT_EQ(shapes["loc" + number], Shape({4 * boxes_of[map], sizes[map], sizes[map]}));
    EXPECT_EQ(shapes["conf" + number], Shape({21 * boxes_of[map], sizes[map], sizes[map]}));
    boxes += boxes_of[map] * sizes[map] * sizes[map];
  }
  EXPECT_EQ(boxes, 8732);
  EXPECT_EQ(shapes["heads"], Shape({8732 * (4 + 21)}));
  int64_t parameters = 0;
  for (const Parameter& parameter : graph.parameters) parameters += parameter.tensor.size();
  EXPECT_EQ(parameters, of.parameters);
}

INSTANTIATE_TEST_SUITE_P(Files, SsdTrunkTest,
                         testing::Values(SsdCase{"voc_ssd300", 1, 26285486},
                                         SsdCase{"voc_ssd300_slim", 4, 2271902}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace kumo
