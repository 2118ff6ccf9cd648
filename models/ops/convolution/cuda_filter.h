// Filter of a convolution as cuDNN reads it, and its gradient as cuDNN writes it.
//
// With 16-bit activations, cuDNN reads a 16-bit copy of the filter with channels last, made anew
// for each minibatch, and writes such a gradient. In float32 cuDNN reads a copy too if the filter
// is not aligned to 16 bytes: its kernels may need that alignment, and a flat vector does not
// promise it.
//
// Owned by an op, used by its caller; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/backend/cuda/cuda_engine.h"
#include "models/ops/convolution/spec.h"

namespace kumo::cuda {

class ConvolutionFilter {
 public:
  ConvolutionFilter(CudaEngine& engine, const ConvolutionSpec& spec)
      : engine_(engine), spec_(spec) {}

  // weight: [outputs][channels of a group][kernel]; gradient likewise, or null.
  void Bind(const float* weight, float* gradient);
  // Makes the copy; before data() is read for another minibatch.
  void Load();
  const void* data() const;
  // The array to which cuDNN writes the gradient; StoreGradient() then puts it in its place.
  void* gradient();
  void StoreGradient();

  int64_t bytes() const { return copy_.bytes() + gradient_copy_.bytes(); }

 private:
  int64_t kernel() const { return int64_t{spec_.kernel_height} * spec_.kernel_width; }
  int64_t size() const { return spec_.outputs * spec_.channels_per_group() * kernel(); }
  // Planes that are transposed between a filter, or its gradient, and the copy.
  Planes Matrices(int64_t rows, int64_t columns) const;

  CudaEngine& engine_;
  ConvolutionSpec spec_;
  const float* weight_ = nullptr;
  float* weight_gradient_ = nullptr;
  bool copies_ = false;  // whether cuDNN works on copies of its own
  // Order: with 16-bit activations [outputs][kernel][channels of a group], else the filter's.
  DeviceArray<std::byte> copy_;
  DeviceArray<std::byte> gradient_copy_;
};

}  // namespace kumo::cuda
