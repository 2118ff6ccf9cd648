#include <cuda_runtime_api.h>

#include "models/backend/cuda/cuda_backend.h"

namespace kumo {

Result<std::string> CudaPciBusId(int device) {
  char id[32] = "";
  const cudaError_t code = cudaDeviceGetPCIBusId(id, sizeof(id), device);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();  // it does not stick
    return FailedPrecondition("cudaDeviceGetPCIBusId: " + std::string(cudaGetErrorString(code)));
  }
  return std::string(id);
}

}  // namespace kumo
