#include "common/settings/worker_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WorkerProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(program_) << "#!/bin/sh\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
    std::ofstream(scratch_ / "data.txt") << "no program\n";
  }

  const test::ScratchDirectory scratch_;
  const std::string program_ = scratch_ / "trainer";
  const Variables variables_ = {{"PATH", "/no/such/folder:" + scratch_.path()},
                                {"PYTHONPATH", "/my/modules"}};
  Experiment experiment_;
};

TEST_F(WorkerProgramTest, TheProgramIsLookedUpInPath) {
  experiment_.worker.command = "trainer --rate 0.1 'a b'";
  EXPECT_THAT(WorkerProgram(experiment_, variables_).value(),
              ElementsAre(program_, "--rate", "0.1", "a b"));
  experiment_.worker.command = program_;
  EXPECT_THAT(WorkerProgram(experiment_, {}).value(), ElementsAre(program_));
  experiment_.worker.command = "data.txt";
  EXPECT_THAT(WorkerProgram(experiment_, variables_).status().message(),
              HasSubstr("data.txt is in no folder of PATH"));
  experiment_.worker.command = scratch_ / "data.txt";
  EXPECT_THAT(WorkerProgram(experiment_, variables_).status().message(),
              HasSubstr("cannot be executed"));
}

TEST_F(WorkerProgramTest, ItFindsItsJobInTheEnvironmentAndOnAnotherHostItsPackageToo) {
  const ProgramPlace place = {.share = "/opt/share/kumo",
                              .file = "my job.conf",
                              .sets = {"job.seed=2", "cluster.workers=3"},
                              .name = "worker-1",
                              .device = "cuda:1",
                              .http = "*:9470"};
  std::map<std::string, std::string> added;
  for (const auto& [name, value] : WorkerEnvironment(place, variables_)) added[name] = value;
  EXPECT_EQ(added, (std::map<std::string, std::string>{
                       {"KUMO_EXPERIMENT", std::filesystem::current_path() / "my job.conf"},
                       {"KUMO_FOLDER", std::filesystem::current_path()},
                       {"KUMO_SETTINGS", "job.seed=2\ncluster.workers=3\n"},
                       {"KUMO_WORKER_NAME", "worker-1"},
                       {"KUMO_DEVICE", "cuda:1"},
                       {"KUMO_HTTP", "*:9470"},
                       {"PYTHONPATH", "/opt/share/kumo/python:/my/modules"},
                       {"PYTHONUNBUFFERED", "1"}}));
  experiment_.worker.command = "python3 train.py";
  EXPECT_THAT(RemoteWorkerProgram(experiment_, place.share, {}).value(),
              ElementsAre("/usr/bin/env", "PYTHONPATH=/opt/share/kumo/python", "PYTHONUNBUFFERED=1",
                          "python3", "train.py"));
}

}  // namespace
}  // namespace kumo
