// Sum and product of arrays.
#include <cstdint>

#include "models/backend/cpu/ops.h"
#include "models/ops/elementwise/op.h"

namespace kumo::cpu {
namespace {

struct ElementwiseArithmetic {
  static void Apply(CpuEngine& engine, const ElementwiseSpec& spec, int batch, const void* a,
                    const void* b, void* to) {
    const auto function =
        spec.function == Elementwise::kSum ? engine.elementwise.add : engine.elementwise.multiply;
    engine.ParallelPieces(spec.shape.size() * engine.Lanes(batch), [&](int64_t begin, int64_t end) {
      function(Floats(a) + begin, Floats(b) + begin, end - begin, Floats(to) + begin);
    });
  }
};

}  // namespace

// Any lanes: the op goes over all elements.
Padding PaddingOf(const ElementwiseSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const ElementwiseSpec& spec, int) {
  return NewOp<ElementwiseOp<CpuEngine, ElementwiseArithmetic>>(engine, spec);
}

}  // namespace kumo::cpu
