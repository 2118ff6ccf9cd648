// Drops difficult objects, and crowds of COCO, from training images (data.train_difficult), before
// all other transforms: their place is then background. Evaluated images keep them.
//
// Pure function; thread-safe.
#pragma once

#include <memory>

#include "data/transforms/transform.h"

namespace kumo {

Result<std::unique_ptr<const Transform>> MakeDropDifficult(const TransformRequest& request);

}  // namespace kumo
