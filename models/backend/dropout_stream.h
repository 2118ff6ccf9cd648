// The random numbers of what a training step drops: number i of the stream decides number i of the
// minibatch, counted sample by sample, so it does not depend on how a device lays samples out.
#pragma once

#include <cstdint>

#include "common/base/rng.h"
#include "models/tensor.h"

namespace kumo {

// A net has fewer layers than this.
inline constexpr uint64_t kLayersPerStep = 1 << 16;

// layer: its place in the network file.
inline Rng DropoutStream(const StepStreams& streams, int layer) {
  return {streams.seed, RngPurpose::kDropout, streams.partition, streams.round,
          streams.step * kLayersPerStep + static_cast<uint64_t>(layer)};
}

}  // namespace kumo
