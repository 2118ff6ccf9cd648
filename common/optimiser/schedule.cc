#include "common/optimiser/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "common/base/text.h"

namespace kumo {
namespace {

// " has 2 values: ...", unless there is one for each stage. wanted_by: "there must be".
void CheckStages(const std::string& section, const ScheduleSettings& settings, const char* setting,
                 const std::vector<double>& values, const std::string& wanted_by,
                 std::vector<SettingProblem>* problems) {
  const size_t stages = settings.milestones.size() + 1;
  if (values.size() == stages) return;
  problems->push_back({section + "." + setting, " has " + std::to_string(values.size()) +
                                                    " values: " + wanted_by + " " +
                                                    std::to_string(stages) + ", one more than " +
                                                    section + ".milestones has"});
}

// floor(position / stage), as if both were the decimal fractions that they stand for. They have
// been rounded to doubles, and so is the quotient: 0.3 / 0.1 comes out just below 3.
double StagesBefore(double position, double stage) {
  constexpr double kThreeRoundings = 4 * std::numeric_limits<double>::epsilon();
  const double quotient = position / stage;
  const double whole = std::round(quotient);
  return std::abs(quotient - whole) <= kThreeRoundings * whole ? whole : std::floor(quotient);
}

}  // namespace

std::vector<SettingProblem> ProblemsOf(const ScheduleSettings& settings, const std::string& section,
                                       int epochs, std::optional<int64_t> samples_per_epoch) {
  std::vector<SettingProblem> problems;
  if (!settings.time_constants.empty()) {
    CheckStages(section, settings, "time_constants", settings.time_constants, "there must be",
                &problems);
  }
  if (settings.type == ScheduleType::kStages) {
    CheckStages(section, settings, "rates", settings.rates, section + ".type = stages needs",
                &problems);
  }
  if (std::ranges::adjacent_find(settings.milestones, std::greater_equal<>()) !=
      settings.milestones.end()) {
    std::vector<std::string> milestones;
    for (const double one : settings.milestones) milestones.push_back(ShortestText(one));
    problems.push_back({section + ".milestones", " = " + Join(milestones) + ": must ascend"});
  }
  const std::string warmup = " = " + ShortestText(settings.warmup) + ": must be below ";
  if (settings.unit == PositionUnit::kEpoch && settings.warmup >= epochs) {
    problems.push_back({section + ".warmup", warmup + "job.epochs = " + std::to_string(epochs)});
  }
  if (settings.unit == PositionUnit::kSample && samples_per_epoch) {
    const double samples = static_cast<double>(*samples_per_epoch) * epochs;
    if (settings.warmup >= samples) {
      problems.push_back({section + ".warmup",
                          warmup + "the job's length of " + ShortestText(samples) + " samples"});
    }
  }
  return problems;
}

Result<Schedule> Schedule::Make(const ScheduleSettings& settings, int64_t samples_per_epoch,
                                int epochs, const std::string& section) {
  CHECK_GE(samples_per_epoch, 1);
  CHECK_GE(epochs, 1);
  const auto problems = ProblemsOf(settings, section, epochs, samples_per_epoch);
  if (!problems.empty()) return InvalidArgument(problems.front().key + problems.front().what);

  Schedule schedule;
  schedule.settings_ = settings;
  const double samples = static_cast<double>(samples_per_epoch) * epochs;
  schedule.samples_per_unit_ =
      settings.unit == PositionUnit::kEpoch ? static_cast<double>(samples_per_epoch) : 1.0;
  schedule.end_ = samples / schedule.samples_per_unit_;
  return schedule;
}

float Schedule::RateAt(int64_t samples, int64_t step_samples) const {
  const double rate = RateAtPosition(PositionOf(samples));
  const bool per_sample = settings_.per == RatePer::kSample;
  return static_cast<float>(per_sample ? rate * static_cast<double>(step_samples) : rate);
}

std::optional<float> Schedule::MomentumAt(int64_t samples, int64_t step_samples) const {
  if (settings_.time_constants.empty()) return std::nullopt;
  const double constant = settings_.time_constants[MilestonesPassed(PositionOf(samples))];
  if (constant == 0.0) return 0.0f;
  return static_cast<float>(std::exp(-static_cast<double>(step_samples) / constant));
}

size_t Schedule::MilestonesPassed(double position) const {
  const std::vector<double>& milestones = settings_.milestones;
  return std::ranges::count_if(milestones, [&](double m) { return m <= position; });
}

double Schedule::RateAtPosition(double position) const {
  const ScheduleSettings& s = settings_;
  if (position < s.warmup) return BaseRate() * position / s.warmup;
  const double progress = std::min((position - s.warmup) / (end_ - s.warmup), 1.0);
  const double above = s.learning_rate - s.final_rate;
  switch (s.type) {
    case ScheduleType::kConstant:
      break;
    case ScheduleType::kStep:
      return s.learning_rate * std::pow(s.gamma, StagesBefore(position, s.step));
    case ScheduleType::kMultistep:
      return s.learning_rate * std::pow(s.gamma, static_cast<double>(MilestonesPassed(position)));
    case ScheduleType::kStages:
      return s.rates[MilestonesPassed(position)];
    case ScheduleType::kPoly:
      return s.final_rate + above * std::pow(1.0 - progress, s.power);
    case ScheduleType::kCosine:
      return s.final_rate + above * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return s.learning_rate;
}

}  // namespace kumo
