// Elementwise product of two arrays.
#include "models/backend/cuda/elementwise.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/multiply/op.h"

namespace kumo::cuda {
namespace {

struct MultiplyFunction {
  __device__ static float Of2(float a, float b) { return a * b; }
};

struct MultiplyArithmetic {
  static void Multiply(Engine& engine, const Shape& shape, int batch, const void* a, const void* b,
                       void* to) {
    KUMO_CUDA(engine, LaunchMap2(engine.launch(), engine.precision(), MultiplyFunction(), a, b,
                                 shape.size() * batch, to));
  }
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(Engine& engine, const MultiplySpec& spec, int) {
  return NewOp<MultiplyOp<Engine, MultiplyArithmetic>>(engine, spec);
}

}  // namespace kumo::cuda
