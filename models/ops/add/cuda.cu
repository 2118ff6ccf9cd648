// Sum of arrays.
#include "models/backend/cuda/elementwise.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/add/op.h"

namespace kumo::cuda {
namespace {

struct AddFunction {
  __device__ static float Of2(float a, float b) { return a + b; }
};

struct AddArithmetic {
  static void Add(Engine& engine, const Shape& shape, int batch, const void* a, const void* b,
                  void* to) {
    KUMO_CUDA(engine, LaunchMap2(engine.launch(), engine.precision(), AddFunction(), a, b,
                                 shape.size() * batch, to));
  }
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const AddSpec& spec, int) {
  return NewOp<AddOp<Engine, AddArithmetic>>(engine, spec);
}

}  // namespace kumo::cuda
