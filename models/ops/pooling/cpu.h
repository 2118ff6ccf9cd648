// Planes of pooling on the CPU, for other ops that pool.
#pragma once

#include <cstdint>

#include "models/ops/pooling/cpu_kernel.h"
#include "models/ops/pooling/spec.h"

namespace kumo::cpu {

// One channel of the spec's input, of `lanes` floats for each position.
PoolPlane PlaneOf(const PoolingSpec& spec, int64_t lanes);

}  // namespace kumo::cpu
