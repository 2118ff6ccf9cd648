// Elementwise product of two arrays.
#include <cstdint>

#include "models/backend/cpu/ops.h"
#include "models/ops/multiply/op.h"

namespace kumo::cpu {
namespace {

struct MultiplyArithmetic {
  static void Multiply(Engine& engine, const Shape& shape, int batch, const void* a, const void* b,
                       void* to) {
    engine.ParallelPieces(shape.size() * engine.Lanes(batch), [&](int64_t begin, int64_t end) {
      engine.elementwise.multiply(Floats(a) + begin, Floats(b) + begin, end - begin,
                                  Floats(to) + begin);
    });
  }
};

}  // namespace

// Any lanes: the op goes over all elements.
Padding PaddingOf(const MultiplySpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const MultiplySpec& spec, int) {
  return NewOp<MultiplyOp<Engine, MultiplyArithmetic>>(engine, spec);
}

}  // namespace kumo::cpu
