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
// As many samples leave half of the lanes empty.
constexpr int kFewSamples = kSampleLanes / 2;
// The lanes that a minibatch needs: of few samples 4 or 8.
constexpr int64_t NeededLanes(int batch) {
  if (batch > kFewSamples) return LaneStride(batch);
  return batch > kFewSamples / 2 ? kFewSamples : kFewSamples / 2;
}

}  // namespace kumo::cpu
