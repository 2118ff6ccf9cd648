#include "common/telemetry/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/memory_file_system.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class RunLogTest : public ::testing::Test {
 protected:
  RunLog Read(const std::string& text) {
    files_.Put("run/log.jsonl", text);
    Result<RunLog> log = ReadRunLog(files_, "run/log.jsonl");
    EXPECT_TRUE(log.ok()) << log.status().message();
    return *log;
  }

  MemoryFileSystem files_;
};

TEST_F(RunLogTest, HasTheEpochsAndTheNewestFigures) {
  const RunLog log = Read(R"({"round":5,"kind":"epoch","epoch":1,"main/loss":0.5,"wall_time":17})"
                          "\n"
                          R"({"round":9,"kind":"epoch","epoch":2,"main/loss":0.25,"wall_time":18})"
                          "\n"
                          R"({"round":9,"kind":"epoch","epoch":2,"main/loss":0.125,"wall_time":19})"
                          "\n"
                          R"({"round":12,"kind":"point","epoch":3,"main/loss":0.0625,"lr":0.1})"
                          "\n"
                          R"({"round":14,"kind":"progress","epoch":3,"samples_per_second":100})"
                          "\n");
  ASSERT_EQ(log.epochs.size(), 2u);
  EXPECT_THAT(log.epochs[1],
              UnorderedElementsAre(Pair("round", 9), Pair("epoch", 2), Pair("main/loss", 0.125)))
      << "the last line of an epoch counts";
  EXPECT_THAT(log.newest,
              UnorderedElementsAre(Pair("round", 14), Pair("epoch", 3), Pair("main/loss", 0.0625),
                                   Pair("lr", 0.1), Pair("samples_per_second", 100)));
}

TEST_F(RunLogTest, SettingsAreThoseOfTheLastStart) {
  const RunLog log = Read(
      R"({"round":0,"kind":"settings","settings":{"job.epochs":3,"job.name":"a","data.flip":true}})"
      "\n"
      R"({"round":5,"kind":"continued","changes":{"job.epochs":["3","7"],"damaged":["x"]}})"
      "\n");
  EXPECT_THAT(log.settings, ElementsAre(Pair("data.flip", "true"), Pair("job.epochs", "7"),
                                        Pair("job.name", "a")));
}

TEST_F(RunLogTest, DamagedLinesAreIgnored) {
  const RunLog log = Read(std::string(1 << 20, 'x') +
                          "\n"
                          R"({"round":5,"kind":"epoch","epoch":1,"main/lo)"
                          "\n"
                          R"({"round":6,"kind":"epoch","epoch":2})"
                          "\n"
                          R"({"round":7,"kind":"epoch","epoch":3})");
  ASSERT_EQ(log.epochs.size(), 1u) << "the last line is incomplete";
  EXPECT_EQ(log.last_epoch, R"({"round":6,"kind":"epoch","epoch":2})");
  EXPECT_EQ(Read("").epochs.size(), 0u);
  EXPECT_EQ(ReadRunLog(files_, "nowhere").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace kumo
