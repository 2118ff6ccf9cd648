// Devices of this machine, and the backends that compute on them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/settings/experiment.h"
#include "models/backend/backend.h"

namespace kumo {

// The backend of network.device, with the settings of [network]. FailedPrecondition if there is no
// such device, no module for it (cuda/module.h; loaded for a GPU only), or if the CPU lacks the
// precision.
Result<std::unique_ptr<Backend>> MakeBackend(const Experiment::Network& settings);

// Every device of this machine, for people: "cpu", "cuda:0 (NVIDIA H100 80GB HBM3, 80 GB)",
// or why there is no GPU: "no cuda: this machine has no NVIDIA driver". Loads the CUDA module.
std::vector<std::string> ListDevices();

// The PCI bus address of a GPU, as the kernel's folders for PCI devices are called; none for the
// CPU. FailedPrecondition if there is no such device.
Result<std::optional<std::string>> PciBusIdOf(const Device& device);

}  // namespace kumo
