#include "common/telemetry/run_recorder.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/memory_file_system.h"

namespace kumo {
namespace {

using testing::HasSubstr;

class FakeClock : public Clock {
 public:
  TimeUs NowUs() const override { return now_us; }
  TimeUs now_us = 5 * kSecond;
};

class FakeConsole : public Console {
 public:
  int Width() const override { return 0; }
  void Write(std::string_view text) override { written += text; }
  std::string written;
};

class RunRecorderTest : public testing::Test {
 protected:
  RunRecorderTest() {
    settings_.directory = "/out";
    settings_.host = "h";
    settings_.wall_time_s = 1000;
  }
  std::unique_ptr<RunRecorder> Open() {
    auto recorder = RunRecorder::Open(settings_, files_, &clock_, &console_);
    CHECK(recorder.ok()) << recorder.status().message();
    return std::move(recorder).value();
  }
  static RoundProgress At(int64_t round) {
    RoundProgress progress;
    progress.round = round;
    progress.rounds = 100;
    progress.loss = 0.5;
    return progress;
  }

  RunRecorderSettings settings_;
  MemoryFileSystem files_;
  FakeClock clock_;
  FakeConsole console_;
};

TEST_F(RunRecorderTest, OneFactGoesEverywhere) {
  auto recorder = Open();
  clock_.now_us += 3 * kSecond;
  recorder->Record(At(10));
  EpochResult epoch;
  epoch.round = 20;
  epoch.validation_accuracy = 0.75;
  recorder->Record(epoch);
  ASSERT_TRUE(recorder->Flush().ok());
  EXPECT_THAT(console_.written, HasSubstr("round 10/100"));
  EXPECT_THAT(console_.written, HasSubstr("validation/main/accuracy"));
  const std::string log = *files_.Contents("/out/log.jsonl");
  EXPECT_THAT(log, testing::StartsWith(R"({"round":10,"kind":"progress","rounds":100,)"));
  EXPECT_THAT(log, HasSubstr(R"("wall_time":1003})"));
  EXPECT_THAT(log, HasSubstr(R"({"round":20,"kind":"epoch","epoch":1,"main/loss":0,)"));
  EXPECT_THAT(log, HasSubstr(R"("validation/main/loss":null,"validation/main/accuracy":0.75,)"));
  const std::string events = *files_.Contents("/out/events.out.tfevents.0000001000.h.0");
  EXPECT_THAT(events, HasSubstr("train/loss"));
  EXPECT_THAT(events, HasSubstr("validation/accuracy"));
  EXPECT_THAT(events, testing::Not(HasSubstr("validation/loss")));
}

TEST_F(RunRecorderTest, WhatIsSwitchedOffIsNotWritten) {
  settings_.tensorboard = settings_.jsonl = false;
  auto recorder = Open();
  recorder->Record(At(1));
  EXPECT_THAT(*files_.List("/out"), testing::ElementsAre());
  EXPECT_TRUE(recorder->Flush().ok());
}

TEST_F(RunRecorderTest, ResumedRunForgetsTheRoundsThatAreDoneAgain) {
  for (const int64_t resumed : {-1, 10}) {
    settings_.resumed_round = resumed;
    auto recorder = Open();
    for (const int64_t round : {10, 20, 30}) {
      if (round > resumed) recorder->Record(At(round));
    }
  }
  const std::string log = *files_.Contents("/out/log.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3);
}

TEST_F(RunRecorderTest, FullDiskIsSaidOnceAndTheRestGoesOn) {
  auto recorder = Open();
  files_.FailOnly(files_.operations());
  recorder->Record(At(1));  // the event file's write fails
  recorder->Record(At(2));
  EXPECT_EQ(recorder->Flush().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(console_.written, HasSubstr("warning: cannot write"));
  EXPECT_EQ(console_.written.find("warning"), console_.written.rfind("warning"));
  EXPECT_THAT(*files_.Contents("/out/log.jsonl"), HasSubstr("{\"round\":2,"));
  EXPECT_THAT(console_.written, HasSubstr("round 2/100"));
}

TEST_F(RunRecorderTest, DirectoryThatCannotBeMadeIsAnError) {
  files_.FailFrom(0);
  EXPECT_FALSE(RunRecorder::Open(settings_, files_, &clock_, &console_).ok());
}

}  // namespace
}  // namespace kumo
