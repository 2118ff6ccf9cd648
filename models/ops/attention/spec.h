// Scaled dot-product attention of several heads over a sequence.
#pragma once

#include <cstdint>

#include "models/tensor/tensor.h"

namespace kumo {

// See Attention in proto/model.proto.
struct AttentionSpec {
  int64_t channels = 1;  // of the output, and of queries, keys and values
  int64_t positions = 1;
  int heads = 1;  // divides the channels
  bool causal = false;
  // Share of the weights that a training step drops. Number ((sample heads + head) positions +
  // query) positions + key of the layer's stream (DropoutStream) decides a weight.
  float dropout = 0;
  int layer = 0;  // as in DropoutSpec

  Shape input() const { return {3 * channels, positions}; }
  Shape output() const { return {channels, positions}; }
  int64_t per_head() const { return channels / heads; }
  // Pairs of a position and a position that it looks at.
  int64_t pairs() const { return causal ? positions * (positions + 1) / 2 : positions * positions; }
  int64_t products() const { return 2 * channels * pairs(); }
  bool looks_ahead(int64_t) const { return !causal; }
};

}  // namespace kumo
