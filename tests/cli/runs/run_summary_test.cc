#include "cli/runs/run_summary.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/process/output_lock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/job/metric_list.h"
#include "common/settings/experiment_text.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunSummaryTest : public ::testing::Test {
 protected:
  void Log(const std::string& folder, const std::string& text) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/log.jsonl") << text;
  }
  // A checkpoint of a network with a loss and an accuracy.
  void Checkpoint(const std::string& folder, const Experiment& experiment,
                  checkpoint::Manifest manifest = {}) {
    manifest.set_version(7);
    manifest.set_experiment_text(ExperimentText(experiment));
    manifest.set_experiment_hash(ExperimentHash(experiment));
    manifest.add_files()->set_name("shard");
    WriteMetrics(*MetricList::Make({{"loss", 0, MetricFormula::kMean, false},
                                    {"accuracy", 1, MetricFormula::kShare, true}}),
                 manifest.mutable_metrics());
    const std::string checkpoints = folder + "/checkpoints";
    std::filesystem::create_directories(checkpoints + "/" + CheckpointName(7));
    ASSERT_TRUE(WriteManifest(files_, checkpoints, manifest).ok());
  }

  PosixFileSystem files_;
  const test::ScratchDirectory scratch_;
  const std::string out_ = scratch_.path();
};

TEST_F(RunSummaryTest, TheBestEpochIsOfTheMetricThatIsAsked) {
  Log(out_, R"({"round":3,"kind":"epoch","epoch":1,"validation/main/loss":0.25,)"
            R"("validation/main/accuracy":0.5})"
            "\n"
            R"({"round":7,"kind":"epoch","epoch":2,"validation/main/loss":0.5,)"
            R"("validation/main/accuracy":0.75})"
            "\n");
  // Also before the first checkpoint, which declares the metrics.
  for (const char* metric : {"", "accuracy"}) {
    const auto best = SummariseRun(files_, out_, metric).best;
    ASSERT_TRUE(best);
    EXPECT_EQ(best->metric, "accuracy");
    EXPECT_EQ(best->epoch, 2);
  }
  EXPECT_EQ(SummariseRun(files_, out_, "loss").best->epoch, 1);
  EXPECT_FALSE(SummariseRun(files_, out_, "other").best);
  Checkpoint(out_, {});
  const RunSummary run = SummariseRun(files_, out_, "");
  ASSERT_TRUE(run.best);
  EXPECT_EQ(run.best->metric, "accuracy");
  EXPECT_EQ(run.best->value, 0.75);
  EXPECT_EQ(run.best->epoch, 2);
  EXPECT_EQ(SummariseRun(files_, out_, "loss").best->epoch, 1);
  const RunSummary other = SummariseRun(files_, out_, "other");
  EXPECT_FALSE(other.best);
  EXPECT_EQ(CheckMetric({&other, 1}, "other").message(),
            "--metric other: the metrics of " + out_ + " are loss, accuracy");
  EXPECT_TRUE(CheckMetric({&other, 1}, "loss").ok());
  EXPECT_GT(run.bytes, 100u);
}

TEST_F(RunSummaryTest, WhichValueOfAProgramsMetricIsBetterIsKnownFromTheLogOrACheckpoint) {
  const std::string epochs = R"({"round":3,"kind":"epoch","epoch":1,"validation/main/score":0.25})"
                             "\n"
                             R"({"round":7,"kind":"epoch","epoch":2,"validation/main/score":0.5})"
                             "\n";
  Log(out_, epochs);
  EXPECT_FALSE(SummariseRun(files_, out_, "").best);
  for (const bool more : {false, true}) {
    Log(out_, R"({"round":0,"kind":"settings","settings":{"sync.minibatch":19},"metrics":[{"name":)"
              R"("score","more_is_better":)" +
                  std::string(more ? "true" : "false") + "}]}\n" + epochs);
    const auto best = SummariseRun(files_, out_, "").best;
    ASSERT_TRUE(best);
    EXPECT_EQ(best->metric, "score");
    EXPECT_EQ(best->epoch, more ? 2 : 1);
    EXPECT_EQ(best->more_is_better, more);
  }
}

TEST_F(RunSummaryTest, SettingsAreThoseOfTheLogOrOfTheCheckpoint) {
  Experiment experiment;
  experiment.sync.minibatch = 17;
  Checkpoint(out_, experiment);
  RunSummary run = SummariseRun(files_, out_, "");
  EXPECT_EQ(run.state, RunState::kStopped);
  EXPECT_EQ(run.settings.at("sync.minibatch"), "17");
  EXPECT_EQ(run.settings.at("data.flip"), "false");
  Log(out_, R"({"round":0,"kind":"settings","settings":{"sync.minibatch":19}})"
            "\n");
  EXPECT_EQ(SummariseRun(files_, out_, "").settings.at("sync.minibatch"), "19");
}

// job.patience is none of a checkpoint's settings: the end of a run may be another one's middle.
TEST_F(RunSummaryTest, ARunThatEndedEarlyIsDoneUnlessMorePatienceIsAskedFor) {
  Experiment experiment;
  experiment.sync.warmup_samples = 0;
  experiment.job.patience = 1;
  checkpoint::Manifest manifest;
  manifest.set_train_samples(int64_t{1} << 30);
  manifest.mutable_progress()->set_stops_at(7);
  manifest.mutable_progress()->set_best_metric("loss");
  Checkpoint(out_, experiment, manifest);
  EXPECT_EQ(SummariseRun(files_, out_, "").state, RunState::kDone);
  EXPECT_TRUE(IsDone(files_, out_, experiment));
  experiment.job.patience = 2;
  EXPECT_FALSE(IsDone(files_, out_, experiment));
  experiment.job.patience = 1;
  experiment.job.seed = 5;
  EXPECT_FALSE(IsDone(files_, out_, experiment)) << "another experiment";
  EXPECT_FALSE(IsDone(files_, out_ + "/none", experiment));
}

TEST_F(RunSummaryTest, ALockedFolderHasARunningJob) {
  Log(out_, "");
  EXPECT_EQ(SummariseRun(files_, out_, "").state, RunState::kEnded);
  for (const FileLock kind : {FileLock::kKernel, FileLock::kNone}) {
    const auto lock = OutputLock::Take(out_, {1}, kind);
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(SummariseRun(files_, out_, "").state, RunState::kRunning);
  }
  EXPECT_EQ(SummariseRun(files_, out_, "").state, RunState::kEnded);
}

TEST_F(RunSummaryTest, RunsAreFoundBelowAFolderAndInIt) {
  for (const char* run : {"/b", "/b/earlier/1", "/a/x", "/a/y", "/1/2/3/4", "/.hidden"})
    Log(out_ + run, "");
  std::filesystem::create_directories(out_ + "/empty");
  std::filesystem::create_directory_symlink("..", out_ + "/a/up");
  EXPECT_THAT(*FindRuns(out_),
              ElementsAre(out_ + "/a/x", out_ + "/a/y", out_ + "/b", out_ + "/b/earlier/1"));
  EXPECT_THAT(*FindRuns(out_ + "/b"), ElementsAre(out_ + "/b", out_ + "/b/earlier/1"));
  EXPECT_THAT(*FindRuns(out_ + "/empty"), IsEmpty());
  EXPECT_EQ(FindRuns(out_ + "/none").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace kumo
