// Loading the CUDA backend's module: what is no such module, or cannot be one here, is refused by
// name. That the module works is for the tests of the backend, which load it, and for jobs on the
// simulated GPU (tests/multiproc/gpu_training_test.cc).
#include "models/backend/cuda/module.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string RefusalOf(const std::string& path) {
  const Status status = LoadCudaModule(path).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(path));
  return status.message();
}

TEST(CudaModuleTest, AMissingModuleIsToldWithThePackageThatBringsIt) {
  EXPECT_THAT(RefusalOf("/nowhere/backend_cuda.so"), HasSubstr("install the package kumo-cuda"));
}

TEST(CudaModuleTest, AModuleOfAnotherBuildIsRefusedNamingBoth) {
  EXPECT_THAT(RefusalOf(KUMO_MODULE_OF_ANOTHER_BUILD),
              AllOf(HasSubstr("(0.0.1, an older compiler)"), HasSubstr("(" KUMO_MODULE_BUILD ")")));
}

TEST(CudaModuleTest, AMissingLibraryIsToldInTheLinkersWords) {
  EXPECT_THAT(RefusalOf(KUMO_MODULE_WITHOUT_ITS_LIBRARY),
              AllOf(HasSubstr("libkumo_absent_library.so: cannot open shared object file"),
                    HasSubstr("it needs NVIDIA's")));
}

TEST(CudaModuleTest, ALibraryThatIsNoModuleIsRefused) {
  EXPECT_THAT(RefusalOf(KUMO_NO_MODULE),
              AllOf(HasSubstr("no CUDA module of Kumo's"), HasSubstr("kumo_cuda_module")));
}

TEST(CudaModuleTest, AFileThatIsNoLibraryIsRefused) {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "rubbish.so";
  std::ofstream(path) << "no library";
  EXPECT_THAT(RefusalOf(path), HasSubstr("cannot be loaded"));
}

}  // namespace
}  // namespace kumo
