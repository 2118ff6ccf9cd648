#include "common/base/version.h"

#include <filesystem>
#include <system_error>

#include "common/base/installation.h"
#include "common/base/instruction_set.h"
#include "common/base/isa.h"

namespace kumo {
namespace {

std::string_view Instructions() {
  switch (DetectIsa()) {
    case Isa::kV4:
      return " (AVX-512)";
    case Isa::kV3:
      return " (AVX2)";
    case Isa::kBaseline:
      break;
  }
  return "";
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
         "\nCPU     oneDNN " KUMO_DNNL_VERSION ", kernels for " + std::string(NameOf(DetectIsa())) +
         std::string(Instructions()) + "\nCUDA    " + CudaModuleText() + "\n";
}

}  // namespace kumo
