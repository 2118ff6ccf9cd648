#include "common/base/installation.h"

#include <filesystem>
#include <system_error>

namespace kumo {

Installation FindInstallation() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  // Without /proc, fall back to the working directory.
  if (error) program = fs::current_path(error) / "kumo";
  const fs::path programs = program.parent_path();
  const fs::path root = programs.parent_path();
  return {programs.string(), (root / "lib/kumo/backend_cuda.so").string(),
          (root / "share/kumo").string()};
}

}  // namespace kumo
