// Module of the CUDA backend: a shared library, lib/kumo/backend_cuda.so of the installation, with
// one function that is found by its name. Everything else in the module is hidden. The module has
// its own copies of the few sources of Kumo that it calls; it shares glog and the C++ library,
// which are shared libraries too, with the program.
//
// C++ objects pass between the two, so both must be compiled from the same headers by the same
// compiler. CudaModule::build names these (cmake/module.cmake), and a module of another build is
// refused. A loaded module stays for good: objects of its classes exist, and CUDA has its own exit
// handlers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "models/backend/cuda/cuda_backend.h"

namespace kumo {

struct CudaModule {
  const char* build;  // stays the first field for ever: it is read before the others are believed
  Result<std::unique_ptr<Backend>> (*make)(const CudaOptions& options);
  Result<std::vector<std::string>> (*list)();
  Result<std::string> (*pci_bus_id)(int device);
};

// Exported object of the module, and its name.
using CudaModuleFunction = const CudaModule* (*)();
inline constexpr char kCudaModuleFunction[] = "kumo_cuda_module";

// Loads a module, which is cheap when it is loaded already. FailedPrecondition says what is
// missing, in the dynamic linker's words, and which package brings it, or whose build the module
// is.
Result<const CudaModule*> LoadCudaModule(const std::string& path);

}  // namespace kumo
