// kumo manifests as a person runs it, with the base and components of the build folder.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/kumo_runner.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ManifestsTest : public KumoTest {
 protected:
  ManifestsTest() { std::filesystem::current_path(folder_); }
  ~ManifestsTest() override { std::filesystem::current_path("/"); }
};

TEST_F(ManifestsTest, WriteAFolderThatNeedsNothingElse) {
  const Ended ended = Run({"manifests", "mnist_lenet", "--workers", "3", "--with", "spot"}, false);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("the run mnist-lenet: 1 server, 3 workers"),
                               HasSubstr("kubectl apply -k mnist-lenet")));
  EXPECT_THAT(Read("mnist-lenet/kustomization.yaml"),
              AllOf(HasSubstr("components/spot"), HasSubstr("components/networkpolicy")));
  EXPECT_THAT(Read("mnist-lenet/experiment.conf"), HasSubstr("push_codec = 1bit"));
  for (const char* file :
       {"mnist_lenet.pbtxt", "base/servers.yaml", "components/spot/kustomization.yaml"}) {
    EXPECT_TRUE(std::filesystem::is_regular_file("mnist-lenet/" + std::string(file))) << file;
  }
  EXPECT_FALSE(std::filesystem::exists("mnist-lenet/components/gpu"));
}

TEST_F(ManifestsTest, NothingIsOverwritten) {
  std::filesystem::create_directory("there");
  const Ended ended = Run({"manifests", "mnist_lenet", "--out", "there/"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("there exists"));
  EXPECT_TRUE(std::filesystem::is_empty("there"));
}

TEST_F(ManifestsTest, TheExperimentIsCheckedFirst) {
  std::ofstream(experiment_) << "[sync]\nblok = 1\n";
  const Ended ended = Run({"manifests", experiment_, "--run", "a"}, false);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.err, HasSubstr(experiment_ + ":2: unknown key sync.blok"));
  EXPECT_FALSE(std::filesystem::exists("a"));
}

TEST_F(ManifestsTest, ANetworkThatIsNotThereLeavesNothing) {
  EXPECT_EQ(Run({"manifests", experiment_, "--run", "a"}, false).code, 78);
  EXPECT_FALSE(std::filesystem::exists("a"));
  EXPECT_FALSE(std::filesystem::exists(".a.tmp"));
}

TEST_F(ManifestsTest, NumbersOfPodsThatCannotWorkAreRefusedAndIdlePodsNamed) {
  const auto run = [&](const char* option, const char* number, const std::string& setting) {
    return Run({"manifests", "mnist_lenet", option, number, "--set", setting}, false);
  };
  Ended ended = run("--workers", "2", "cluster.replicas=2");
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("cluster.replicas = 2: needs at least 2 servers"));
  ended = run("--workers", "2", "cluster.min_workers=3");
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.last_line, HasSubstr("cluster.min_workers = 3, but the run has 2 workers"));
  EXPECT_FALSE(std::filesystem::exists("mnist-lenet"));
  ended = run("--workers", "4095", "job.seed=1");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("note    4095 workers for "));
}

TEST_F(ManifestsTest, BadWordsAreUsage) {
  EXPECT_THAT(Run({"manifests", "mnist_lenet", "--run", "My_Run"}, false).last_line,
              HasSubstr("--run My_Run: must begin with a letter"));
  EXPECT_THAT(Run({"manifests", "mnist_lenet", "--with", "gpu,sopt"}, false).last_line,
              HasSubstr("unknown component sopt; did you mean spot?"));
  EXPECT_THAT(Run({"manifests", "mnist_lenet", "--image", "a b"}, false).last_line,
              HasSubstr("--image a b"));
  EXPECT_THAT(Run({"manifests", "mnist_lenet", "--worker-image", "a b"}, false).last_line,
              HasSubstr("--worker-image a b"));
  for (const char* workers : {"0", "4097", "x"}) {
    EXPECT_EQ(Run({"manifests", "mnist_lenet", "--workers", workers}, false).code, 64) << workers;
  }
}

}  // namespace
}  // namespace kumo
