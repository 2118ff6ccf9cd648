// An experiment for one's own data, from the folder to a network that has learnt.
#include <filesystem>
#include <fstream>
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

// Every form of data that kumo new knows, except IDX files (above).
TEST(NewFromData, EachFormOfDataGetsFilesThatPassTheCheck) {
  ClusterOfProcesses job("new_forms");
  std::filesystem::current_path(job.folder());
  const std::string text = job.Path("book.txt");
  std::ofstream(text) << std::string(2000, 'a') + std::string(2000, 'b');
  const std::string numbers = job.Path("numbers.ctf");
  std::ofstream lines(numbers);
  for (int i = 0; i < 40; ++i) lines << "|features " << i << " 1 |labels " << i % 2 << "\n";
  lines.close();
  const std::string cifar = job.Path("cifar");
  std::filesystem::create_directory(cifar);
  for (const char* file : {"data_batch_1.bin", "test_batch.bin"}) {
    std::ofstream(std::filesystem::path(cifar) / file) << std::string(20 * 3073, '\1');
  }
  for (const std::string& data : {text, numbers, cifar}) {
    SCOPED_TRACE(data);
    const std::string name = std::filesystem::path(data).stem().string() + "-new";
    const Ended made = job.Run("kumo", {"new", name, "--data", data});
    EXPECT_EQ(made.code, 0) << made.output;
    const Ended checked = job.Run("kumo", {"check", name + ".conf"});
    EXPECT_EQ(checked.code, 0) << checked.output;
  }
  std::filesystem::current_path("/");
}

}  // namespace
}  // namespace kumo::multiproc
