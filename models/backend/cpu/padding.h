// What padding the op of each spec needs: a net has the most of its ops'. An op that needs none
// takes any number of lanes, one that needs kFew takes 4, 8 and multiples of 16.
#pragma once

#include "models/backend/cpu/layout.h"
#include "models/ops/ops.h"

namespace kumo::cpu {

// What goes over all numbers, or copies those of a position's samples, needs nothing.
constexpr Padding PaddingOf(const ActivationSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const DropoutSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const AddSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const MultiplySpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const ConcatSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const RearrangeSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const FlattenSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const EmbeddingSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const PositionalEmbeddingSpec&) { return Padding::kNone; }
constexpr Padding PaddingOf(const AttentionSpec&) { return Padding::kNone; }

// Per position the rows of whole channels are multiplied. Rows of samples alone would do as they
// are, too; but their sums are taken by vectors, and so mnist_* keep the bits that they have always
// had.
inline Padding PaddingOf(const FullyConnectedSpec& spec) {
  return spec.positions == 1 ? Padding::kFew : Padding::kNone;
}

// Goes over the rows of whole channels by whole vectors.
inline Padding PaddingOf(const PositionNormalisationSpec& spec) {
  const int64_t positions = spec.shape.plane();
  if (positions % kSampleLanes == 0) return Padding::kNone;
  return positions % (kSampleLanes / 4) == 0 ? Padding::kFew : Padding::kWhole;
}

// Know positions, each by vectors of its samples or several by one vector.
inline Padding PaddingOf(const ConvolutionSpec& spec) {
  return spec.pool ? Padding::kWhole : Padding::kFew;
}
constexpr Padding PaddingOf(const PoolingSpec&) { return Padding::kFew; }
constexpr Padding PaddingOf(const BatchNormalisationSpec&) { return Padding::kFew; }

// Take 16 samples of a position at a time.
constexpr Padding PaddingOf(const GroupNormalisationSpec&) { return Padding::kWhole; }
constexpr Padding PaddingOf(const L2NormalisationSpec&) { return Padding::kWhole; }

}  // namespace kumo::cpu
