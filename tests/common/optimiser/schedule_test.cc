#include "common/optimiser/schedule.h"

#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr int64_t kSamples = 1000;  // of an epoch
constexpr int kEpochs = 20;

ScheduleSettings Type(const char* type) {
  ScheduleSettings settings;
  settings.type = type;
  settings.learning_rate = 0.1;
  return settings;
}

float RateAtEpoch(const ScheduleSettings& settings, double epoch) {
  const auto schedule = Schedule::Make(settings, kSamples, kEpochs);
  return schedule.value().RateAt(static_cast<int64_t>(epoch * kSamples));
}

TEST(Schedule, ConstantStaysAtTheBaseRate) {
  for (const double epoch : {0.0, 0.5, 19.999, 30.0}) {
    EXPECT_FLOAT_EQ(RateAtEpoch(Type("constant"), epoch), 0.1f);
  }
}

TEST(Schedule, StepMultipliesAtEachStagesFirstSample) {
  ScheduleSettings settings = Type("step");
  settings.step = 5;
  settings.gamma = 0.5;
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 4.999), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 5), 0.05f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 15), 0.0125f);
}

TEST(Schedule, MultistepMultipliesAtEachMilestone) {
  ScheduleSettings settings = Type("multistep");
  settings.milestones = {3, 10.5};
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 2.999), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 3), 0.01f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10.499), 0.01f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10.5), 0.001f);
}

TEST(Schedule, PolyFallsToTheFinalRate) {
  ScheduleSettings settings = Type("poly");
  settings.power = 2;
  settings.final_rate = 0.02;
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10), 0.04f);  // .02 + .08 / 4
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 20), 0.02f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 25), 0.02f);
}

TEST(Schedule, CosineFallsHalfWayInTheMiddle) {
  ScheduleSettings settings = Type("cosine");
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 0), 0.1f);
  EXPECT_FLOAT_EQ(RateAtEpoch(settings, 10), 0.05f);
  EXPECT_NEAR(RateAtEpoch(settings, 20), 0.0f, 1e-9f);
}

TEST(Schedule, EveryTypeWarmsUpLinearlyAndGoesOnWithoutAJump) {
  for (const char* type : {"constant", "step", "multistep", "poly", "cosine"}) {
    ScheduleSettings settings = Type(type);
    settings.milestones = {12};
    settings.warmup = 4;
    EXPECT_EQ(RateAtEpoch(settings, 0), 0.0f) << type;
    EXPECT_FLOAT_EQ(RateAtEpoch(settings, 1), 0.025f) << type;
    EXPECT_FLOAT_EQ(RateAtEpoch(settings, 4), 0.1f) << type;
    EXPECT_NEAR(RateAtEpoch(settings, 3.999), RateAtEpoch(settings, 4.001), 1e-4f) << type;
  }
}

TEST(Schedule, CountsSamplesWhereTheUnitIsASample) {
  for (const char* type : {"constant", "step", "multistep", "poly", "cosine"}) {
    ScheduleSettings epochs = Type(type);
    epochs.step = 3;
    epochs.milestones = {2, 7};
    epochs.warmup = 1;
    ScheduleSettings samples = epochs;
    samples.unit = "sample";
    samples.step *= kSamples;
    for (double& m : samples.milestones) m *= kSamples;
    samples.warmup *= kSamples;
    for (double epoch = 0; epoch < 21; epoch += 0.25) {
      EXPECT_FLOAT_EQ(RateAtEpoch(epochs, epoch), RateAtEpoch(samples, epoch)) << type << epoch;
    }
  }
}

void ExpectRefused(const ScheduleSettings& settings, const std::string& name) {
  const Status status = Schedule::Make(settings, kSamples, kEpochs).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
  EXPECT_THAT(status.message(), testing::HasSubstr("schedule." + name));
}

TEST(Schedule, AValueOutOfRangeIsRefusedByName) {
  const std::pair<const char*, double ScheduleSettings::*> fields[] = {
      {"learning_rate", &ScheduleSettings::learning_rate},
      {"step", &ScheduleSettings::step},
      {"gamma", &ScheduleSettings::gamma},
      {"power", &ScheduleSettings::power},
      {"final_rate", &ScheduleSettings::final_rate},
      {"warmup", &ScheduleSettings::warmup}};
  for (const auto& [name, field] : fields) {
    for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
      ScheduleSettings settings;
      settings.*field = bad;
      ExpectRefused(settings, name);
    }
  }
  ScheduleSettings settings;
  settings.milestones = {3, 3};
  ExpectRefused(settings, "milestones");
  settings.milestones = {-1};
  ExpectRefused(settings, "milestones");
  settings = {};
  settings.warmup = kEpochs;
  ExpectRefused(settings, "warmup");
  ExpectRefused(Type("exponential"), "type");
  settings = {};
  settings.unit = "round";
  ExpectRefused(settings, "unit");
}

}  // namespace
}  // namespace kumo
