#include "models/devices/devices.h"

#include "common/base/instruction_set.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {
namespace {

// Index of a GPU among those of the machine.
int NumberOf(const Device& device) { return device.number.value_or(0); }

}  // namespace

Result<std::unique_ptr<Backend>> MakeBackend(const Experiment::Network& settings) {
  if (!settings.device.is_cpu()) {
    return MakeCudaBackend(
        {NumberOf(settings.device), settings.precision, settings.tf32, settings.deterministic});
  }
  if (settings.precision != Precision::kFp32) {
    return FailedPrecondition("network.precision=" + std::string(WordOf(settings.precision)) +
                              " needs a GPU: with network.device=cpu there is only fp32");
  }
  KUMO_ASSIGN_OR_RETURN(const Isa isa, LevelFor(settings.instruction_set));
  // Without a limit oneDNN uses all that the machine has, which is the same level.
  if (isa != DetectIsa()) KUMO_RETURN_IF_ERROR(LimitProducts(isa));
  return MakeCpuBackend(settings.threads, isa);
}

std::vector<std::string> ListDevices() {
  std::vector<std::string> devices = {"cpu"};
  const Result<std::vector<std::string>> cuda = ListCudaDevices();
  if (!cuda.ok()) {
    devices.push_back("no cuda: " + cuda.status().message());
  } else {
    devices.insert(devices.end(), cuda->begin(), cuda->end());
  }
  return devices;
}

Result<std::optional<std::string>> PciBusIdOf(const Device& device) {
  if (device.is_cpu()) return std::optional<std::string>();
  KUMO_ASSIGN_OR_RETURN(std::string id, CudaPciBusId(NumberOf(device)));
  return std::optional<std::string>(std::move(id));
}

}  // namespace kumo
