#include "common/base/control_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;

class ControlGroupTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // "2 NAME FOLDER" of each group; folders without root_.
  std::vector<std::string> Groups() const {
    std::vector<std::string> texts;
    for (const ControlGroup& group : ControlGroupsOf("cpu", root_)) {
      texts.push_back(std::to_string(group.version) + " " + group.name + " " +
                      group.folder.substr(root_.size()));
    }
    return texts;
  }

  const test::ScratchDirectory scratch_;
  const std::string root_ = scratch_.path();
};

TEST_F(ControlGroupTest, GroupsOfBothVersionsHaveTheirAncestors) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/old:er/a\n3:cpuset:/no\n0::/pod/main\n");
  EXPECT_THAT(Groups(),
              ElementsAre("2 /pod/main /sys/fs/cgroup/pod/main", "2 /pod /sys/fs/cgroup/pod",
                          "2 / /sys/fs/cgroup", "1 /old:er/a /sys/fs/cgroup/cpu/old:er/a",
                          "1 /old:er /sys/fs/cgroup/cpu/old:er", "1 / /sys/fs/cgroup/cpu"));
}

TEST_F(ControlGroupTest, WithoutAGroupTheMountIsOne) {
  for (const char* text : {"", "0::/\n", "nonsense\n0:\n0::relative\n"}) {
    Write("/proc/self/cgroup", text);
    EXPECT_THAT(Groups(), ElementsAre("2 / /sys/fs/cgroup", "1 / /sys/fs/cgroup/cpu")) << text;
  }
}

TEST_F(ControlGroupTest, ANumberIsThatBehindItsNameOrTheFirst) {
  Write("/stat", "cache max\nrss 12\nrss_huge 7\n");
  EXPECT_EQ(NumberInKernelFile(root_ + "/stat", "rss"), 12u);
  EXPECT_EQ(NumberInKernelFile(root_ + "/stat", "rss_huge"), 7u);
  for (const char* name : {"cache", "ss", ""}) {
    EXPECT_FALSE(NumberInKernelFile(root_ + "/stat", name).has_value()) << name;
  }
  Write("/max", "18446744073709551615\n");
  EXPECT_EQ(NumberInKernelFile(root_ + "/max"), UINT64_MAX);
  EXPECT_FALSE(NumberInKernelFile(root_ + "/missing").has_value());
}

}  // namespace
}  // namespace kumo
