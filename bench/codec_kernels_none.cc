// In place of codec_kernels_cuda.cc where Kumo is built without CUDA.
#include "bench/codec_kernels.h"

namespace kumo {

Result<std::unique_ptr<CodecKernels>> MakeCodecKernels(std::span<const float>) {
  return FailedPrecondition("built without CUDA");
}

}  // namespace kumo
