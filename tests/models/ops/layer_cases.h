// The layers that every test of the registry tries: at least one for each entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/tensor/tensor.h"

namespace kumo {

struct LayerCase {
  const char* name;  // of the test
  Shape input;
  const char* text;              // a model::Layer
  std::vector<Shape> more = {};  // inputs after the first
  int64_t vocabulary = 0;        // of an input of whole numbers
  // Of the differences that gradients are compared with: the longer, the less of them is rounding,
  // and of a linear layer no length is too long.
  float step = 2e-3f;

  std::vector<Shape> inputs() const;
  // Numbers of one sample's inputs.
  int64_t size() const;
};

const std::vector<LayerCase>& LayerCases();

}  // namespace kumo
