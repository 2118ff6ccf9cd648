// The layers that every test of the registry tries: at least one for each entry.
#pragma once

#include <string>
#include <vector>

#include "models/tensor.h"

namespace kumo {

struct LayerCase {
  const char* name;  // of the test
  Shape input;
  const char* text;  // a model::Layer
};

const std::vector<LayerCase>& LayerCases();

}  // namespace kumo
