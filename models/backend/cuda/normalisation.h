// Base class of the CUDA ops that normalise by mean and deviation, with scale and shift.
//
// Owned by an Execution, as each op; not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "models/backend/cuda/cuda_engine.h"
#include "models/backend/op.h"

namespace kumo::cuda {

// Tensors and statistics as a kernel's argument; the op says the extents of both.
struct NormalisationArrays {
  const float* scale = nullptr;
  const float* shift = nullptr;  // null if the layer has none
  float* mean = nullptr;         // of the last Forward
  float* inverse = nullptr;      // 1 / the deviation
  float* scale_gradient = nullptr;
  float* shift_gradient = nullptr;  // null if the layer has no shift
};

class Normalisation : public WeightedOp<UnaryOp> {
 public:
  bool reads_input() const final { return true; }
  int64_t bytes() const final { return mean_.bytes() + inverse_.bytes(); }

 protected:
  // groups: the number of means. name: the op's, in the memory ledger. The engine is borrowed for
  // the op's life.
  Normalisation(CudaEngine& engine, const Shape& shape, bool has_shift, int64_t groups,
                const std::string& name)
      : WeightedOp(has_shift),
        engine_(engine),
        shape_(shape),
        mean_(engine, groups, name + " means"),
        inverse_(engine, groups, name + " deviations") {}

  ActivationShape ShapeOf(const Pass& pass) const { return engine_.ShapeOf(shape_, pass.batch); }
  NormalisationArrays arrays() {
    return {weight_, bias_, mean_.data(), inverse_.data(), weight_gradient_, bias_gradient_};
  }

  CudaEngine& engine_;

 private:
  Shape shape_;
  DeviceArray<float> mean_;
  DeviceArray<float> inverse_;
};

}  // namespace kumo::cuda
