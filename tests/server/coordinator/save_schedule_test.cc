#include "server/coordinator/save_schedule.h"

#include <gtest/gtest.h>

#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

Experiment::CheckpointOptions Never() {
  Experiment::CheckpointOptions options;
  options.every_minutes = 0;
  options.every_rounds = 0;
  options.every_epochs = 0;
  options.best = "none";
  return options;
}

JobPlan SomePlan() {
  test::Job job = test::SmallJob();
  job.experiment.job.epochs = 6;
  job.experiment.evaluation.every_epochs = 4;
  return job.plan();
}

TEST(SaveSchedule, WithoutASettingNothingIsDue) {
  const JobPlan plan = SomePlan();
  const SaveSchedule schedule(Never(), 0);
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    EXPECT_FALSE(schedule.IsDue(plan, version, version * 3600 * kSecond));
  }
}

TEST(SaveSchedule, EachSettingAsksForItsVersionsAndAllOfThemForAny) {
  const JobPlan plan = SomePlan();
  Experiment::CheckpointOptions rounds = Never(), epochs = Never(), best = Never(), all = Never();
  all.every_rounds = rounds.every_rounds = 5;
  all.every_epochs = epochs.every_epochs = 3;
  all.best = best.best = "accuracy";
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    const RoundPlan last = plan.Round(version - 1);
    const bool by_rounds = version % 5 == 0;
    const bool by_epochs = last.ends_epoch && (last.epoch + 1) % 3 == 0;
    const bool by_best = plan.EvaluatedEpoch(version) >= 0;
    EXPECT_EQ(SaveSchedule(rounds, 0).IsDue(plan, version, 0), by_rounds) << version;
    EXPECT_EQ(SaveSchedule(epochs, 0).IsDue(plan, version, 0), by_epochs) << version;
    EXPECT_EQ(SaveSchedule(best, 0).IsDue(plan, version, 0), by_best) << version;
    EXPECT_EQ(SaveSchedule(all, 0).IsDue(plan, version, 0), by_rounds || by_epochs || by_best);
  }
}

TEST(SaveSchedule, MinutesCountFromTheLastCheckpoint) {
  const JobPlan plan = SomePlan();
  Experiment::CheckpointOptions options = Never();
  options.every_minutes = 2.5;
  SaveSchedule schedule(options, 1000 * kSecond);
  EXPECT_FALSE(schedule.IsDue(plan, 1, 1149 * kSecond));
  EXPECT_TRUE(schedule.IsDue(plan, 1, 1150 * kSecond));
  schedule.CountFrom(1150 * kSecond);
  EXPECT_FALSE(schedule.IsDue(plan, 2, 1299 * kSecond));
  EXPECT_TRUE(schedule.IsDue(plan, 2, 1300 * kSecond));
}

}  // namespace
}  // namespace kumo
