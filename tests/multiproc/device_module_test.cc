// The worker of an installation whose CUDA module is missing or broken.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class DeviceModule : public testing::Test {
 protected:
  DeviceModule() : job_("device-module") {
    fs::create_directories(job_.Path("kumo/bin"));
    fs::create_directories(job_.Path("kumo/lib/kumo"));
    fs::copy_file(std::string(KUMO_BIN_DIR) + "/kumo-worker", worker_);
    job_.Set("network.file", std::string(KUMO_SOURCE_DIR) + "/models/zoo/mnist_mlp.pbtxt");
    job_.Set("data.directory", SmallDigits());
  }

  Ended Check(const std::string& device) {
    job_.Set("network.device", device);
    job_.WriteExperiment();
    return job_.Run(worker_, {job_.experiment_file(), "--check"});
  }

  ClusterOfProcesses job_;
  const std::string worker_ = job_.Path("kumo/bin/kumo-worker");
  const std::string module_ = job_.Path("kumo/lib/kumo/backend_cuda.so");
};

TEST_F(DeviceModule, WithoutOneTheCpuIsThereAndAGpuIsRefusedWithThePackageThatBringsIt) {
  const Ended cpu = Check("cpu");
  EXPECT_EQ(cpu.code, 0) << cpu.output;
  EXPECT_THAT(cpu.output, HasSubstr("no cuda: there is no CUDA module " + module_));
  const Ended gpu = Check("cuda");
  EXPECT_EQ(gpu.code, 78);
  EXPECT_THAT(gpu.output,
              AllOf(HasSubstr("network.device=cuda:0: there is no CUDA module " + module_),
                    HasSubstr("install the package kumo-cuda")));
}

TEST_F(DeviceModule, ABrokenOneDoesNotConcernTheCpu) {
  std::ofstream(module_) << "no library";
  const Ended cpu = Check("cpu");
  EXPECT_EQ(cpu.code, 0) << cpu.output;
  const Ended gpu = Check("cuda");
  EXPECT_EQ(gpu.code, 78);
  EXPECT_THAT(gpu.output, HasSubstr("the CUDA module " + module_ + " cannot be loaded"));
}

}  // namespace
}  // namespace kumo::multiproc
