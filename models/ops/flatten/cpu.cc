// Flattening, which moves nothing on the CPU: the graph for the CPU has no such op
// (graph/rewrites/flattening.cc).
#include <memory>

#include "models/backend/cpu/ops.h"

namespace kumo::cpu {

Padding PaddingOf(const FlattenSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine&, const FlattenSpec&, int) {
  return InvalidArgument("network.device=cpu has no flatten");
}

}  // namespace kumo::cpu
