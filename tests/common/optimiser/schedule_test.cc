#include "common/optimiser/schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr int64_t kSamples = 1000;  // of an epoch
constexpr int kEpochs = 20;

ScheduleSettings Type(ScheduleType type) {
  ScheduleSettings settings;
  settings.type = type;
  settings.learning_rate = 0.1;
  return settings;
}

float RateAtEpoch(const ScheduleSettings& settings, double epoch) {
  const auto schedule = Schedule::Make(settings, kSamples, kEpochs);
  return schedule.value().RateAt(static_cast<int64_t>(epoch * kSamples), 64);
}

TEST(Schedule, ConstantStaysAtTheBaseRate) {
  for (const double epoch : {0.0, 0.5, 19.999, 30.0}) {
    EXPECT_FLOAT_EQ(RateAtEpoch(Type(ScheduleType::kConstant), epoch), 0.1f);
  }
}

TEST(Schedule, StepMultipliesAtEachStagesFirstSample) {
  ScheduleSettings settings = Type(ScheduleType::kStep);
  settings.step = 5;
  settings.gamma = 0.5;
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 4.999), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 5), 0.05f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 15), 0.0125f);
}

TEST(Schedule, MultistepMultipliesAtEachMilestone) {
  ScheduleSettings settings = Type(ScheduleType::kMultistep);
  settings.milestones = {3, 10.5};
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 2.999), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 3), 0.01f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10.499), 0.01f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10.5), 0.001f);
}

TEST(Schedule, PolyFallsToTheFinalRate) {
  ScheduleSettings settings = Type(ScheduleType::kPoly);
  settings.power = 2;
  settings.final_rate = 0.02;
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10), 0.04f);  // .02 + .08 / 4
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 20), 0.02f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 25), 0.02f);
}

TEST(Schedule, CosineFallsHalfWayInTheMiddle) {
  ScheduleSettings settings = Type(ScheduleType::kCosine);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10), 0.05f);
  EXPECT_NEAR(RateAtEpoch(settings, 20), 0.0f, 1e-9f);
}

TEST(Schedule, StagesHaveTheirOwnRates) {
  ScheduleSettings settings = Type(ScheduleType::kStages);
  settings.milestones = {3, 10.5};
  settings.rates = {0.3, 0.02, 0.5};
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.3f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 2.999), 0.3f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 3), 0.02f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10.5), 0.5f);
  settings.warmup = 2;
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 1), 0.15f) << "of the first stage's";
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 2), 0.3f);
}

// Whatever the minibatch, the sum of gradients is multiplied by the same rate.
TEST(Schedule, ARatePerSampleIsTimesTheSamplesOfTheStep) {
  ScheduleSettings settings = Type(ScheduleType::kConstant);
  settings.learning_rate = 0.001;
  settings.per = RatePer::kSample;
  const Schedule schedule = Schedule::Make(settings, kSamples, kEpochs).value();
  for (const int64_t step : {1, 17, 64}) {
    EXPECT_FLOAT_EQ(schedule.RateAt(500, step), 0.001f * static_cast<float>(step));
  }
}

// A gradient's share of the momentum after tc samples is 1/e, in however many steps these were.
TEST(Schedule, ATimeConstantIsTheSamplesAfterWhichAGradientCountsAnEth) {
  ScheduleSettings settings = Type(ScheduleType::kConstant);
  EXPECT_FALSE(Schedule::Make(settings, kSamples, kEpochs)->MomentumAt(0, 64));
  settings.milestones = {1, 2};
  settings.time_constants = {0, 600, 1200};
  const Schedule schedule = Schedule::Make(settings, kSamples, kEpochs).value();
  EXPECT_EQ(schedule.MomentumAt(999, 64), 0.0f);
  for (const int64_t step : {1, 20, 300, 600}) {
    const auto steps = static_cast<float>(600) / static_cast<float>(step);
    EXPECT_NEAR(std::pow(schedule.MomentumAt(1000, step).value(), steps), std::exp(-1.0f), 1e-4f);
  }
  EXPECT_FLOAT_EQ(schedule.MomentumAt(2000, 64).value(), 0.9480641f);  // exp(-64/1200)
}

TEST(Schedule, EachStageNeedsItsValues) {
  const auto refusal = [](const ScheduleSettings& settings) {
    const Status status = Schedule::Make(settings, kSamples, kEpochs).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  ScheduleSettings settings = Type(ScheduleType::kStages);
  settings.milestones = {3};
  settings.rates = {0.1};
  EXPECT_EQ(refusal(settings),
            "schedule.rates has 1 values: schedule.type = stages needs 2, one more than "
            "schedule.milestones has");
  settings.rates = {0.1, 0.2};
  settings.time_constants = {600};
  EXPECT_EQ(refusal(settings),
            "schedule.time_constants has 1 values: there must be 2, one more than "
            "schedule.milestones has");
}

TEST(Schedule, MilestonesAscendStrictly) {
  ScheduleSettings settings = Type(ScheduleType::kMultistep);
  for (const std::vector<double>& milestones : {std::vector<double>{3, 3}, {2, 10.5, 4}}) {
    settings.milestones = milestones;
    const Status status = Schedule::Make(settings, kSamples, kEpochs).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("must ascend"));
  }
  settings.milestones = {3, 4.5};
  EXPECT_TRUE(Schedule::Make(settings, kSamples, kEpochs).ok());
}

TEST(Schedule, EveryTypeWarmsUpLinearlyAndGoesOnWithoutAJump) {
  for (const ScheduleType type :
       {ScheduleType::kConstant, ScheduleType::kStep, ScheduleType::kMultistep, ScheduleType::kPoly,
        ScheduleType::kCosine}) {
    ScheduleSettings settings = Type(type);
    settings.milestones = {12};
    settings.warmup = 4;
    EXPECT_EQ(RateAtEpoch(settings, 0), 0.0f) << WordOf(type);
    EXPECT_FLOAT_EQ(RateAtEpoch(settings, 1), 0.025f) << WordOf(type);
    EXPECT_FLOAT_EQ(RateAtEpoch(settings, 4), 0.1f) << WordOf(type);
    EXPECT_NEAR(RateAtEpoch(settings, 3.999), RateAtEpoch(settings, 4.001), 1e-4f) << WordOf(type);
  }
}

TEST(Schedule, CountsSamplesWhereTheUnitIsASample) {
  for (const ScheduleType type :
       {ScheduleType::kConstant, ScheduleType::kStep, ScheduleType::kMultistep, ScheduleType::kPoly,
        ScheduleType::kCosine}) {
    ScheduleSettings epochs = Type(type);
    epochs.step = 3;
    epochs.milestones = {2, 7};
    epochs.warmup = 1;
    ScheduleSettings samples = epochs;
    samples.unit = PositionUnit::kSample;
    samples.step *= kSamples;
    for (double& m : samples.milestones) m *= kSamples;
    samples.warmup *= kSamples;
    for (double epoch = 0; epoch < 21; epoch += 0.25) {
      EXPECT_FLOAT_EQ(RateAtEpoch(epochs, epoch), RateAtEpoch(samples, epoch))
          << WordOf(type) << epoch;
    }
  }
}

// A number with some decimals, as it stands in an experiment file.
struct Decimal {
  int64_t digits;
  int decimals;
  int64_t power() const { return static_cast<int64_t>(std::pow(10, decimals)); }
  double value() const {  // what a parser makes of its text
    std::string text = std::to_string(digits);
    text.insert(0, std::max<size_t>(decimals + 1, text.size()) - text.size(), '0');
    return std::stod(text.insert(text.size() - decimals, "."));
  }
};

std::vector<Decimal> ManyLengths() {
  std::vector<Decimal> lengths = {{1, 1}, {5, 2}, {2, 1}, {11, 1}, {3, 0}, {7, 1}, {1, 3}};
  Rng rng(3, RngPurpose::kTest);
  for (int i = 0; i < 200; ++i) {
    const int decimals = static_cast<int>(rng.NextBelow(5));
    const Decimal any{1, decimals};
    lengths.push_back({1 + static_cast<int64_t>(rng.NextBelow(20 * any.power())), decimals});
  }
  return lengths;
}

TEST(Schedule, AStageOfATenthOfAnEpochEndsWithItsLastMinibatch) {
  ScheduleSettings settings = Type(ScheduleType::kStep);
  settings.learning_rate = 1;
  settings.step = 0.1;
  settings.gamma = 0.5;
  const Schedule schedule = Schedule::Make(settings, 640, 2).value();
  for (int round = 0; round < 20; ++round) {  // minibatches of 64 samples
    EXPECT_FLOAT_EQ(schedule.RateAt(64 * round, 64), std::pow(0.5f, static_cast<float>(round)));
    EXPECT_FLOAT_EQ(schedule.RateAt(64 * round + 63, 64),
                    std::pow(0.5f, static_cast<float>(round)));
  }
}

// Against exact arithmetic, at the samples around the ends of stages and milestones of any length.
TEST(Schedule, StagesMilestonesAndTheWarmUpEndAtTheSampleThatTheirDecimalsSay) {
  for (const int64_t epoch : {640, 1000, 1019, 60000, 1281167}) {
    for (const Decimal& length : ManyLengths()) {
      ScheduleSettings step = Type(ScheduleType::kStep);
      step.learning_rate = 1;
      step.gamma = 0.999;
      step.step = length.value();
      ScheduleSettings multistep = step;
      multistep.type = ScheduleType::kMultistep;
      multistep.milestones = {length.value()};
      ScheduleSettings warmup = step;
      warmup.type = ScheduleType::kConstant;
      warmup.warmup = length.value();
      const int epochs = 400;
      const Schedule stages = Schedule::Make(step, epoch, epochs).value();
      const Schedule milestone = Schedule::Make(multistep, epoch, epochs).value();
      const Schedule warm = Schedule::Make(warmup, epoch, epochs).value();
      for (int64_t k = 1; k <= 20; ++k) {
        const int64_t end = (k * length.digits * epoch + length.power() - 1) / length.power();
        for (int64_t samples = std::max<int64_t>(end - 2, 0); samples <= end + 2; ++samples) {
          const int64_t over = samples * length.power() / (length.digits * epoch);
          ASSERT_EQ(stages.RateAt(samples, 64),
                    static_cast<float>(std::pow(0.999, static_cast<double>(over))))
              << length.value() << " of " << epoch << " samples, after " << samples;
          ASSERT_EQ(milestone.RateAt(samples, 64), over > 0 ? 0.999f : 1.0f)
              << length.value() << " of " << epoch << " samples, after " << samples;
          ASSERT_TRUE(over == 0 || warm.RateAt(samples, 64) == 1.0f);
        }
      }
    }
  }
}

TEST(Schedule, AWarmUpAsLongAsTheJobIsRefused) {
  ScheduleSettings settings;
  settings.warmup = kEpochs;
  const Status status = Schedule::Make(settings, kSamples, kEpochs).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "schedule.warmup = 20: must be below job.epochs = 20");
  settings.unit = PositionUnit::kSample;
  EXPECT_TRUE(Schedule::Make(settings, kSamples, kEpochs).ok());
  settings.warmup = kSamples * kEpochs;
  EXPECT_EQ(Schedule::Make(settings, kSamples, kEpochs).status().message(),
            "schedule.warmup = 20000: must be below the job's length of 20000 samples");
}

}  // namespace
}  // namespace kumo
