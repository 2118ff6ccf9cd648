#include "common/job/job_plan.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

std::string Describe(const PlanSettings& s) {
  return std::string(WordOf(s.mode)) + ", samples " + std::to_string(s.train_samples) +
         ", partitions " + std::to_string(s.partitions) + ", minibatch " +
         std::to_string(s.minibatch) + ", block " + std::to_string(s.block) + ", overlap " +
         std::to_string(s.overlap) + ", fragments " + std::to_string(s.fragments) + ", delay " +
         std::to_string(s.delay) + ", warm-up " + std::to_string(s.warmup_samples) + ", epochs " +
         std::to_string(s.epochs) + ", evaluate every " + std::to_string(s.evaluate_every_epochs);
}

// Small jobs of every kind: sizes that do not divide, warm-ups that end within an epoch or after
// the job, more partitions than samples.
PlanSettings RandomSettings(Rng* rng) {
  PlanSettings s;
  s.mode = ChoicesOf(SyncMode())[rng->NextBelow(3)].value;
  s.train_samples = 1 + static_cast<int64_t>(rng->NextBelow(rng->NextBelow(2) ? 10 : 300));
  s.partitions = 1 + static_cast<int>(rng->NextBelow(9));
  s.minibatch = 1 + static_cast<int>(rng->NextBelow(17));
  s.block = 1 + static_cast<int>(rng->NextBelow(7));
  s.overlap = static_cast<int>(rng->NextBelow(s.block));
  if (s.mode != SyncMode::kBlock) s.delay = static_cast<int>(rng->NextBelow(4));
  if (rng->NextBelow(2)) s.fragments = 1 + static_cast<int>(rng->NextBelow(5));
  s.own_weights = s.overlap > 0 || s.fragments > 1 || rng->NextBelow(2) > 0;
  s.epochs = 1 + static_cast<int>(rng->NextBelow(5));
  s.evaluate_every_epochs = static_cast<int>(rng->NextBelow(4));
  if (rng->NextBelow(2)) {
    s.warmup_samples = static_cast<int64_t>(rng->NextBelow(s.train_samples * (s.epochs + 1) + 1));
  }
  return s;
}

template <typename Body>
void ForManyPlans(Body body) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 400; ++i) {
    const PlanSettings settings = RandomSettings(&rng);
    SCOPED_TRACE(Describe(settings));
    const Result<JobPlan> plan = JobPlan::Make(settings);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    body(settings, *plan);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(JobPlan, RoundsAndPartitionsVisitEachSampleOfEachEpochOnce) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    std::vector<std::vector<int>> visits(s.epochs, std::vector<int>(s.train_samples));
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      int64_t next = round.samples.begin;
      for (int p = 0; p < s.partitions; ++p) {
        const Range slice = plan.PartitionSamples(round, p);
        ASSERT_EQ(slice.begin, next);
        next = slice.end;
        for (int64_t i = slice.begin; i < slice.end; ++i) ++visits.at(round.epoch).at(i);
      }
      ASSERT_EQ(next, round.samples.end);
    }
    for (const auto& epoch : visits) ASSERT_THAT(epoch, testing::Each(1));
  });
}

TEST(JobPlan, TheFrontOfASliceIsTrainedAheadWithinAnEpochOfBlocks) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      const RoundPlan before = r > 0 ? plan.Round(r - 1) : RoundPlan();
      const bool follows = before.local_steps && before.epoch == round.epoch;
      const int64_t wanted = follows ? int64_t{s.overlap} * s.minibatch : 0;
      int64_t measured = 0;
      for (int p = 0; p < s.partitions; ++p) {
        const Range slice = plan.PartitionSamples(round, p);
        const Range ahead = plan.AheadSamples(round, p);
        const Range main = plan.MainSamples(round, p);
        ASSERT_EQ(ahead.begin, slice.begin);
        ASSERT_EQ(ahead.end, main.begin);
        ASSERT_EQ(main.end, slice.end);
        ASSERT_EQ(main.size() == 0, slice.size() == 0);
        ASSERT_EQ(ahead.size() % s.minibatch, 0);
        ASSERT_LE(ahead.size(), wanted);
        // A slice that is long enough has all of it.
        if (slice.size() > wanted) {
          ASSERT_EQ(ahead.size(), wanted);
        }
        measured += main.size();
      }
      ASSERT_EQ(plan.MeasuredSamples(round), measured);
    }
  });
}

TEST(JobPlan, RoundsStartFromTheVersionBeforeTheDelayOrFromTheEpochsFirst) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    int64_t first = 0;  // of the epoch
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      ASSERT_EQ(plan.BaseOf(r), std::max(first, r - s.delay));
      const Range from = plan.RoundsFrom(plan.BaseOf(r));
      ASSERT_TRUE(from.begin <= r && r < from.end);
      if (plan.Round(r).ends_epoch) first = r + 1;
    }
    ASSERT_EQ(plan.BaseOf(plan.rounds()), plan.rounds());
    ASSERT_EQ(plan.RoundsFrom(plan.rounds()).size(), 0);
  });
}

// A chunk at a version has got contributions to the round before from everybody: so everybody had
// pulled that round's base from each chunk.
TEST(JobPlan, WhatAChunkKeepsIsWhatAnyOpenRoundStartsFrom) {
  ForManyPlans([](const PlanSettings&, const JobPlan& plan) {
    for (int64_t version = 0; version <= plan.rounds(); ++version) {
      const int64_t slowest = version > 0 ? plan.BaseOf(version - 1) : 0;
      ASSERT_EQ(plan.OldestOpen(version), slowest);
      ASSERT_EQ(plan.OldestBase(version), plan.BaseOf(slowest));
      ASSERT_LE(version - plan.OldestBase(version) + 1, plan.MostKept(plan.delay()));
      // On arrival a version is what is there.
      ASSERT_EQ(plan.OldestKept(version), plan.on_arrival() ? version : plan.OldestBase(version));
      int64_t last = -1;
      for (int64_t r = 0; r < plan.rounds(); ++r) {
        if (plan.BaseOf(r) <= version) last = r;
      }
      ASSERT_EQ(plan.LastOpen(version), last);
    }
  });
}

// By whatever number the weights for a round are pulled, what is directed about the last round of a
// version is told to all who compute it, and each number is told with one version.
TEST(JobPlan, APullIsToldWhatIsDirectedWithTheVersionThatItsRoundStartsFrom) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    ASSERT_EQ(plan.on_arrival(), s.mode == SyncMode::kAsync && s.delay > 0);
    for (int64_t r = 0; r <= plan.rounds(); ++r) {
      ASSERT_EQ(plan.ToldWith(plan.PulledFor(r)), plan.BaseOf(r));
      ASSERT_EQ(plan.PulledFor(r), plan.on_arrival() ? r : plan.BaseOf(r));
      ASSERT_EQ(plan.OldestSaved(r), plan.on_arrival() ? r : plan.BaseOf(r));
    }
  });
}

TEST(JobPlan, TheLargestSliceIsTheLargestOfAllRounds) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    int64_t largest = 0;
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      for (int p = 0; p < s.partitions; ++p) {
        largest = std::max(largest, plan.PartitionSamples(plan.Round(r), p).size());
      }
    }
    ASSERT_EQ(plan.LargestSlice(), largest);
    ASSERT_EQ(plan.LargestMinibatch(), std::min<int64_t>(s.minibatch, largest));
  });
}

TEST(JobPlan, TheSmallestPartIsTheSmallestOfAllRounds) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (const int part : {s.minibatch, (s.minibatch + 1) / 2}) {
      int64_t smallest = part;
      for (int64_t r = 0; r < plan.rounds(); ++r) {
        for (int p = 0; p < s.partitions; ++p) {
          for (int64_t left = plan.PartitionSamples(plan.Round(r), p).size(); left > 0;
               left -= part) {
            smallest = std::min(smallest, left);
          }
        }
      }
      ASSERT_EQ(plan.SmallestPart(part), smallest);
    }
  });
}

TEST(JobPlan, SlicesDifferByAtMostOneSample) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      for (int p = 0; p < s.partitions; ++p) {
        const int64_t size = plan.PartitionSamples(round, p).size();
        ASSERT_GE(size, round.samples.size() / s.partitions);
        ASSERT_LE(size, round.samples.size() / s.partitions + 1);
      }
    }
  });
}

TEST(JobPlan, VersionsKnowTheSamplesBeforeThem) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    int64_t samples = 0;
    for (int64_t version = 0; version < plan.rounds(); ++version) {
      ASSERT_EQ(plan.SamplesAt(version), samples);
      samples += plan.Round(version).samples.size();
    }
    ASSERT_EQ(plan.SamplesAt(plan.rounds()), samples);
    ASSERT_EQ(plan.samples(), samples);
    ASSERT_EQ(samples, s.train_samples * s.epochs);
  });
}

// So curves of a block job and of a synchronous one have their points at the same samples, but for
// the length of a round.
TEST(JobPlan, EachPartOfAnEpochEndsInOneRoundWhateverRoundsThereAre) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (const int parts : {1, 2, 7, 1000}) {
      std::vector<std::vector<int>> ends(s.epochs, std::vector<int>(parts));
      for (int64_t r = 0; r < plan.rounds(); ++r) {
        const RoundPlan round = plan.Round(r);
        bool ends_one = false;
        for (int part = 0; part < parts; ++part) {
          // The part's last sample, as a fraction of the epoch.
          const int64_t mark = (part + 1) * s.train_samples;
          const bool inside =
              round.samples.begin * parts < mark && round.samples.end * parts >= mark;
          ends.at(round.epoch).at(part) += inside;
          ends_one = ends_one || inside;
        }
        ASSERT_EQ(plan.EndsPart(round, parts), ends_one) << "round " << r;
        ASSERT_TRUE(!round.ends_epoch || ends_one) << "round " << r;
      }
      for (const auto& epoch : ends) ASSERT_THAT(epoch, testing::Each(1));
    }
  });
}

TEST(JobPlan, RoundsFollowEachOtherWithoutGapsAndAreNeverEmpty) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    int64_t position = 0;
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      ASSERT_EQ(round.round, r);
      ASSERT_EQ(round.first_sample, position);
      ASSERT_EQ(round.first_sample, round.epoch * s.train_samples + round.samples.begin);
      ASSERT_GT(round.samples.size(), 0);
      ASSERT_LE(round.samples.end, s.train_samples);
      ASSERT_EQ(round.ends_epoch, round.samples.end == s.train_samples);
      position += round.samples.size();
    }
    ASSERT_EQ(position, s.train_samples * s.epochs);
  });
}

TEST(JobPlan, OnlyTheLastRoundOfAnEpochOrOfTheWarmupIsShort) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      const int64_t full = int64_t{s.partitions} * s.minibatch * (round.local_steps ? s.block : 1);
      ASSERT_LE(round.samples.size(), full);
      const int64_t end = round.first_sample + round.samples.size();
      const bool warmup_ends = s.mode == SyncMode::kBlock && end == s.warmup_samples;
      if (!round.ends_epoch && !warmup_ends) {
        ASSERT_EQ(round.samples.size(), full) << r;
      }
    }
  });
}

TEST(JobPlan, TheWarmupIsInGradientModeAndFullPrecisionAndThenItIsOver) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      const bool warm = round.first_sample < s.warmup_samples;
      ASSERT_EQ(round.full_precision, warm);
      const bool block = s.mode == SyncMode::kBlock && !warm;
      ASSERT_EQ(round.local_steps, block);
      if (s.mode == SyncMode::kBlock && warm) {
        // In block mode the warm-up ends with a round.
        ASSERT_LE(round.first_sample + round.samples.size(), s.warmup_samples);
      }
    }
  });
}

TEST(JobPlan, StepsCountTheRoundsOfEachMode) {
  ForManyPlans([](const PlanSettings&, const JobPlan& plan) {
    int64_t steps[2] = {};
    for (int64_t r = 0; r < plan.rounds(); ++r) {
      const RoundPlan round = plan.Round(r);
      ASSERT_EQ(round.step, ++steps[round.local_steps]);
    }
  });
}

// The rounds that a fragment's contributions are of follow each other without gaps, in each epoch
// of blocks, and end with it; each is of the samples that the partitions train in them.
TEST(JobPlan, FragmentsTakeTurnsAndTheirSpansAreTheEpoch) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (int fragment = 0; fragment < s.fragments; ++fragment) {
      const Chunk chunk{.fragment = fragment};
      int64_t next = 0, steps[2] = {}, took_part = 0, rounds = 0;
      std::vector<int64_t> samples(s.partitions);
      for (int64_t r = 0; r < plan.rounds(); ++r) {
        const RoundPlan round = plan.Round(r);
        for (int p = 0; p < s.partitions; ++p) samples[p] += plan.PartitionSamples(round, p).size();
        const RoundPlan before = r > 0 ? plan.Round(r - 1) : RoundPlan();
        const bool follows = before.local_steps && round.local_steps && before.epoch == round.epoch;
        ASSERT_EQ(round.goes_on, follows && s.own_weights);
        rounds = follows ? rounds + 1 : 0;
        const bool last = round.ends_epoch || !round.local_steps;
        ASSERT_EQ(JobPlan::TakesPart(round, chunk), last || rounds % s.fragments == fragment);
        ASSERT_TRUE(JobPlan::TakesPart(round, {.segment = Segment::kStatistics}));
        ASSERT_FALSE(JobPlan::TakesPart(round, {.factors = {.rate = 0}}));
        if (!JobPlan::TakesPart(round, chunk)) {
          ASSERT_EQ(plan.NumbersSince(r + 1, chunk), took_part);
          continue;
        }
        took_part = r + 1;
        ASSERT_EQ(plan.NumbersSince(r + 1, chunk), took_part);
        const RoundPlan span = plan.SpanOf(round, chunk);
        ASSERT_EQ(span.first_sample, next);
        ASSERT_EQ(span.samples.size(), plan.SamplesAt(r + 1) - next);
        ASSERT_EQ(span.samples.end, round.samples.end);
        ASSERT_EQ(span.step, ++steps[round.local_steps]);
        for (int p = 0; p < s.partitions; ++p) {
          ASSERT_EQ(plan.SpanSamples(round, chunk, p), std::exchange(samples[p], 0));
        }
        next = plan.SamplesAt(r + 1);
        for (const int64_t other : {int64_t{-1}, r, r + 1, plan.rounds() + 1}) {
          const bool same = other == r + 1;
          ASSERT_EQ(plan.SameNumbers(r + 1, other, chunk), same);
          ASSERT_EQ(plan.SameNumbers(other, r + 1, chunk), same);
        }
        ASSERT_EQ(plan.NumbersSince(r + 1, {.factors = {.rate = 0}}), 0);
      }
      ASSERT_EQ(next, plan.samples());
    }
  });
}

TEST(JobPlan, EpochsAreEvaluatedAtTheirEndAsOftenAsAskedAndAlwaysTheLast) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    ASSERT_EQ(plan.EvaluatedEpoch(0), -1);
    ASSERT_EQ(plan.EvaluatedEpoch(-1), -1);
    ASSERT_EQ(plan.EvaluatedEpoch(plan.rounds() + 1), -1);
    std::vector<int> evaluated;
    for (int64_t v = 1; v <= plan.rounds(); ++v) {
      const int epoch = plan.EvaluatedEpoch(v);
      if (epoch < 0) continue;
      ASSERT_TRUE(plan.Round(v - 1).ends_epoch);
      ASSERT_EQ(plan.Round(v - 1).epoch, epoch);
      evaluated.push_back(epoch);
    }
    std::vector<int> expected;
    for (int e = 0; e < s.epochs; ++e) {
      const bool due = s.evaluate_every_epochs > 0 && (e + 1) % s.evaluate_every_epochs == 0;
      if (due || e == s.epochs - 1) expected.push_back(e);
    }
    ASSERT_EQ(evaluated, expected);
  });
}

TEST(JobPlan, PartitionsShareTheValidationSet) {
  ForManyPlans([](const PlanSettings& s, const JobPlan& plan) {
    for (const int64_t samples : {0, 1, 7, 100}) {
      int64_t next = 0;
      for (int p = 0; p < s.partitions; ++p) {
        const Range slice = plan.EvaluationSamples(samples, p);
        ASSERT_EQ(slice.begin, next);
        ASSERT_GE(slice.size(), 0);
        next = slice.end;
      }
      ASSERT_EQ(next, samples);
    }
  });
}

TEST(JobPlan, AJobOfManyEpochsCostsNothing) {
  PlanSettings s;
  s.train_samples = int64_t{1} << 40;
  s.epochs = 1'000'000;
  s.warmup_samples = 12345;
  const Result<JobPlan> plan = JobPlan::Make(s);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->rounds(), s.train_samples * s.epochs);  // one sample a round
  const RoundPlan last = plan->Round(plan->rounds() - 1);
  EXPECT_EQ(last.epoch, s.epochs - 1);
  EXPECT_EQ(last.samples, (Range{s.train_samples - 1, s.train_samples}));
}

TEST(JobPlan, AJobWithoutSamplesOrOfTooManyIsRefused) {
  const auto refusal = [](auto change) {
    PlanSettings s;
    s.train_samples = 100;
    change(&s);
    const Result<JobPlan> plan = JobPlan::Make(s);
    EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
    return plan.status().message();
  };
  using testing::HasSubstr;
  for (const int bad : {0, -1}) {
    EXPECT_THAT(refusal([&](PlanSettings* s) { s->train_samples = bad; }), HasSubstr("samples"));
  }
  EXPECT_THAT(refusal([](PlanSettings* s) { s->train_samples = INT64_MAX; }), HasSubstr("long"));
  EXPECT_THAT(refusal([](PlanSettings* s) { s->epochs = INT32_MAX; }), HasSubstr("long"));
  EXPECT_THAT(refusal([](PlanSettings* s) { s->minibatch = s->block = INT32_MAX; }),
              HasSubstr("long"));
}

TEST(JobPlanDeathTest, SettingsOutOfRangeAreABugOfTheCaller) {
  const auto make = [](auto change) {
    PlanSettings s;
    s.train_samples = 100;
    change(&s);
    (void)JobPlan::Make(s);
  };
  for (const int bad : {0, -1}) {
    EXPECT_DEATH(make([&](PlanSettings* s) { s->partitions = bad; }), "partitions");
    EXPECT_DEATH(make([&](PlanSettings* s) { s->minibatch = bad; }), "minibatch");
    EXPECT_DEATH(make([&](PlanSettings* s) { s->block = bad; }), "block");
    EXPECT_DEATH(make([&](PlanSettings* s) { s->epochs = bad; }), "epochs");
    EXPECT_DEATH(make([&](PlanSettings* s) { s->overlap = s->block - bad; }), "overlap");
  }
  for (const int bad : {0, kMostFragments + 1}) {
    EXPECT_DEATH(make([&](PlanSettings* s) { s->fragments = bad; }), "fragments");
  }
}

}  // namespace
}  // namespace kumo
