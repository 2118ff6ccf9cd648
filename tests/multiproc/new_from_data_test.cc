// An experiment for one's own data, from the folder to a network that has learnt.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NewFromData, WhatIsWrittenPassesTheCheckAndLearns) {
  ClusterOfProcesses job("new");
  std::filesystem::current_path(job.folder());
  const Ended made = job.Run("kumo", {"new", "mine", "--data", SmallDigits()});
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_THAT(made.output, AllOf(HasSubstr("IDX files of 10 classes"), HasSubstr("mine.conf"),
                                 HasSubstr("training samples of 1x28x28")));
  const std::string file = job.Path("mine.conf");
  const Ended checked = job.Run("kumo", {"check", file, "--data"});
  EXPECT_EQ(checked.code, 0) << checked.output;
  const Ended trained = job.Run("kumo", {"launch", file, "--set", "job.epochs=2", "--set",
                                         "output.directory=" + job.output()});
  EXPECT_EQ(trained.code, 0) << trained.output;
  EXPECT_THAT(trained.output, testing::ContainsRegex("validation accuracy 0.[6-9]"));
  std::filesystem::current_path("/");
}

}  // namespace
}  // namespace kumo::multiproc
