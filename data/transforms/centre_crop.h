// The way that images to evaluate on come to the network's size (data.shorter_side): what would be
// cut out of their middle had they been scaled, in their proportions, until their shorter side is
// so long. Only that part is scaled.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "data/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

// The part of an image that becomes wanted_height x wanted_width, to the nearest pixel. Requires
// wanted sides of at most shorter_side.
Rectangle MiddleOf(int64_t height, int64_t width, int64_t wanted_height, int64_t wanted_width,
                   int64_t shorter_side);

// Of an image to evaluate on. FailedPrecondition where the shorter side is below one of the wanted
// size's, or images have other channels than data.image_size.
Result<std::unique_ptr<const Transform>> MakeCentreCrop(const TransformRequest& request);

}  // namespace kumo
