// Sum and product of arrays.
#include "models/backend/cuda/elementwise.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/elementwise/op.h"

namespace kumo::cuda {
namespace {

struct SumFunction {
  __device__ static float Of2(float a, float b) { return a + b; }
};
struct ProductFunction {
  __device__ static float Of2(float a, float b) { return a * b; }
};

struct ElementwiseArithmetic {
  static void Apply(CudaEngine& engine, const ElementwiseSpec& spec, int batch, const void* a,
                    const void* b, void* to) {
    const auto launch = [&](const auto& f) {
      return LaunchMap2(engine.launch(), engine.precision(), f, a, b, spec.shape.size() * batch,
                        to);
    };
    KUMO_CUDA(engine, spec.function == Elementwise::kSum ? launch(SumFunction())
                                                         : launch(ProductFunction()));
  }
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const ElementwiseSpec& spec, int) {
  return NewOp<ElementwiseOp<CudaEngine, ElementwiseArithmetic>>(engine, spec);
}

}  // namespace kumo::cuda
