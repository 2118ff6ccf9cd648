// Sum of arrays.
#include <cstdint>

#include "models/backend/cpu/ops.h"
#include "models/ops/add/op.h"

namespace kumo::cpu {
namespace {

struct AddArithmetic {
  static void Add(Engine& engine, const Shape& shape, int batch, const void* a, const void* b,
                  void* to) {
    engine.ParallelPieces(shape.size() * engine.Lanes(batch), [&](int64_t begin, int64_t end) {
      engine.elementwise.add(Floats(a) + begin, Floats(b) + begin, end - begin, Floats(to) + begin);
    });
  }
};

}  // namespace

// Any lanes: the op goes over all elements.
Padding PaddingOf(const AddSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const AddSpec& spec, int) {
  return NewOp<AddOp<Engine, AddArithmetic>>(engine, spec);
}

}  // namespace kumo::cpu
