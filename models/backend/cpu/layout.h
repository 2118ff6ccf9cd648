// The CPU backend's layout of activations: channel, row, column, sample. The samples of a minibatch
// lie side by side, so that every kernel works on full vectors whatever the number of channels
// (blocked formats pad 20 channels to 32 and 50 to 64), and a fully connected layer is a matrix
// product without a transposition.
//
// How many lanes there are for them is the same for all ops of a network: as many as that op needs
// which needs most of them (padding.h).
//
// Padding lanes hold finite numbers in activations and zeros in gradients, so sums over lanes need
// no mask. Memory comes in multiples of 64 bytes, so that what goes over a whole array may take
// whole vectors to its end.
#pragma once

#include <cstdint>

namespace kumo::cpu {

constexpr int kSampleLanes = 16;

// What the samples of a position are padded to; from the least.
enum class Padding : uint8_t {
  kNone,  // nothing
  kFew,  // whole vectors of 16, but of few samples 4 or 8, and a vector goes over several positions
  kWhole,  // whole vectors of 16
};

// As many samples leave half of 16 lanes empty: three quarters of what goes through the caches of 4
// samples would be padding.
constexpr int kFewSamples = kSampleLanes / 2;

constexpr int64_t WholeLanes(int batch) {
  return (batch + kSampleLanes - 1) / kSampleLanes * kSampleLanes;
}
constexpr int64_t FewLanes(int batch) {
  if (batch > kFewSamples) return WholeLanes(batch);
  return batch > kFewSamples / 2 ? kFewSamples : kFewSamples / 2;
}
// Floats between two neighbouring positions.
constexpr int64_t LanesOf(Padding padding, int batch) {
  if (padding == Padding::kNone) return batch;
  return padding == Padding::kFew ? FewLanes(batch) : WholeLanes(batch);
}

}  // namespace kumo::cpu
