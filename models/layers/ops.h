// List of ops: the folders of models/ops/.
//
// The folder of an op `Xxx` is ops/xxx/:
//
//   spec.h              XxxSpec: the shapes (of one sample) and settings of the op, as a value;
//                       looks_ahead(n): whether a position of a sequence of n positions may
//                       depend on later positions
//   plan.cc             XxxLayers(): the layers of a network file that become this op
//   op.h                XxxOp<Engine, Arithmetic>: the op itself, if both backends differ only in
//                       their arithmetic (add, multiply, activation)
//   cpu.cc              cpu::MakeOp(XxxSpec) and cpu::PaddingOf(XxxSpec) (backend/cpu/ops.h)
//   cpu_kernel.{h,cc}   vector kernels, if the CPU op has its own
//   cuda.cu or cuda.cc  cuda::MakeOp(XxxSpec) (backend/cuda/ops.h), with or without own kernels
//   cpu_*, cuda_*       further files of a large op (convolution)
//   onnx.cc             OnnxForm(XxxSpec) (onnx/forms.h), and XxxOnnxReaders(): nodes of ONNX that
//                       become the op (onnx/readers.h)
//
// A missing part is an error of the compiler or the linker. CMake finds the files by their names. A
// new op needs its folder, and an include and its line here. The order is LayerKinds()'s.
#pragma once

#include <cstdint>
#include <variant>

#include "models/layers/kind_list.h"
#include "models/ops/activation/spec.h"
#include "models/ops/attention/spec.h"
#include "models/ops/batch_normalisation/spec.h"
#include "models/ops/concat/spec.h"
#include "models/ops/convolution/spec.h"
#include "models/ops/dropout/spec.h"
#include "models/ops/elementwise/spec.h"
#include "models/ops/embedding/spec.h"
#include "models/ops/flatten/spec.h"
#include "models/ops/fully_connected/spec.h"
#include "models/ops/group_normalisation/spec.h"
#include "models/ops/l2_normalisation/spec.h"
#include "models/ops/pooling/spec.h"
#include "models/ops/position_normalisation/spec.h"
#include "models/ops/positional_embedding/spec.h"
#include "models/ops/rearrange/spec.h"
#include "models/ops/transposed_convolution/spec.h"
#include "models/ops/upsampling/spec.h"

#define KUMO_OPS(X)        \
  X(FullyConnected)        \
  X(Convolution)           \
  X(TransposedConvolution) \
  X(Pooling)               \
  X(Upsampling)            \
  X(Activation)            \
  X(Dropout)               \
  X(BatchNormalisation)    \
  X(GroupNormalisation)    \
  X(PositionNormalisation) \
  X(L2Normalisation)       \
  X(Embedding)             \
  X(PositionalEmbedding)   \
  X(Attention)             \
  X(Flatten)               \
  X(Rearrange)             \
  X(Elementwise)           \
  X(Concat)

namespace kumo {

#define KUMO_SPEC(Name) , Name##Spec
using OpSpec = VariantOf<void KUMO_OPS(KUMO_SPEC)>::type;
#undef KUMO_SPEC

// Multiplications of one sample's forward pass, each with an addition, in convolutions and matrix
// products; 0 for the other ops.
inline int64_t ProductsOf(const OpSpec& spec) {
  return std::visit(
      []<typename Spec>(const Spec& op) -> int64_t {
        if constexpr (requires { op.products(); }) {
          return op.products();
        } else {
          return 0;
        }
      },
      spec);
}

}  // namespace kumo
