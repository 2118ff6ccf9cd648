// Which window of an image an epoch trains on.
//
// Windows are random, but any process works out the one of any sample in any epoch from (seed,
// epoch, sample) alone, whoever reads it in whatever order: Rng(seed, kAugment, epoch, sample).
// They are part of a job's mathematics: what is drawn never changes.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/job/pixels.h"

namespace kumo {

struct Augmentation {
  int pad = 0;        // pixels around the image that a window may begin or end in
  bool flip = false;  // windows are mirrored with probability 1/2

  // Whether windows differ from whole images.
  bool any() const { return pad > 0 || flip; }
};

// Uniform among the (2 pad + 1)^2 places, mirrored or not. Requires 0 <= pad <= 16384.
Window DrawWindow(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t sample);

}  // namespace kumo
