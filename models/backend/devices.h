// The devices that there are, by the names that experiment files use.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/backend/backend.h"

namespace kumo {

struct DeviceOptions {
  std::string device = "cpu";      // "cpu", "cuda", "cuda:N"; "cuda" is "cuda:0"
  int threads = 1;                 // of the CPU
  std::string precision = "fp32";  // "fp32"; on CUDA also "bf16", "fp16"
  bool tf32 = false;               // CUDA: float32 products may be rounded to TF32
  bool deterministic = false;      // CUDA: only algorithms that give the same bits each time
};

// InvalidArgument for a name that is none, FailedPrecondition where there is no such device, or no
// module for it (cuda/module.h), which is loaded for a GPU only.
Result<std::unique_ptr<Backend>> MakeBackend(const DeviceOptions& options);

// Every device of this machine, as people are told: "cpu", "cuda:0 (NVIDIA H100 80GB HBM3, 80 GB)",
// or why there is no GPU: "no cuda: this machine has no NVIDIA driver". Loads the CUDA module.
std::vector<std::string> ListDevices();

// Where a device is plugged in, as the kernel's folders for PCI devices are called; nothing for the
// CPU and for a name that is no device's. FailedPrecondition where there is no such device.
Result<std::optional<std::string>> PciBusIdOf(const std::string& device);

}  // namespace kumo
