#include "common/base/version.h"

#include <filesystem>
#include <system_error>

#include "common/base/installation.h"
#include "common/base/isa.h"

namespace kumo {
namespace {

std::string_view InstructionSet() {
  switch (DetectIsa()) {
    case Isa::kV4:
      return "x86-64-v4 (AVX-512)";
    case Isa::kV3:
      return "x86-64-v3 (AVX2)";
    case Isa::kBaseline:
      break;
  }
#if defined(__x86_64__)
  return "x86-64-v2";
#else
  return "any machine of this architecture";
#endif
}

std::string CudaModuleText() {
  const std::string path = FindInstallation().cuda_module;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  return "no module " + path + " (package kumo-cuda)";
}

}  // namespace

const std::string_view kVersion = KUMO_VERSION;

std::string VersionText(const std::string& program) {
  return program + " " KUMO_VERSION "\ncommit  " + std::string(kCommit) +
         "\nCPU     oneDNN " KUMO_DNNL_VERSION ", kernels for " + std::string(InstructionSet()) +
         "\nCUDA    " + CudaModuleText() + "\n";
}

}  // namespace kumo
