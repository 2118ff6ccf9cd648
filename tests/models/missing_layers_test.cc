#include "models/missing_layers.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "models/layers/layer.h"
#include "models/layers/loss.h"

namespace kumo {
namespace {

TEST(MissingLayers, ANameIsFoundInAnySpelling) {
  for (const char* name : {"space_to_depth", "SpaceToDepth", "space-to-depth", "SPACETODEPTH"}) {
    EXPECT_TRUE(NearestWayTo(name).starts_with("reshape")) << name;
  }
  for (const char* name : {"", "_", "pixel", "spacetodepth reorg", "relu"}) {
    EXPECT_EQ(NearestWayTo(name), "") << name;
  }
}

// Such a name is answered with the layer ("did you mean ...?").
TEST(MissingLayers, HaveNoNameOfALayerOrLossThatKumoHas) {
  const auto check = [](const auto& kind) {
    std::istringstream names(std::string(kind.name) + " " + kind.also);
    for (std::string name; names >> name;) EXPECT_EQ(NearestWayTo(name), "") << name;
  };
  for (const LayerKind& kind : LayerKinds()) check(kind);
  for (const LossKind& kind : LossKinds()) check(kind);
}

}  // namespace
}  // namespace kumo
