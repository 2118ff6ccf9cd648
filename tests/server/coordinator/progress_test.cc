#include "server/coordinator/progress.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

JobPlan Plan() {
  PlanSettings settings;
  settings.train_samples = 77;
  settings.partitions = 3;
  settings.minibatch = 4;
  settings.block = 1;
  settings.epochs = 4;
  settings.evaluate_every_epochs = 2;
  return JobPlan::Make(settings).value();
}

MetricSums OfRound(const RoundPlan& round) {
  return test::SumsOf(round.samples.size(), 0.1 * static_cast<double>(round.round + 1),
                      static_cast<double>(round.round % 5));
}

MetricSums OfPart(int64_t version, int partition) {
  return test::SumsOf(10 + partition, 1.0 / static_cast<double>(version + partition), partition);
}

constexpr int kPointsPerEpoch = 5;

// Counts what a job does between two versions; returns what became complete, in words.
std::vector<std::string> Play(EpochLedger* ledger, const JobPlan& plan, int64_t from, int64_t to) {
  std::vector<std::string> complete;
  const auto evaluate = [&](int64_t version) {
    if (plan.EvaluatedEpoch(version) < 0) return;
    for (const int partition : {2, 0, 2, 1, 1}) {  // in any order, some twice
      const auto epoch =
          ledger->AddEvaluation(plan, version, partition, OfPart(version, partition), {}, {});
      if (!epoch) continue;
      complete.push_back(std::to_string(epoch->epoch) + ": " + test::Exactly(epoch->train) + " / " +
                         test::Exactly(epoch->validation));
    }
  };
  ledger->Start(plan, from, test::LossAndAccuracy());
  evaluate(from);
  for (int64_t version = from + 1; version <= to; ++version) {
    const auto point =
        ledger->AddRound(plan, version, OfRound(plan.Round(version - 1)), kPointsPerEpoch);
    if (point) {
      complete.push_back("point at " + std::to_string(version) + ": " + test::Exactly(*point));
    }
    evaluate(version);
  }
  return complete;
}

TEST(EpochLedger, AnEpochIsCompleteOnceWhenAllPartitionsHaveEvaluatedItsEnd) {
  const JobPlan plan = Plan();
  EpochLedger ledger;
  auto complete = Play(&ledger, plan, 0, plan.rounds());
  const auto is_point = [](const std::string& what) { return what.starts_with("point"); };
  EXPECT_EQ(std::erase_if(complete, is_point), 4u * kPointsPerEpoch);
  ASSERT_EQ(complete.size(), 2u);  // of 4 epochs every second one
  EXPECT_TRUE(complete[0].starts_with("1: samples: 77 "));
  EXPECT_TRUE(complete[1].starts_with("3: samples: 77 "));
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.last_validation().samples, 33);
}

// Counts of detections are added up as they come, and a later coordinator goes on with them.
TEST(EpochLedger, CountsOfDetectionsAreTheSameInAnyOrderAndAfterATakeover) {
  const JobPlan plan = Plan();
  const int64_t version = plan.rounds();
  const MetricList metrics = MetricList::Make({{"loss", 0, MetricFormula::kMean},
                                               {"map", 1, MetricFormula::kAveragePrecision, true}})
                                 .value();
  const Box there = {0, 0, 10, 10}, elsewhere = {20, 20, 30, 30};
  std::vector<MetricSums> parts;
  for (int p = 0; p < 3; ++p) {
    parts.push_back({10, {1.0, 0.0}});
    for (int i = 0; i <= p; ++i) {
      const float score = 0.3f + 0.1f * static_cast<float>(p + i);
      parts[p].detections.Add(std::vector<Detection>{{there, p % 2, score}, {elsewhere, 0, 0.35f}},
                              std::vector<GroundTruth>{{there, p % 2, false}});
    }
  }
  MetricSums whole;
  for (const MetricSums& part : parts) whole.Add(part);
  metrics.Settle(&whole);
  ASSERT_GT(whole.sums[1], 0);
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 2, 0, 1}, {1, 0, 1, 2}}) {
    EpochLedger ledger;
    ledger.Start(plan, 0, metrics);
    for (int64_t v = 1; v <= version; ++v) {
      ledger.AddRound(plan, v, {plan.Round(v - 1).samples.size(), {1.0, 0.0}}, kPointsPerEpoch);
    }
    std::optional<EpochLedger::Epoch> epoch;
    for (const int partition : order) {
      wire::CoordinatorState state;
      ledger.Describe(&state);
      ledger = EpochLedger(state, metrics);
      epoch = ledger.AddEvaluation(plan, version, partition, parts[partition], {}, {});
    }
    ASSERT_TRUE(epoch.has_value());
    EXPECT_EQ(epoch->validation, whole);
  }
  // Damaged counts cost the evaluations of the epoch: all partitions are asked again.
  EpochLedger ledger;
  ledger.Start(plan, 0, metrics);
  for (int64_t v = 1; v <= version; ++v) {
    ledger.AddRound(plan, v, {plan.Round(v - 1).samples.size(), {1.0, 0.0}}, kPointsPerEpoch);
  }
  ledger.AddEvaluation(plan, version, 1, parts[1], {}, {});
  wire::CoordinatorState state;
  ledger.Describe(&state);
  for (auto& ended : *state.mutable_ended_epochs()) ended.set_detections("\xff");
  EXPECT_TRUE(EpochLedger(state, metrics).Waits(plan, version, 1));
}

TEST(EpochLedger, KnowsWhoHasNotEvaluatedYet) {
  const JobPlan plan = Plan();
  EpochLedger ledger;
  EXPECT_TRUE(ledger.Unevaluated(3).empty());
  int64_t version = 0;
  while (plan.EvaluatedEpoch(version) < 0) {
    ++version;
    ledger.AddRound(plan, version, OfRound(plan.Round(version - 1)), kPointsPerEpoch);
  }
  EXPECT_EQ(ledger.Unevaluated(3), (std::vector<int>{0, 1, 2}));
  ledger.AddEvaluation(plan, version, 1, OfPart(version, 1), {}, {});
  EXPECT_EQ(ledger.Unevaluated(3), (std::vector<int>{0, 2}));
  ledger.AddEvaluation(plan, version, 0, OfPart(version, 0), {}, {});
  ledger.AddEvaluation(plan, version, 2, OfPart(version, 2), {}, {});
  EXPECT_TRUE(ledger.Unevaluated(3).empty());
}

TEST(EpochLedger, AnEpochThatIsNotEvaluatedYetIsNotComplete) {
  const JobPlan plan = Plan();
  EpochLedger ledger;
  int64_t version = 0;
  while (plan.EvaluatedEpoch(version) < 0) {
    ++version;
    ledger.AddRound(plan, version, OfRound(plan.Round(version - 1)), kPointsPerEpoch);
  }
  EXPECT_FALSE(ledger.complete());
  EXPECT_FALSE(ledger.AddEvaluation(plan, version, 0, OfPart(version, 0), {}, {}));
  EXPECT_EQ(ledger.last_validation().samples, 0);
}

// Plays validation losses of 5, 4, 4.5, ... after the evaluated epochs, and goes on from a
// checkpoint of version `at` on the way, with the rule `later`. Returns the reasons to stop, and
// the version.
std::vector<std::string> PlayStops(const JobPlan& plan, const std::vector<double>& losses,
                                   EpochLedger::StopRule rule, int64_t at,
                                   const EpochLedger::StopRule& later) {
  std::vector<std::string> told;
  EpochLedger ledger;
  ledger.Start(plan, 0, test::LossAndAccuracy());
  const auto evaluate = [&](int64_t version) {
    const int epoch = plan.EvaluatedEpoch(version);
    if (epoch < 0) return;
    for (const int partition : {0, 1, 2}) {
      const MetricSums sums = test::SumsOf(10, 10 * losses[epoch], 5);
      const auto done = ledger.AddEvaluation(plan, version, partition, sums, rule, {});
      if (done && !done->early_stop.empty()) told.push_back(done->early_stop);
    }
  };
  for (int64_t version = 1; version <= plan.rounds(); ++version) {
    ledger.AddRound(plan, version, OfRound(plan.Round(version - 1)), kPointsPerEpoch);
    if (version == at) {
      checkpoint::Manifest manifest;
      *manifest.mutable_progress() = ledger.progress();
      WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
      ledger = EpochLedger(manifest);
      ledger.Start(plan, version, test::LossAndAccuracy());
      rule = later;
      ledger.Reconsider(plan, rule);
    }
    evaluate(version);
    if (ledger.stops_at() == version) break;
  }
  told.push_back(std::to_string(ledger.stops_at()));
  return told;
}

TEST(EpochLedger, WithoutABetterFigureTheJobStopsAtTheSameVersionWhereverItWasResumed) {
  PlanSettings settings;
  settings.train_samples = 77;
  settings.partitions = 3;
  settings.minibatch = 4;
  settings.block = 1;
  settings.epochs = 8;
  const JobPlan plan = JobPlan::Make(settings).value();
  const int64_t rounds_per_epoch = plan.rounds() / 8;
  const std::vector<double> losses = {5, 4, 4.5, 4.2, 3, 3.5, 3.2, 3.1};
  const auto stops = [&](const EpochLedger::StopRule& rule, int64_t at = -1) {
    return PlayStops(plan, losses, rule, at, rule);
  };
  const std::vector<std::string> expected = {
      "no better validation loss for 2 epochs, since epoch 2 (4.0000): the job ends with round " +
          std::to_string(4 * rounds_per_epoch + 2) + " (job.patience)",
      std::to_string(4 * rounds_per_epoch + 2)};
  for (int64_t at = -1; at <= plan.rounds(); ++at) {
    EXPECT_EQ(stops({2, "loss", 0}, at), expected) << at;
  }
  EXPECT_EQ(stops({0, "loss", 0}).back(), "0");
  EXPECT_EQ(stops({3, "loss", 0}).back(), "0") << "it would be with the last epoch";
  EXPECT_EQ(stops({1, "loss", 0}).back(), std::to_string(3 * rounds_per_epoch + 2));
  EXPECT_EQ(stops({2, "loss", 1.5}).back(), std::to_string(3 * rounds_per_epoch + 2))
      << "4 is not better than 5 by more than 1.5";
  EXPECT_EQ(stops({2, "accuracy", 0}).back(), std::to_string(3 * rounds_per_epoch + 2));

  // Continued with another rule, also between the decision to stop and the stop.
  const int64_t decided = 4 * rounds_per_epoch;
  for (int64_t at = decided; at <= decided + 2; ++at) {
    const auto later = [&](const EpochLedger::StopRule& rule) {
      return PlayStops(plan, losses, {2, "loss", 0}, at, rule).back();
    };
    EXPECT_EQ(later({2, "loss", 0}), std::to_string(decided + 2)) << at;
    EXPECT_EQ(later({3, "loss", 0}), "0") << at;
    EXPECT_EQ(later({0, "loss", 0}), "0") << at;
  }
}

TEST(EpochLedger, ResumedAnywhereItTellsWhatAnUninterruptedOneTells) {
  const JobPlan plan = Plan();
  EpochLedger whole;
  const auto expected = Play(&whole, plan, 0, plan.rounds());
  for (int64_t at = 0; at <= plan.rounds(); ++at) {
    EpochLedger before;
    std::vector<std::string> told = Play(&before, plan, 0, at);
    EXPECT_EQ(before.progress().samples(), plan.SamplesAt(at));
    EXPECT_EQ(before.progress().last().samples() > 0, at > 0);
    checkpoint::Manifest manifest;
    WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
    *manifest.mutable_progress() = before.progress();
    EpochLedger after(manifest);
    const auto rest = Play(&after, plan, at, plan.rounds());
    // The epoch that ended at the checkpoint is evaluated, and told, again.
    const bool again = plan.EvaluatedEpoch(at) >= 0;
    if (again) {
      ASSERT_FALSE(rest.empty());
      EXPECT_EQ(rest.front(), told.back());
      told.pop_back();
    }
    told.insert(told.end(), rest.begin(), rest.end());
    EXPECT_EQ(told, expected) << "resumed at version " << at;
    EXPECT_EQ(after.progress().last().SerializeAsString(),
              whole.progress().last().SerializeAsString());
    EXPECT_EQ(after.progress().samples(), plan.samples());
  }
}

// The network file has got one metric more, and one less, since the checkpoint.
TEST(EpochLedger, ResumedWithOtherMetricsItKnowsThoseThatItHadAndTheNewOnesFromTheNextEpochOn) {
  const JobPlan plan = Plan();
  EpochLedger before;
  Play(&before, plan, 0, 2);  // in the middle of an epoch
  checkpoint::Manifest manifest;
  WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
  *manifest.mutable_progress() = before.progress();
  const MetricList metrics =
      MetricList::Make({{"top5_accuracy", 0, MetricFormula::kShare, true}, {"loss", 1}}).value();
  EpochLedger after(manifest);
  after.Start(plan, 2, metrics);
  double loss = before.progress().epoch().sums(0);
  int64_t version = 2;
  const auto round = [&] {
    after.AddRound(plan, ++version, test::SumsOf(7, 3.0, 0.5), kPointsPerEpoch);
    loss += 0.5;
  };
  while (!plan.Round(version).ends_epoch) round();
  round();
  const checkpoint::SampleSums first = after.progress().ended_epoch();
  EXPECT_TRUE(std::isnan(first.sums(0)));
  EXPECT_EQ(first.sums(1), loss);
  round();
  EXPECT_EQ(ReadSums(after.progress().epoch()), test::SumsOf(7, 3.0, 0.5));
}

wire::Header Evaluation(int64_t version, int partition, uint64_t request) {
  wire::Header header;
  header.set_type(wire::EVALUATED);
  header.set_round(version);
  header.set_partition(partition);
  header.set_request(request);
  return header;
}

std::vector<SendAction> SendsOf(const StepContext& context) {
  std::vector<SendAction> sends;
  for (const ServerAction& action : context.actions) sends.push_back(std::get<SendAction>(action));
  return sends;
}

SendAction AnswerHeld(HeldEvaluations* held, const PeerName& from, const wire::Header& header) {
  StepContext context{0, {}};
  held->Answer(from, header, &context);
  EXPECT_EQ(context.actions.size(), 1u);
  return SendsOf(context).front();
}

std::vector<SendAction> Release(HeldEvaluations* held, int64_t version) {
  StepContext context{0, {}};
  held->Release(version, &context);
  return SendsOf(context);
}

TEST(HeldEvaluations, WhatIsNotHeldIsAcknowledgedForGood) {
  HeldEvaluations held;
  const SendAction ack = AnswerHeld(&held, "a", Evaluation(4, 1, 7));
  EXPECT_EQ(ack.to, "a");
  EXPECT_EQ(ack.message.header.request(), 7u);
  EXPECT_FALSE(ack.message.header.held());
  EXPECT_TRUE(Release(&held, 100).empty());
}

// It is in the state that goes with the next version, which is kept twice when the one after it is
// made.
TEST(HeldEvaluations, WhatIsHeldIsReleasedTwoVersionsLater) {
  HeldEvaluations held;
  held.Hold(4, 1, /*now=*/5);
  EXPECT_TRUE(AnswerHeld(&held, "a", Evaluation(4, 1, 7)).message.header.held());
  EXPECT_FALSE(AnswerHeld(&held, "a", Evaluation(4, 0, 8)).message.header.held())
      << "another partition";
  EXPECT_FALSE(AnswerHeld(&held, "a", Evaluation(3, 1, 9)).message.header.held())
      << "another version";
  EXPECT_TRUE(Release(&held, 6).empty());
  const auto released = Release(&held, 7);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].to, "a");
  EXPECT_EQ(released[0].message.header.type(), wire::ACK);
  EXPECT_EQ(released[0].message.header.request(), 7u);
  EXPECT_FALSE(released[0].message.header.held());
  EXPECT_TRUE(Release(&held, 8).empty()) << "once";
  EXPECT_FALSE(AnswerHeld(&held, "a", Evaluation(4, 1, 10)).message.header.held());
}

TEST(HeldEvaluations, EachSenderIsReleasedByItsLastRequest) {
  HeldEvaluations held;
  held.Hold(4, 1, 5);
  AnswerHeld(&held, "a", Evaluation(4, 1, 7));
  AnswerHeld(&held, "b", Evaluation(4, 1, 3));
  AnswerHeld(&held, "a", Evaluation(4, 1, 9));
  const auto released = Release(&held, 7);
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0].to, "a");
  EXPECT_EQ(released[0].message.header.request(), 9u);
  EXPECT_EQ(released[1].to, "b");
  EXPECT_EQ(released[1].message.header.request(), 3u);
}

TEST(HeldEvaluations, AJobThatGoesBackReleasesNobody) {
  HeldEvaluations held;
  held.Hold(4, 1, 5);
  AnswerHeld(&held, "a", Evaluation(4, 1, 7));
  held.Forget();
  EXPECT_TRUE(Release(&held, 100).empty());
}

constexpr TimeUs kStart = 1'750'638 * kSecond;  // a machine's uptime

RoundPlan Block(int64_t samples) {
  RoundPlan round;
  round.local_steps = true;
  round.samples = {0, samples};
  return round;
}

RoundPlan WarmUp(int64_t samples) {
  RoundPlan round;
  round.full_precision = true;
  round.samples = {0, samples};
  return round;
}

TEST(TrainingRate, IsNotKnownBeforeARoundWhoseBeginningWasSeen) {
  TrainingRate rate;
  EXPECT_FALSE(rate.SamplesPerSecond(kStart));
  rate.OnClosed(Block(100), kStart);
  EXPECT_FALSE(rate.SamplesPerSecond(kStart));
  rate.OnClosed(Block(100), kStart + 2 * kSecond);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 2 * kSecond).value_or(0), 50);
  rate.Forget();
  EXPECT_FALSE(rate.SamplesPerSecond(kStart + 2 * kSecond));
}

TEST(TrainingRate, IsTheMeanOverTimeOfRoundsOfAnyLength) {
  TrainingRate rate;
  TimeUs now = kStart;
  rate.OnClosed(Block(100), now);
  for (int i = 0; i < 50; ++i) {
    const int64_t samples = i % 7 == 0 ? 20 : 100;  // an epoch's last round is shorter
    now += samples * kSecond / 50;
    rate.OnClosed(Block(samples), now);
    ASSERT_NEAR(rate.SamplesPerSecond(now).value_or(0), 50, 1e-6);
  }
}

TEST(TrainingRate, FollowsWithinAMinuteOrTwo) {
  TrainingRate rate;
  TimeUs now = kStart;
  const auto run = [&](int seconds, int64_t per_second) {
    for (int i = 0; i < seconds; ++i) rate.OnClosed(Block(per_second), now += kSecond);
  };
  run(1000, 50);
  run(120, 200);
  EXPECT_GT(rate.SamplesPerSecond(now).value_or(0), 175);
}

TEST(TrainingRate, OfAnotherKindOfRoundsNothingFollows) {
  TrainingRate rate;
  rate.OnClosed(WarmUp(10), kStart);
  rate.OnClosed(WarmUp(10), kStart + kSecond);
  const TimeUs now = kStart + kSecond;
  EXPECT_EQ(rate.SamplesPerSecond(now), 10);
  EXPECT_EQ(rate.SamplesPerSecondOf(WarmUp(3), now), 10);
  EXPECT_FALSE(rate.SamplesPerSecondOf(Block(100), now));
  // It began when the warm-up ended.
  rate.OnClosed(Block(500), now + kSecond);
  EXPECT_EQ(rate.SamplesPerSecondOf(Block(100), now + kSecond), 500);
}

TEST(TrainingRate, ARoundThatDoesNotCloseMakesItSlower) {
  TrainingRate rate;
  rate.OnClosed(Block(100), kStart);
  rate.OnClosed(Block(100), kStart + kSecond);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 2 * kSecond).value_or(0), 100);
  EXPECT_DOUBLE_EQ(rate.SamplesPerSecond(kStart + 11 * kSecond).value_or(0), 10);
}

}  // namespace
}  // namespace kumo
