// The CUDA backend: cuDNN's convolutions and pooling, cuBLASLt's matrix products, own kernels for
// the rest (kernels.h). A training step is recorded as a graph once for each key and then replayed.
//
// It is a module (module.h). Programs are linked with module_loader.cc, where these functions load
// it, so that NVIDIA's libraries are needed, and cost time and memory, where a GPU is asked for
// only.
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

// FailedPrecondition where there is no such device, naming those that there are, or where the
// module or a library of NVIDIA's is missing, naming the package that brings it.
Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options);
// The devices that there are: "cuda:0 (NVIDIA H100 80GB HBM3, 80 GB)". FailedPrecondition says why
// there can be none: no driver, no module.
Result<std::vector<std::string>> ListCudaDevices();
// Where a device is plugged in, "0000:1B:00.0", by the number that this process knows it under
// (CUDA_VISIBLE_DEVICES renumbers them). Touches no device. FailedPrecondition as above.
Result<std::string> CudaPciBusId(int device);

}  // namespace kumo
