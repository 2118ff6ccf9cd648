// The CPU backend's layout of activations: channel, row, column, sample. The samples of a minibatch
// lie side by side, padded to whole vectors of 16, so that every kernel works on 16 samples at a
// time whatever the number of channels (blocked formats pad 20 channels to 32 and 50 to 64), and a
// fully connected layer is a matrix product without a transposition.
//
// A minibatch that would leave half of these lanes empty, or more, has 4 or 8 of them, and a vector
// several positions, where all ops of the backend can work so (Engine::Lanes): of 4 samples it
// would else be three quarters padding that goes through the caches.
//
// Padding lanes hold finite numbers in activations and zeros in gradients, so sums over lanes need
// no mask. Memory comes in multiples of 64 bytes, so that what goes over a whole array may take
// whole vectors to its end.
#pragma once

#include <cstdint>

namespace kumo::cpu {

constexpr int kSampleLanes = 16;

// Floats between two neighbouring positions.
constexpr int64_t LaneStride(int batch) {
  return (batch + kSampleLanes - 1) / kSampleLanes * kSampleLanes;
}
// And of few samples where there are no more lanes than these need.
constexpr int kFewSamples = kSampleLanes / 2;
constexpr int64_t FewLanes(int batch) {
  return batch <= kFewSamples / 2 ? kFewSamples / 2 : kFewSamples;
}

}  // namespace kumo::cpu
