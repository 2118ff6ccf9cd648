// Concatenation of arrays along the channels: the channels of one input after those of another.
#pragma once

#include <cstdint>
#include <vector>

#include "models/tensor/tensor.h"

namespace kumo {

struct ConcatSpec {
  std::vector<Shape> inputs;  // of one height and width

  Shape output() const {
    int64_t channels = 0;
    for (const Shape& shape : inputs) channels += shape.channels();
    return inputs.front().WithChannels(channels);
  }
  bool looks_ahead(int64_t) const { return false; }
};

}  // namespace kumo
