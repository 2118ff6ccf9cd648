// In place of this folder's other sources where Kumo is built without CUDA.
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {
namespace {

constexpr char kWhy[] = "built without CUDA";

}  // namespace

Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options) {
  return FailedPrecondition("network.device=cuda:" + std::to_string(options.device) + ": " + kWhy +
                            "; use network.device=cpu, or build with -DKUMO_CUDA=ON where CUDA and "
                            "cuDNN are installed");
}

Result<std::vector<std::string>> ListCudaDevices() { return FailedPrecondition(kWhy); }

Result<std::string> CudaPciBusId(int) { return FailedPrecondition(kWhy); }

}  // namespace kumo
