// The list of a job's metrics: what may be one, what figures are made of sums, and how sums of
// another list are read.
#include "common/job/metric_list.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr auto kMean = MetricFormula::kMean;
constexpr auto kShare = MetricFormula::kShare;

MetricList List(std::vector<Metric> metrics) {
  Result<MetricList> list = MetricList::Make(std::move(metrics));
  EXPECT_TRUE(list.ok()) << list.status().message();
  return list.ok() ? *list : MetricList();
}

MetricList LossAccuracyPerplexity() {
  return List({{"loss", 0, kMean, false},
               {"accuracy", 1, kShare, true},
               {"perplexity", 0, MetricFormula::kExponentialOfMean, false}});
}

MetricSums Sums(int64_t samples, const std::vector<double>& sums) { return {samples, sums}; }

std::string Refusal(std::vector<Metric> metrics) {
  const Result<MetricList> list = MetricList::Make(std::move(metrics));
  return list.ok() ? "" : list.status().message();
}

TEST(MetricListTest, FiguresAreMadeOfTheSumsByTheFormulas) {
  const MetricList list = LossAccuracyPerplexity();
  EXPECT_EQ(list.sums(), 2);
  const std::vector<MetricFigure> expected = {
      {"loss", 0.5}, {"accuracy", 0.75}, {"perplexity", std::exp(0.5)}};
  EXPECT_EQ(list.FiguresOf(Sums(4, {2.0, 3.0})), expected);
  EXPECT_EQ(FindFigure(expected, "accuracy"), 0.75);
  EXPECT_FALSE(FindFigure(expected, "precision"));
  EXPECT_EQ(list.Names(), "loss, accuracy, perplexity");
  EXPECT_EQ(MetricList().Names(), "none");
}

TEST(MetricListTest, OverNoSamplesAndOfMissingSumsThereAreNoFigures) {
  const MetricList list = LossAccuracyPerplexity();
  EXPECT_TRUE(list.FiguresOf(Sums(0, {0.0, 0.0})).empty());
  EXPECT_TRUE(list.FiguresOf(Sums(-3, {1.0, 1.0})).empty());
  const std::vector<MetricFigure> first = {{"loss", 0.5}, {"perplexity", std::exp(0.5)}};
  EXPECT_EQ(list.FiguresOf(Sums(4, {2.0})), first);
}

TEST(MetricListTest, WhatIsNoListIsRefusedByName) {
  EXPECT_NE(Refusal({{"", 0}}).find("'' is not the name of a metric"), std::string::npos);
  for (const std::string& name : {std::string("Loss"), std::string("5top"), std::string("a b"),
                                  std::string("a\nb"), std::string("a/b"), std::string(33, 'a')}) {
    EXPECT_NE(Refusal({{name, 0}}).find("is not the name of a metric"), std::string::npos) << name;
  }
  EXPECT_EQ(Refusal({{std::string(32, 'a'), 0}}), "");
  EXPECT_EQ(Refusal({{"loss", 0}, {"loss", 1}}), "metric loss is listed twice");
  for (const auto& [a, b] : {std::pair(1, 2), {0, 2}, {-1, 0}, {0, 1 << 30}}) {
    EXPECT_NE(Refusal({{"a", a}, {"b", b}}).find("without gaps"), std::string::npos);
  }
  std::vector<Metric> many;
  for (int i = 0; i <= MetricList::kMostMetrics; ++i) many.push_back({"m" + std::to_string(i), i});
  EXPECT_EQ(Refusal(many), "17 metrics; at most 16 are allowed");
  many.pop_back();
  EXPECT_EQ(Refusal(many), "");
}

TEST(MetricListTest, SumsOfAnotherNumberAndImpossibleSharesAreRefused) {
  const MetricList list = LossAccuracyPerplexity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(list.Check(Sums(4, {-1e300, 4.0}), 4).ok());
  EXPECT_TRUE(list.Check(Sums(4, {nan, 0.0}), 4).ok()) << "a loss may be no number";
  EXPECT_FALSE(list.Check(Sums(4, {1.0}), 4).ok());
  EXPECT_FALSE(list.Check(Sums(4, {1.0, 1.0, 1.0}), 4).ok());
  EXPECT_FALSE(list.Check(Sums(4, {1.0, 4.5}), 4).ok());
  EXPECT_FALSE(list.Check(Sums(4, {1.0, -0.5}), 4).ok());
  EXPECT_FALSE(list.Check(Sums(4, {1.0, nan}), 4).ok());
  EXPECT_FALSE(list.Check(Sums(4, {1.0, 1.0}), 5).ok());
  EXPECT_FALSE(list.Check(Sums(5, {1.0, 1.0}), 4).ok());
}

TEST(MetricListTest, SumsAddUp) {
  MetricSums sums;
  sums.Add(Sums(3, {1.5, 2.0}));
  sums.Add(Sums(1, {0.25, 1.0}));
  EXPECT_EQ(sums, Sums(4, {1.75, 3.0}));
  sums.Add(MetricSums());
  EXPECT_EQ(sums, Sums(4, {1.75, 3.0}));
}

TEST(MetricListTest, SumsOfAnotherListAreReadByName) {
  const MetricList then = List({{"loss", 0, kMean}, {"accuracy", 1, kShare, true}});
  const MetricList now = List({{"top5_accuracy", 0, kShare, true}, {"loss", 1, kMean}});
  const MetricSums sums = now.Translate(then, Sums(4, {2.0, 3.0}));
  ASSERT_EQ(sums.sums.size(), 2u);
  EXPECT_EQ(sums.samples, 4);
  EXPECT_TRUE(std::isnan(sums.sums[0])) << "nobody has counted these";
  EXPECT_EQ(sums.sums[1], 2.0);
  EXPECT_EQ(now.Translate(then, Sums(0, {})), Sums(0, {0.0, 0.0}));
  EXPECT_EQ(now.Translate(now, Sums(4, {2.0, 3.0})), Sums(4, {2.0, 3.0}));
}

TEST(MetricListTest, SumsAreTheSameAfterATransfer) {
  checkpoint::SampleSums message;
  message.add_sums(7);
  WriteSums(Sums(4, {1.75, -3.0}), &message);
  EXPECT_EQ(message.sums_size(), 2);
  EXPECT_EQ(ReadSums(message), Sums(4, {1.75, -3.0}));
  EXPECT_EQ(ReadSums(checkpoint::SampleSums()), MetricSums());
}

// Of an evaluation the counts go with the sums, limited; of a round they do not.
TEST(MetricSumsTest, OfAnEvaluationHaveLimitedCountsOfDetections) {
  MetricSums sums = Sums(4, {1.75});
  const std::vector<GroundTruth> objects = {{{0, 0, 10, 10}, 0, false}};
  for (int i = 1; i < 2000; ++i) {
    sums.detections.Add(std::vector<Detection>{{{0, 0, 10, 10}, 0, static_cast<float>(i) / 2000}},
                        objects);
  }
  checkpoint::SampleSums message;
  WriteEvaluation(sums, &message);
  EXPECT_EQ(ReadEvaluation(message).value(), sums);
  EXPECT_EQ(ReadSums(message), Sums(4, {1.75}));
  message.set_detections("\xff");
  EXPECT_FALSE(ReadEvaluation(message).ok());
  WriteSums(sums, &message);
  EXPECT_TRUE(message.detections().empty());
}

TEST(MetricListTest, EachClassWithObjectsHasAnAveragePrecision) {
  MetricSums sums = Sums(1, {0.0});
  const Box box = {0, 0, 10, 10}, elsewhere = {20, 20, 30, 30};
  sums.detections.Add(std::vector<Detection>{{box, 0, 0.9f}, {elsewhere, 2, 0.8f}},
                      std::vector<GroundTruth>{{box, 0, false}, {box, 2, false}});
  const std::vector<std::string> names = {"cat\n", "dog"};
  const MetricList precisions = List({{"map_11", 0, MetricFormula::kElevenPointPrecision, true},
                                      {"map", 1, MetricFormula::kAveragePrecision, true}});
  EXPECT_THAT(precisions.FiguresOfClasses(sums, names),
              testing::ElementsAre(MetricFigure{"map/cat?", 1}, MetricFigure{"map/2", 0}));
  EXPECT_THAT(LossAccuracyPerplexity().FiguresOfClasses(sums, names), testing::IsEmpty());
  const std::string same(100, 'x');
  EXPECT_THAT(
      precisions.FiguresOfClasses(sums, std::vector{same, same, same}),
      testing::ElementsAre(testing::Field(&MetricFigure::name, testing::StartsWith("map/xx")),
                           MetricFigure{"map/2", 0}))
      << "what is left of the names is no longer their own";
  for (int32_t i = 0; i <= MetricList::kMostClassFigures; ++i) {
    sums.detections.Add({}, std::vector<GroundTruth>{{box, i, false}});
  }
  EXPECT_THAT(precisions.FiguresOfClasses(sums, names), testing::IsEmpty());
}

MetricList LossAndIou(int classes) {
  return List({{"loss", 0, kMean, false},
               {"mean_iou", 1, MetricFormula::kMeanOfRatios, true, 1 + classes, classes}});
}

TEST(MetricListTest, AMeanOfRatiosIsOverTheClassesThatOccur) {
  const MetricList list = LossAndIou(3);
  EXPECT_EQ(list.sums(), 7);
  const MetricSums sums = Sums(2, {1, 6, 0, 3, 8, 0, 12});
  EXPECT_EQ(list.FiguresOf(sums), (std::vector<MetricFigure>{{"loss", 0.5}, {"mean_iou", 0.5}}));
  EXPECT_THAT(
      list.FiguresOfClasses(sums, std::vector<std::string>{"road"}),
      testing::ElementsAre(MetricFigure{"mean_iou/road", 0.75}, MetricFigure{"mean_iou/2", 0.25}));
  EXPECT_EQ(FindFigure(list.FiguresOf(Sums(2, {1, 0, 0, 0, 0, 0, 0})), "mean_iou"), 0.0);
  EXPECT_EQ(FindFigure(list.FiguresOf(Sums(2, {1, 6, 0, 3, 8, 0})), "mean_iou"), std::nullopt);
  EXPECT_EQ(list.Translate(List({{"mean_iou", 0, MetricFormula::kMeanOfRatios, true, 3, 3}}),
                           Sums(2, {6, 0, 3, 8, 0, 12}))
                .sums[5],
            0.0);
  const MetricSums of_others = list.Translate(LossAndIou(2), Sums(2, {1, 6, 3, 8, 12}));
  EXPECT_EQ(of_others.sums[0], 1.0);
  EXPECT_TRUE(std::isnan(of_others.sums[1])) << "of two classes, which may be others";
}

TEST(MetricListTest, ClassesOutOfRangeAreRefused) {
  const auto of = [](MetricFormula formula, int sum, int divisor, int classes) {
    return Refusal({{"iou", sum, formula, true, divisor, classes}});
  };
  constexpr auto kRatios = MetricFormula::kMeanOfRatios;
  EXPECT_EQ(of(kRatios, 0, 500, 500), "");
  EXPECT_EQ(of(kRatios, 0, 501, 501), "metric iou is over 501 classes; 1 to 500 are allowed");
  EXPECT_EQ(of(kRatios, 0, 0, 0), "metric iou is over 0 classes; 1 to 500 are allowed");
  EXPECT_EQ(of(kRatios, 0, 2, -1), "metric iou is over -1 classes; 1 to 500 are allowed");
  EXPECT_EQ(of(kMean, 0, 0, 2), "metric iou is over 2 classes; 1 is allowed");
  EXPECT_THAT(of(kRatios, 0, std::numeric_limits<int>::max(), 3), testing::HasSubstr("gaps"));
  EXPECT_EQ(Refusal({{"a", 0, kRatios, true, 500, 500}, {"b", 1000, kRatios, true, 1013, 13}}),
            "the metrics have 1026 sums; at most 1024 are allowed");
}

TEST(MetricListTest, AListIsTheSameAfterATransfer) {
  for (const MetricList& same : {LossAndIou(1), LossAndIou(5)}) {
    checkpoint::Manifest manifest;
    WriteMetrics(same, manifest.mutable_metrics());
    EXPECT_EQ(ParseMetrics(manifest.metrics()).value(), same);
  }
  const MetricList list = LossAccuracyPerplexity();
  checkpoint::Manifest manifest;
  WriteMetrics(list, manifest.mutable_metrics());
  const Result<MetricList> read = ParseMetrics(manifest.metrics());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, list);
  manifest.mutable_metrics(1)->set_formula(static_cast<checkpoint::Metric::Formula>(77));
  EXPECT_FALSE(ParseMetrics(manifest.metrics()).ok());
}

TEST(MetricFigureTest, SmallFiguresAreNotShownAsNothing) {
  EXPECT_EQ(Described({"accuracy", 0.99314}), "accuracy 0.9931");
  EXPECT_EQ(Described({"loss", 0}), "loss 0.0000");
  EXPECT_EQ(Described({"loss", 0.001}), "loss 0.0010");
  EXPECT_EQ(Described({"loss", 0.00000020497}), "loss 2.050e-07");
}

}  // namespace
}  // namespace kumo
