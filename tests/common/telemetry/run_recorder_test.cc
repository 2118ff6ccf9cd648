#include "common/telemetry/run_recorder.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/memory_file_system.h"
#include "tests/common/telemetry/event_reader.h"

namespace kumo {
namespace {

using testing::HasSubstr;

class FakeClock : public Clock {
 public:
  TimeUs NowUs() const override { return now_us; }
  TimeUs now_us = 5 * kSecond;
};

class RecorderConsole : public Console {
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
    auto recorder = std::make_unique<RunRecorder>(settings_, files_, &clock_, &console_);
    const Status begun = recorder->Begin(metrics_);
    CHECK(begun.ok()) << begun.message();
    return recorder;
  }
  static RoundProgress At(int64_t round) {
    RoundProgress progress;
    progress.round = round;
    progress.rounds = 100;
    progress.samples = 64 * round;
    return progress;
  }
  static CurvePoint PointAt(int64_t round) {
    CurvePoint point;
    point.round = round;
    point.samples = 64 * round;
    point.figures = {{"loss", 0.5}, {"accuracy", 0}};
    return point;
  }
  std::string Log() { return *files_.Contents("/out/log.jsonl"); }
  // The steps of a curve, in all event files.
  std::vector<int64_t> Steps(const std::string& tag) {
    std::vector<int64_t> steps;
    const std::vector<std::string> names = files_.List("/out").value();
    for (const std::string& name : names) {
      if (name.find("tfevents") == std::string::npos) continue;
      const std::string& bytes = *files_.Contents("/out/" + name);
      for (const tensorboard::Event& event : test::ReadEvents(bytes, may_be_torn_)) {
        // What readers do about a session's start.
        if (event.has_session_log())
          std::erase_if(steps, [&](auto s) { return s >= event.step(); });
        for (const auto& value : event.summary().value()) {
          if (value.tag() == tag) steps.push_back(event.step());
        }
      }
    }
    return steps;
  }

  bool may_be_torn_ = false;  // a full disk has cut the last record of a file
  RunRecorderSettings settings_;
  MetricList metrics_;
  MemoryFileSystem files_;
  FakeClock clock_;
  RecorderConsole console_;
};

TEST_F(RunRecorderTest, AnEpochGoesEverywhere) {
  auto recorder = Open();
  clock_.now_us += 3 * kSecond;
  EpochResult epoch;
  epoch.round = 20;
  epoch.samples = 1280;
  epoch.figures = {{"loss", 0}, {"accuracy", 0}};
  epoch.validation = {{"accuracy", 0.75}};
  epoch.classes = {{"map/white cat", 0.5}};
  recorder->Record(epoch);
  ASSERT_TRUE(recorder->Flush().ok());
  EXPECT_THAT(console_.written, HasSubstr("validation/main/accuracy"));
  EXPECT_THAT(console_.written, testing::Not(HasSubstr("cat")));
  EXPECT_EQ(
      Log(),
      R"({"round":20,"kind":"epoch","samples":1280,"epoch":1,"main/loss":0,"main/accuracy":0,)"
      R"("validation/main/accuracy":0.75,"validation/main/map/white cat":0.5,"elapsed_time":0,)"
      R"("wall_time":1003})"
      "\n");
  for (const char* tag : {"epoch/main/loss", "epoch/main/accuracy", "validation/main/accuracy",
                          "validation/main/map/white cat"}) {
    EXPECT_THAT(Steps(tag), testing::ElementsAre(1280)) << tag;
  }
  EXPECT_THAT(Steps("validation/main/loss"), testing::ElementsAre());
}

TEST_F(RunRecorderTest, APictureGoesToTensorBoardIfItIsOne) {
  auto recorder = Open();
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\7", 24);
  recorder->Record(EvaluationPicture{10, 640, png});
  recorder->Record(EvaluationPicture{20, 1280, "no picture"});
  ASSERT_TRUE(recorder->Flush().ok());
  EXPECT_THAT(Steps("validation/objects"), testing::ElementsAre(640));
  EXPECT_EQ(Log(), "");
  EXPECT_EQ(console_.written, "");
}

// They are too large to wait in memory.
TEST_F(RunRecorderTest, APictureDoesNotWaitForADisk) {
  auto recorder = Open();
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\2\0\0\0\7", 24);
  files_.FailFrom(files_.operations());
  recorder->Record(PointAt(10));
  ASSERT_FALSE(recorder->failure().ok());
  recorder->Record(EvaluationPicture{10, 640, png});
  files_.FailFrom(-1);
  may_be_torn_ = true;
  ASSERT_TRUE(recorder->Flush().ok());
  EXPECT_THAT(Steps("main/loss"), testing::ElementsAre(640));
  EXPECT_THAT(Steps("validation/objects"), testing::IsEmpty());
}

TEST_F(RunRecorderTest, APointIsRecordedAndNotShown) {
  auto recorder = Open();
  CurvePoint point = PointAt(10);
  point.learning_rate = 0.1;
  recorder->Record(point);
  EXPECT_EQ(console_.written, "");
  EXPECT_EQ(Log(), R"({"round":10,"kind":"point","samples":640,"epoch":1,"main/loss":0.5,)"
                   R"("main/accuracy":0,"lr":0.1,"elapsed_time":0,"wall_time":1000})"
                   "\n");
  for (const char* tag : {"main/loss", "main/accuracy", "lr"}) {
    EXPECT_THAT(Steps(tag), testing::ElementsAre(640)) << tag;
  }
}

TEST_F(RunRecorderTest, OfAMomentOnlyHowFastTheJobIsGoesIntoTheFiles) {
  auto recorder = Open();
  RoundProgress progress = At(10);
  progress.figures = {{"loss", 0.5}};
  progress.learning_rate = 0.1;
  progress.compute_ms = 12;
  progress.bytes_sent = 10'000'000;
  progress.silent = {{"worker-1", 4}};
  recorder->Record(progress);
  EXPECT_THAT(console_.written, HasSubstr("round 10/100"));
  EXPECT_THAT(console_.written, HasSubstr("loss 0.5"));
  EXPECT_EQ(Log(),
            R"({"round":10,"kind":"progress","rounds":100,"samples":640,"epoch":1,"compute_ms":12,)"
            R"("bytes_sent":10000000,"bytes_received":0,"workers":0,"silent":["worker-1"],)"
            R"("elapsed_time":0,"wall_time":1000})"
            "\n");
  EXPECT_THAT(Steps("time/compute_ms"), testing::ElementsAre(640));
  EXPECT_THAT(Steps("time/wait_ms"), testing::ElementsAre());
  EXPECT_THAT(Steps("main/loss"), testing::ElementsAre());
}

TEST_F(RunRecorderTest, TheSettingsAndTheEndAreForThePluginHparams) {
  settings_.hyperparameters = {{"sync.block", 50.0}};
  auto recorder = Open();
  recorder->RecordDone();
  EXPECT_THAT(Steps("_hparams_/session_start_info"), testing::ElementsAre(0));
  EXPECT_THAT(Steps("_hparams_/session_end_info"), testing::ElementsAre(0));
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
    settings_.resumed_samples = resumed < 0 ? -1 : 64 * resumed;
    auto recorder = Open();
    for (const int64_t round : {10, 20, 30}) {
      if (round > resumed) recorder->Record(PointAt(round));
    }
  }
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3);
  EXPECT_THAT(Steps("main/loss"), testing::ElementsAre(640, 1280, 1920));
}

TEST_F(RunRecorderTest, WhoGoesBackRecordsTheSamePointsAgainOnce) {
  auto recorder = Open();
  for (const int64_t round : {10, 20, 30}) recorder->Record(PointAt(round));
  recorder->GoBack(20, 1280);
  for (const int64_t round : {30, 40}) recorder->Record(PointAt(round));
  EXPECT_THAT(Steps("main/loss"), testing::ElementsAre(640, 1280, 1920, 2560));
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4);
}

// Of a run's settings readers keep the first that a file in the folder says.
TEST_F(RunRecorderTest, ANewRunLeavesNoEventFilesOfAnEarlierOne) {
  Open()->Record(PointAt(1));
  files_.Put("/out/notes.txt", "mine");
  settings_.wall_time_s = 2000;
  auto recorder = Open();
  EXPECT_THAT(*files_.List("/out"),
              testing::ElementsAre("events.out.tfevents.0000002000.h.0", "log.jsonl", "notes.txt"));
}

TEST_F(RunRecorderTest, ARunThatDoesNotBeginLeavesTheCurvesAsTheyAre) {
  Open()->Record(PointAt(1));
  const std::string log = Log();
  const auto names = *files_.List("/out");
  {
    RunRecorder refused(settings_, files_, &clock_, &console_);
    refused.Record(StartedRun{"there", {}, {}});
    refused.GoBack(-1, -1);
    refused.Say("no such layer");
    EXPECT_TRUE(refused.Flush().ok());
  }
  EXPECT_EQ(Log(), log);
  EXPECT_EQ(*files_.List("/out"), names);
}

// Each of the operations of a disk that is full for a while is the first that fails.
TEST_F(RunRecorderTest, AfterAFullDiskNothingIsMissing) {
  may_be_torn_ = true;
  const std::vector<int64_t> all = {640, 1280, 1920, 2560, 3200};
  for (int n = 0; n < 12; ++n) {
    files_ = MemoryFileSystem();
    console_.written.clear();
    auto recorder = Open();
    recorder->Record(PointAt(10));
    files_.FailFrom(files_.operations() + n);
    recorder->Record(PointAt(20));
    recorder->Record(PointAt(30));
    clock_.now_us += 5 * kSecond;
    recorder->Record(PointAt(40));
    (void)recorder->Flush();
    files_.FailFrom(-1);
    clock_.now_us += 5 * kSecond;
    recorder->Record(PointAt(50));
    EXPECT_TRUE(recorder->Flush().ok()) << n;
    EXPECT_EQ(Steps("main/loss"), all) << n;
    const std::string log = Log();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 5) << n << "\n" << log;
    for (const char* round : {"10", "20", "30", "40", "50"}) {
      EXPECT_THAT(log, HasSubstr("{\"round\":" + std::string(round) + ",\"kind\":\"point\""));
    }
    const bool failed = console_.written.find("wait in memory") != std::string::npos;
    EXPECT_EQ(console_.written.find(": written again, ") != std::string::npos, failed) << n;
    EXPECT_TRUE(failed || n > 5) << n;
  }
}

TEST_F(RunRecorderTest, AFullDiskIsSaidOnceForEachFileAndTheLossAtTheEnd) {
  auto recorder = Open();
  files_.FailFrom(files_.operations());
  for (const int64_t round : {10, 20, 30}) recorder->Record(PointAt(round));
  const auto count = [&](const std::string& text) {
    int times = 0;
    for (size_t at = 0; (at = console_.written.find(text, at)) != std::string::npos; ++at) ++times;
    return times;
  };
  EXPECT_EQ(count("the records of log.jsonl wait in memory"), 1) << console_.written;
  EXPECT_EQ(count("the records of the TensorBoard curves wait in memory"), 1) << console_.written;
  const Status lost = recorder->Flush();
  EXPECT_EQ(lost.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(lost.message(), HasSubstr("3 records of the TensorBoard curves are lost"));
}

TEST_F(RunRecorderTest, GoingBackWhileTheDiskIsFullCountsAfterwards) {
  may_be_torn_ = true;
  auto recorder = Open();
  for (const int64_t round : {10, 20}) recorder->Record(PointAt(round));
  files_.FailFrom(files_.operations());
  recorder->Record(PointAt(30));
  recorder->GoBack(10, 640);
  recorder->Record(PointAt(20));
  files_.FailFrom(-1);
  clock_.now_us += 5 * kSecond;
  recorder->Record(PointAt(30));
  EXPECT_TRUE(recorder->Flush().ok());
  EXPECT_THAT(Steps("main/loss"), testing::ElementsAre(640, 1280, 1920));
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
}

TEST_F(RunRecorderTest, DirectoryThatCannotBeMadeIsAnError) {
  files_.FailFrom(0);
  EXPECT_FALSE(RunRecorder(settings_, files_, &clock_, &console_).Begin({}).ok());
}

TEST_F(RunRecorderTest, ANewRunBeginsWithItsSettings) {
  settings_.hyperparameters = {{"sync.block", 50.0}, {"data.flip", true}};
  { const auto recorder = Open(); }
  EXPECT_THAT(Log(), testing::StartsWith(R"({"round":0,"kind":"settings","settings":{"sync.block":)"
                                         R"(50,"data.flip":true})"));
  settings_.resumed_round = 0;
  { const auto recorder = Open(); }
  const std::string log = Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << "once";
}

TEST_F(RunRecorderTest, ItDeclaresTheMetricsWithTheSettings) {
  settings_.hyperparameters = {{"sync.block", 50.0}};
  metrics_ = *MetricList::Make(
      {{"loss", 0, MetricFormula::kMean, false}, {"score", 1, MetricFormula::kMean, true}});
  { const auto recorder = Open(); }
  EXPECT_THAT(Log(),
              testing::StartsWith(R"({"round":0,"kind":"settings","settings":{"sync.block":50},)"
                                  R"("metrics":[{"name":"loss","more_is_better":false},)"
                                  R"({"name":"score","more_is_better":true}],"wall_time":1000})"));
}

TEST_F(RunRecorderTest, WhereTheWeightsCameFromIsTheFirstLine) {
  Open()->Record(StartedRun{"there/round-7", {"a", "b"}, {"c: [1] there, [2] here"}});
  EXPECT_THAT(Log(), testing::StartsWith(
                         "{\"round\":0,\"kind\":\"started_from\",\"checkpoint\":\"there/round-7\","
                         "\"taken\":[\"a\",\"b\"],\"left\":[\"c: [1] there, [2] here\"]"));
}

TEST_F(RunRecorderTest, ChangedSettingsAreALineAndATextOfTheirMoment) {
  settings_.resumed_round = 10;
  settings_.resumed_samples = 640;
  const auto recorder = Open();
  ContinuedRun run{10, 640, 2, {{"job.epochs", "2", "4"}}, {"something starts at zero"}};
  recorder->Record(run);
  EXPECT_THAT(Log(), HasSubstr("{\"round\":10,\"kind\":\"continued\",\"samples\":640,\"epoch\":2,"
                               "\"changes\":{\"job.epochs\":[\"2\",\"4\"]},"
                               "\"notes\":[\"something starts at zero\"]"));
  EXPECT_THAT(Steps("settings/changed"), testing::ElementsAre(640));
  const std::vector<std::string> names = files_.List("/out").value();
  for (const std::string& name : names) {
    if (name.find("tfevents") == std::string::npos) continue;
    const auto events = test::ReadEvents(*files_.Contents("/out/" + name));
    const auto& value = events.back().summary().value(0);
    EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "text");
    EXPECT_THAT(value.tensor().string_val(0), HasSubstr("- `job.epochs`: 2 -> 4\n"));
  }
}

}  // namespace
}  // namespace kumo
