// The CPU backend's layout of activations: channel, row, column, sample. The samples of a minibatch
// lie side by side, padded to whole vectors of 16, so that every kernel works on 16 samples at a
// time whatever the number of channels (blocked formats pad 20 channels to 32 and 50 to 64), and a
// fully connected layer is a matrix product without a transposition.
//
// Padding lanes hold finite numbers in activations and zeros in gradients, so sums over lanes need
// no mask.
#pragma once

#include <cstdint>

namespace kumo::cpu {

constexpr int kSampleLanes = 16;

// Floats between two neighbouring positions.
constexpr int64_t LaneStride(int batch) {
  return (batch + kSampleLanes - 1) / kSampleLanes * kSampleLanes;
}

}  // namespace kumo::cpu
