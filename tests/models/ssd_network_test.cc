// SSD300: the shapes and default boxes of the published network.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "models/network.h"

namespace kumo {
namespace {

Graph GraphOfSsd(const std::string& name, int64_t classes) {
  const std::string file = std::string(KUMO_ZOO) + "/" + name + ".pbtxt";
  return PlanNetwork(LoadNetwork(file, {.classes = classes}).value()).value();
}

struct SsdCase {
  const char* name;
  int divisor;
  int classes;
};

class SsdNetworkTest : public testing::TestWithParam<SsdCase> {};

TEST_P(SsdNetworkTest, HasThePublishedShapesAndBoxes) {
  const SsdCase& of = GetParam();
  const Graph graph = GraphOfSsd(of.name, of.classes);
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
    EXPECT_EQ(shapes["conf" + number],
              Shape({(of.classes + 1) * boxes_of[map], sizes[map], sizes[map]}));
    boxes += boxes_of[map] * sizes[map] * sizes[map];
  }
  EXPECT_EQ(boxes, 8732);
  EXPECT_EQ(graph.loss().detail, "8732 boxes");
}

INSTANTIATE_TEST_SUITE_P(Files, SsdNetworkTest,
                         testing::Values(SsdCase{"voc_ssd300", 1, 20},
                                         SsdCase{"voc_ssd300_slim", 4, 20},
                                         SsdCase{"voc_ssd300_slim", 4, 3}),
                         [](const auto& tested) {
                           return std::string(tested.param.name) +
                                  std::to_string(tested.param.classes);
                         });

}  // namespace
}  // namespace kumo
