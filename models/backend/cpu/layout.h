// Layout of activations on the CPU: channel, row, column, sample. The samples of a minibatch lie
// side by side, so that every kernel works on full vectors whatever the number of channels is
// (blocked formats pad 20 channels to 32 and 50 to 64), and a fully connected layer is a matrix
// product without a transposition.
//
// The number of lanes for the samples is the same for all ops of a network: the largest that any of
// the ops needs (PaddingOf, ops.h).
//
// Padding lanes hold finite numbers in activations and zeros in gradients, so sums over lanes need
// no mask. Memory comes in multiples of 64 bytes, so that a pass over a whole array may take whole
// vectors to its end.
#pragma once

#include <cstdint>

namespace kumo::cpu {

constexpr int kSampleLanes = 16;

// Padding of a position's samples; in increasing order.
enum class Padding : uint8_t {
  kNone,    // nothing
  kSingle,  // as kFew, but nothing for one sample alone
  kFew,  // whole vectors of 16, but of few samples 4 or 8, and a vector goes over several positions
  kWhole,  // whole vectors of 16
};

// Up to this many samples leave half of 16 lanes empty: of 4 samples, three quarters of the numbers
// in the caches would be padding.
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
  if (padding == Padding::kNone || (padding == Padding::kSingle && batch == 1)) return batch;
  if (padding == Padding::kSingle) return FewLanes(batch);
  return padding == Padding::kFew ? FewLanes(batch) : WholeLanes(batch);
}

}  // namespace kumo::cpu
