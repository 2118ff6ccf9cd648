// The way that images to evaluate on come to the network's size (data.shorter_side): what would be
// cut out of their middle had they been scaled, in their proportions, until their shorter side is
// so long. Only that part is scaled.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/resample.h"
#include "data/transforms/transform.h"

namespace kumo {

// FailedPrecondition where images of these extents cannot be cut out of those of that shorter side.
Status CheckShorterSide(int64_t shorter_side, const std::vector<int64_t>& wanted);

// Of an image to evaluate on. FailedPrecondition where the shorter side is below one of the wanted
// size's, or images have other channels than data.image_size.
Result<std::unique_ptr<const Transform>> MakeCentreCrop(const TransformRequest& request);

}  // namespace kumo
