// Exported function of the module; see module.h. Part of the module only.
#include "models/backend/cuda/module.h"

extern "C" __attribute__((visibility("default"))) const kumo::CudaModule* kumo_cuda_module() {
  static constexpr kumo::CudaModule kModule = {KUMO_MODULE_BUILD, kumo::MakeCudaBackend,
                                               kumo::ListCudaDevices, kumo::CudaPciBusId};
  return &kModule;
}
