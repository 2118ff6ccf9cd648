// The rules' kernels of a level.
#pragma once

#include "common/base/isa.h"
#include "server/rules/kernel.h"

namespace kumo {

// Requires isa <= DetectIsa(). Borrowed for ever.
const RuleKernels& RuleKernelsAt(Isa isa);

}  // namespace kumo
