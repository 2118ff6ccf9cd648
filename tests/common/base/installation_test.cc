#include "common/base/installation.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace kumo {
namespace {

namespace fs = std::filesystem;

TEST(InstallationTest, EverythingLiesBesideTheProgramsFolder) {
  const Installation found = FindInstallation();
  const fs::path program = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(found.programs, program.parent_path());
  const fs::path root = program.parent_path().parent_path();
  EXPECT_EQ(found.cuda_module, root / "lib/kumo/backend_cuda.so");
  EXPECT_EQ(found.share, root / "share/kumo");
}

}  // namespace
}  // namespace kumo
