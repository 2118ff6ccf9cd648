// CUDA backend: cuDNN's convolutions and pooling, cuBLASLt's matrix products, and own kernels for
// the rest. A training step is recorded as a graph once for each key and then replayed.
//
// The backend is a module (module.h). Programs are linked with module_loader.cc, whose functions
// load the module, so that NVIDIA's libraries are needed, and cost time and memory, only if a GPU
// is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/backend/backend.h"

namespace kumo {

struct CudaOptions {
  int device = 0;
  Precision precision = Precision::kFp32;
  bool tf32 = false;           // float32 products may be rounded to TF32
  bool deterministic = false;  // only algorithms that give the same bits each time
};

// FailedPrecondition if there is no such device (the message names the devices), or if the module
// or a library of NVIDIA's is missing (the message names the package).
Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options);
// Devices of this machine: "cuda:0 (NVIDIA H100 80GB HBM3, 80 GB)". FailedPrecondition says why
// there can be none: no driver, no module.
Result<std::vector<std::string>> ListCudaDevices();
// PCI bus id of a device, "0000:1B:00.0"; device: its number in this process
// (CUDA_VISIBLE_DEVICES renumbers devices). Touches no device. FailedPrecondition as above.
Result<std::string> CudaPciBusId(int device);

}  // namespace kumo
