#include "models/backend/devices.h"

#include <charconv>
#include <string_view>

#include "models/backend/cpu/cpu_backend.h"
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {
namespace {

constexpr std::string_view kCuda = "cuda";

// N of "cuda:N", 0 of "cuda"; -1 for anything else.
int CudaDevice(std::string_view name) {
  if (name == kCuda) return 0;
  if (!name.starts_with("cuda:")) return -1;
  name.remove_prefix(kCuda.size() + 1);
  int device = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), device);
  return error == std::errc() && end == name.data() + name.size() ? device : -1;
}

Result<Precision> PrecisionOf(std::string_view name) {
  if (name == "fp32") return Precision::kFp32;
  if (name == "bf16") return Precision::kBf16;
  if (name == "fp16") return Precision::kFp16;
  return InvalidArgument("network.precision = '" + std::string(name) +
                         "' is unknown; there are fp32, bf16 and fp16");
}

}  // namespace

Result<std::unique_ptr<Backend>> MakeBackend(const DeviceOptions& options) {
  KUMO_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(options.precision));
  if (options.device == "cpu") {
    if (precision != Precision::kFp32) {
      return FailedPrecondition("network.precision=" + options.precision +
                                " needs a GPU: with network.device=cpu there is only fp32");
    }
    if (options.threads < 1 || options.threads > 1024) {
      return InvalidArgument("threads = " + std::to_string(options.threads) +
                             " is outside 1 .. 1024");
    }
    return MakeCpuBackend(options.threads);
  }
  const int device = CudaDevice(options.device);
  if (device < 0) {
    return InvalidArgument("network.device = '" + options.device +
                           "' is no device; there are cpu, and cuda:0, cuda:1, ...");
  }
  return MakeCudaBackend({device, precision, options.tf32, options.deterministic});
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

Result<std::optional<std::string>> PciBusIdOf(const std::string& device) {
  const int number = CudaDevice(device);
  if (number < 0) return std::optional<std::string>();
  KUMO_ASSIGN_OR_RETURN(std::string id, CudaPciBusId(number));
  return std::optional<std::string>(std::move(id));
}

}  // namespace kumo
