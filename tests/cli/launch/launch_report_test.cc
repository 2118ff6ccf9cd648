#include "cli/launch/launch_report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/scratch_directory.h"

namespace kumo {
namespace {

class JobResultTest : public ::testing::Test {
 protected:
  JobResult Read() { return ReadJobResult(files_, folder_); }

  PosixFileSystem files_;
  const test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(JobResultTest, IsTheNewestCompleteCheckpointAndTheLastEpoch) {
  for (const char* round : {"round-000000000100", "round-000000000200"}) {
    std::filesystem::create_directories(folder_ + "/checkpoints/" + round);
  }
  std::ofstream(folder_ + "/checkpoints/round-000000000100/MANIFEST") << "x";
  std::ofstream(folder_ + "/log.jsonl")
      << R"({"round":1,"kind":"epoch","epoch":1,"validation/main/accuracy":0.5})"
      << "\n"
      << R"({"round":2,"kind":"epoch","epoch":2,"validation/main/accuracy":0.98765})"
      << "\n"
      << R"({"round":3,"kind":"progress","epoch":3})"
      << "\n";
  const JobResult result = Read();
  EXPECT_EQ(result.checkpoint, folder_ + "/checkpoints/round-000000000100");
  EXPECT_EQ(result.description, "epoch 2, validation accuracy 0.9877");
  EXPECT_EQ(result.log.last_epoch,
            R"({"round":2,"kind":"epoch","epoch":2,"validation/main/accuracy":0.98765})");
}

TEST_F(JobResultTest, AnEpochThatWasNotEvaluatedIsDescribedByItsTraining) {
  std::ofstream(folder_ + "/log.jsonl")
      << R"({"round":1,"kind":"epoch","epoch":1,"main/accuracy":0.25,"validation/main/accuracy":null})"
      << "\n";
  EXPECT_EQ(Read().description, "epoch 1, training accuracy 0.2500");
}

TEST_F(JobResultTest, WhatIsNotThereOrDamagedIsLeftOut) {
  EXPECT_EQ(Read().checkpoint, "");
  EXPECT_EQ(Read().log.last_epoch, "");
  std::ofstream(folder_ + "/log.jsonl") << R"({"round":1,"kind":"epoch","epo)"
                                        << "\n";
  EXPECT_EQ(Read().log.last_epoch, "");
  EXPECT_EQ(Read().description, "");
  // A FIFO is not waited for.
  std::filesystem::remove(folder_ + "/log.jsonl");
  ASSERT_EQ(mkfifo((folder_ + "/log.jsonl").c_str(), 0600), 0);
  EXPECT_EQ(Read().log.last_epoch, "");
}

}  // namespace
}  // namespace kumo
