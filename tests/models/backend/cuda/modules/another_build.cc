// A module as an older build of Kumo would have made it: what follows `build` is not to be
// believed.
#include "models/backend/cuda/module.h"

namespace {
struct OldModule {
  const char* build;
};
constexpr OldModule kModule = {"0.0.1, an older compiler"};
}  // namespace

extern "C" __attribute__((visibility("default"))) const kumo::CudaModule* kumo_cuda_module() {
  return reinterpret_cast<const kumo::CudaModule*>(&kModule);
}
