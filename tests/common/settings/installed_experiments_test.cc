#include "common/settings/installed_experiments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class InstalledExperimentsTest : public ::testing::Test {
 protected:
  InstalledExperimentsTest() {
    fs::create_directories(share_ + "/experiments");
    for (const char* name : {"b.conf", "a.conf", "README"}) {
      std::ofstream(share_ + "/experiments/" + name) << "x";
    }
    fs::create_directories(folder_ / "here");
    fs::current_path(folder_ / "here");
  }
  ~InstalledExperimentsTest() override { fs::current_path(before_); }

  std::string Find(const std::string& name) const { return FindExperiment(name, share_); }

  const fs::path before_ = fs::current_path();
  test::ScratchDirectory folder_;
  const std::string share_ = folder_ / "share";
};

TEST_F(InstalledExperimentsTest, ABareNameIsTheInstalledOne) {
  EXPECT_EQ(Find("a"), share_ + "/experiments/a.conf");
  EXPECT_EQ(Find("a.conf"), share_ + "/experiments/a.conf");
}

TEST_F(InstalledExperimentsTest, AFileOfTheWorkingDirectoryGoesFirst) {
  std::ofstream("a.conf") << "mine";
  EXPECT_EQ(Find("a.conf"), "a.conf");
  EXPECT_EQ(Find("a"), "a.conf");
  fs::create_directory("b");
  EXPECT_EQ(Find("b"), share_ + "/experiments/b.conf") << "a folder is no experiment";
}

TEST_F(InstalledExperimentsTest, PathsAndUnknownNamesStayAsTheyAre) {
  EXPECT_EQ(Find("./a.conf"), "./a.conf");
  EXPECT_EQ(Find("../share/experiments/a"), "../share/experiments/a");
  EXPECT_EQ(Find("c"), "c");
  EXPECT_EQ(Find(""), "");
}

TEST_F(InstalledExperimentsTest, TheirNamesAreListed) {
  EXPECT_THAT(InstalledExperiments(share_), ElementsAre("a", "b"));
  EXPECT_THAT(InstalledExperiments(folder_ / "nowhere"), ElementsAre());
}

}  // namespace
}  // namespace kumo
