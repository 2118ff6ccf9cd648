// Random stream of dropout in a training step: number i of the stream decides element i of the
// minibatch, counted sample by sample, so the decision does not depend on a device's layout.
#pragma once

#include <cstdint>

#include "common/base/rng.h"
#include "models/tensor/tensor.h"

namespace kumo {

// A net has fewer layers than this.
inline constexpr uint64_t kLayersPerStep = 1 << 16;

// layer: its place in the network file.
inline Rng DropoutStream(const StepStreams& streams, int layer) {
  return {streams.seed, RngPurpose::kDropout, streams.partition, streams.round,
          streams.step * kLayersPerStep + static_cast<uint64_t>(layer)};
}

}  // namespace kumo
