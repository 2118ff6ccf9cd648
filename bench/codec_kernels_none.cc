// Replaces codec_kernels_cuda.cc in builds without CUDA.
#include "bench/codec_kernels.h"

namespace kumo {

Result<std::unique_ptr<CodecKernels>> MakeCodecKernels(std::span<const float>) {
  return FailedPrecondition("built without CUDA");
}

}  // namespace kumo
