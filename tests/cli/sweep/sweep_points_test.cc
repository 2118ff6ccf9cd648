#include "cli/sweep/sweep_points.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<SweepAxis> Axes(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> axes;
  for (const std::string& text : texts) {
    Result<SweepAxis> axis = ParseAxis(text);
    EXPECT_TRUE(axis.ok()) << axis.status().message();
    axes.push_back(*axis);
  }
  return axes;
}

std::vector<std::string> NamesOf(const std::vector<SweepPoint>& points) {
  std::vector<std::string> names;
  for (const SweepPoint& point : points) names.push_back(point.name);
  return names;
}

TEST(SweepPoints, AGridHasAllCombinations) {
  const auto points = GridOf(Axes({"schedule.learning_rate=.01, 0.1", "sync.minibatch=32,64"}));
  ASSERT_TRUE(points.ok()) << points.status().message();
  EXPECT_THAT(NamesOf(*points),
              ElementsAre("learning_rate=.01,minibatch=32", "learning_rate=.01,minibatch=64",
                          "learning_rate=0.1,minibatch=32", "learning_rate=0.1,minibatch=64"));
  EXPECT_THAT((*points)[1].Sets(), ElementsAre("schedule.learning_rate=.01", "sync.minibatch=64"));
}

TEST(SweepPoints, ANameHasTheSettingsThatDifferAndFitsAFolder) {
  EXPECT_THAT(NamesOf(*GridOf(Axes({"block.momentum=0.5", "optimiser.momentum=0,0.9"}))),
              ElementsAre("optimiser.momentum=0", "optimiser.momentum=0.9"));
  EXPECT_THAT(NamesOf(*GridOf(Axes({"schedule.milestones=5,10;8"}))),
              ElementsAre("milestones=5,10", "milestones=8"));
  EXPECT_THAT(NamesOf(*GridOf(Axes({"data.text=a/b.txt,../c"}))),
              ElementsAre("text=a_b.txt", "text=.._c"));
  EXPECT_THAT(NamesOf(*ListedPoints("job.seed=1\njob.seed=1")),
              ElementsAre("defaults", "defaults-2"));
}

TEST(SweepPoints, RandomPointsAreThoseOfTheSeed) {
  const std::vector<SweepAxis> axes =
      Axes({"schedule.learning_rate=1e-4..1e-1:log", "sync.minibatch=16..64", "job.seed=1,2,3"});
  const auto some = RandomPoints(axes, 20, 7);
  const auto more = RandomPoints(axes, 40, 7);
  ASSERT_TRUE(some.ok() && more.ok());
  for (size_t i = 0; i < some->size(); ++i) {
    EXPECT_EQ((*some)[i].Sets(), (*more)[i].Sets()) << "more go on from fewer";
    EXPECT_EQ((*some)[i].name, (*more)[i].name);
  }
  EXPECT_NE((*some)[0].Sets(), (*RandomPoints(axes, 1, 8))[0].Sets());
  int below = 0;
  for (const SweepPoint& point : *more) {
    const double rate = std::stod(point.settings[0].second);
    EXPECT_GE(rate, 0.99e-4);
    EXPECT_LE(rate, 1.01e-1);
    below += rate < 0.00316 ? 1 : 0;
    const std::string& minibatch = point.settings[1].second;
    EXPECT_EQ(minibatch.find('.'), std::string::npos) << minibatch;
    EXPECT_GE(std::stoi(minibatch), 16);
    EXPECT_LE(std::stoi(minibatch), 64);
  }
  EXPECT_GT(below, 10) << "half of them, in the logarithm";
  EXPECT_EQ(RandomPoints(Axes({"job.seed=1,2"}), 50, 1)->size(), 2u) << "no point twice";
}

// The folder of a run that is done is found again, whatever else has been drawn.
TEST(SweepPoints, ARandomPointKeepsItsNameIfMoreAreDrawn) {
  const std::vector<SweepAxis> axes =
      Axes({"schedule.learning_rate=1e-4..1e-1:log", "sync.minibatch=32", "job.seed=1,2"});
  const auto most = RandomPoints(axes, 30, 3);
  ASSERT_TRUE(most.ok());
  for (const int count : {1, 2, 3, 10}) {
    const auto fewer = RandomPoints(axes, count, 3);
    ASSERT_TRUE(fewer.ok());
    for (size_t i = 0; i < fewer->size(); ++i) EXPECT_EQ((*fewer)[i].name, (*most)[i].name);
  }
  EXPECT_THAT((*most)[0].name,
              testing::AllOf(testing::HasSubstr("learning_rate="), testing::HasSubstr(",seed="),
                             testing::Not(testing::HasSubstr("minibatch"))));
}

TEST(SweepPoints, AListHasAPointOnEachLine) {
  const auto points = ListedPoints("# first\nschedule.learning_rate=.1 job.seed=2\n\njob.seed=3\n");
  ASSERT_TRUE(points.ok()) << points.status().message();
  EXPECT_THAT(NamesOf(*points), ElementsAre("learning_rate=.1,seed=2", "seed=3"));
  EXPECT_THAT(ListedPoints("job.seed=1\njob.sead=1").status().message(),
              HasSubstr("line 2: unknown setting job.sead; did you mean job.seed?"));
  EXPECT_THAT(ListedPoints("# nothing").status().message(), HasSubstr("no line has a point"));
}

TEST(SweepPoints, WhatASettingDoesNotTakeIsRefused) {
  const auto refusal = [](const std::string& text) { return ParseAxis(text).status().message(); };
  EXPECT_THAT(refusal("lr=.1"),
              HasSubstr("unknown setting lr; did you mean schedule.learning_rate"));
  EXPECT_THAT(refusal("sync.minibatch=32,x"), HasSubstr("sync.minibatch = x: "));
  EXPECT_THAT(refusal("sync.minibatch=0..4"), HasSubstr("sync.minibatch = 0: must be 1 .. "));
  EXPECT_THAT(refusal("sync.minibatch"), HasSubstr("is no setting with values"));
  EXPECT_THAT(refusal("schedule.learning_rate=.1...01"), HasSubstr("LOW..HIGH"));
  EXPECT_THAT(refusal("schedule.learning_rate=0...1:log"), HasSubstr("above 0 with :log"));
  EXPECT_THAT(refusal("job.name=1..2"), HasSubstr("is no number"));
  for (const char* range : {"job.seed=.5..2", "job.seed=1..1.5", "job.seed=0..1e300"}) {
    EXPECT_THAT(refusal(range), HasSubstr("job.seed is an integer, so LOW..HIGH must be integers"));
  }
  EXPECT_THAT(refusal("schedule.learning_rate=.1..inf"), HasSubstr("schedule.learning_rate = inf"));
  EXPECT_THAT(refusal("job.seed=1,2,1"), HasSubstr("1 is given twice"));
  EXPECT_THAT(ListedPoints("job.seed=1 job.seed=2").status().message(),
              HasSubstr("line 1: job.seed is given twice"));
  EXPECT_THAT(GridOf(Axes({"job.seed=1", "job.seed=2"})).status().message(),
              HasSubstr("job.seed is given twice"));
  EXPECT_THAT(GridOf(Axes({"job.seed=1..2"})).status().message(), HasSubstr("give --random N"));
  const std::string many = "=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22";
  EXPECT_THAT(GridOf(Axes({"job.seed" + many, "job.epochs" + many, "sync.block" + many}))
                  .status()
                  .message(),
              HasSubstr("more than 10000 points"));
}

}  // namespace
}  // namespace kumo
