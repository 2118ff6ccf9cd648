// CUDA backend of a program: functions that load the module and call it.
#include <dlfcn.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/base/installation.h"
#include "models/backend/cuda/module.h"

namespace kumo {
namespace {

// The dynamic linker's words for its last failure.
std::string LinkerError() {
  const char* const error = dlerror();
  return error == nullptr ? "the dynamic linker does not say why" : error;
}

Result<const CudaModule*> InstalledModule() {
  return LoadCudaModule(FindInstallation().cuda_module);
}

}  // namespace

Result<const CudaModule*> LoadCudaModule(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return FailedPrecondition("there is no CUDA module " + path +
                              ": install the package kumo-cuda, or build with -DKUMO_CUDA=ON where "
                              "CUDA and cuDNN are installed");
  }
  // All symbols now: a library that is too old is told here, not in the middle of a step.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return FailedPrecondition("the CUDA module " + path + " cannot be loaded: " + LinkerError() +
                              " (it needs " KUMO_CUDA_PACKAGES ")");
  }
  const auto function = reinterpret_cast<CudaModuleFunction>(dlsym(library, kCudaModuleFunction));
  if (function == nullptr) {
    return FailedPrecondition(path + " is no CUDA module of Kumo's: " + LinkerError());
  }
  const CudaModule* const module = function();
  if (std::string_view(module->build) != KUMO_MODULE_BUILD) {
    return FailedPrecondition("the CUDA module " + path + " is of another build (" + module->build +
                              ") than this program (" KUMO_MODULE_BUILD
                              "): install kumo and kumo-cuda of the same version");
  }
  return module;
}

Result<std::unique_ptr<Backend>> MakeCudaBackend(const CudaOptions& options) {
  const Result<const CudaModule*> module = InstalledModule();
  if (!module.ok()) {
    return module.status().WithContext("network.device=cuda:" + std::to_string(options.device));
  }
  return (*module)->make(options);
}

Result<std::vector<std::string>> ListCudaDevices() {
  KUMO_ASSIGN_OR_RETURN(const CudaModule* module, InstalledModule());
  return module->list();
}

Result<std::string> CudaPciBusId(int device) {
  KUMO_ASSIGN_OR_RETURN(const CudaModule* module, InstalledModule());
  return module->pci_bus_id(device);
}

}  // namespace kumo
