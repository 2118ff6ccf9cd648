// Activation functions of each element.
#include <cstdint>

#include "models/backend/cpu/ops.h"
#include "models/ops/activation/cpu_kernel.h"
#include "models/ops/activation/op.h"

namespace kumo::cpu {
namespace {

ActivationKernel KernelOf(Isa isa, Activation activation) {
  const ActivationKernels& kernels = KUMO_AT_ISA(isa, kActivation);
  switch (activation) {
    case Activation::kRelu:
      return kernels.relu;
    case Activation::kLeakyRelu:
      return kernels.leaky_relu;
    case Activation::kGelu:
      return kernels.gelu;
    case Activation::kGeluTanh:
      return kernels.gelu_tanh;
    case Activation::kSilu:
      return kernels.silu;
    case Activation::kTanh:
      return kernels.tanh;
    case Activation::kSigmoid:
      break;
  }
  return kernels.sigmoid;
}

struct ActivationArithmetic {
  static void Forward(CpuEngine& engine, const ActivationSpec& spec, int batch, const void* x,
                      void* y) {
    const ActivationKernel kernel = KernelOf(engine.isa, spec.activation);
    engine.ParallelPieces(spec.shape.size() * engine.Lanes(batch), [&](int64_t begin, int64_t end) {
      kernel.forward(Floats(x) + begin, end - begin, spec.slope, Floats(y) + begin);
    });
  }
  static void Backward(CpuEngine& engine, const ActivationSpec& spec, int batch, const void* from,
                       const void* dy, void* dx) {
    const ActivationKernel kernel = KernelOf(engine.isa, spec.activation);
    engine.ParallelPieces(spec.shape.size() * engine.Lanes(batch), [&](int64_t begin, int64_t end) {
      kernel.backward(Floats(from) + begin, Floats(dy) + begin, end - begin, spec.slope,
                      Floats(dx) + begin);
    });
  }
};

}  // namespace

// Any lanes: the op goes over all elements.
Padding PaddingOf(const ActivationSpec&) { return Padding::kNone; }

Result<std::unique_ptr<Op>> MakeOp(CpuEngine& engine, const ActivationSpec& spec, int) {
  return NewOp<ActivationOp<CpuEngine, ActivationArithmetic>>(engine, spec);
}

}  // namespace kumo::cpu
