#include "common/optimiser/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <sstream>

namespace kumo {
namespace {

// The option table checks settings one by one, and those of a checkpoint are not checked against
// each other.
Status CheckMilestones(const std::string& section, const std::vector<double>& milestones) {
  const auto at = std::ranges::adjacent_find(milestones, std::greater_equal<>());
  if (at == milestones.end()) return OkStatus();
  std::ostringstream message;
  message << section << ".milestones has " << at[1] << " after " << at[0]
          << ": they must ascend strictly";
  return InvalidArgument(message.str());
}

Status CheckStages(const std::string& section, const ScheduleSettings& settings) {
  const size_t stages = settings.milestones.size() + 1;
  const auto check_count = [&](const char* setting, size_t count) {
    if (count == stages) return OkStatus();
    return InvalidArgument(section + "." + setting + " has " + std::to_string(count) +
                           " values: " + std::to_string(stages - 1) + " " + section +
                           ".milestones make " + std::to_string(stages) + " stages");
  };
  if (settings.type == ScheduleType::kStages) {
    KUMO_RETURN_IF_ERROR(check_count("rates", settings.rates.size()));
  }
  if (settings.time_constants.empty()) return OkStatus();
  return check_count("time_constants", settings.time_constants.size());
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

Result<Schedule> Schedule::Make(const ScheduleSettings& settings, int64_t samples_per_epoch,
                                int epochs, const std::string& section) {
  CHECK_GE(samples_per_epoch, 1);
  CHECK_GE(epochs, 1);
  KUMO_RETURN_IF_ERROR(CheckMilestones(section, settings.milestones));
  KUMO_RETURN_IF_ERROR(CheckStages(section, settings));

  Schedule schedule;
  schedule.settings_ = settings;
  const double samples = static_cast<double>(samples_per_epoch) * epochs;
  schedule.samples_per_unit_ =
      settings.unit == PositionUnit::kEpoch ? static_cast<double>(samples_per_epoch) : 1.0;
  schedule.end_ = samples / schedule.samples_per_unit_;
  if (settings.warmup >= schedule.end_ && settings.warmup > 0.0) {
    std::ostringstream message;
    message << section << ".warmup = " << settings.warmup
            << " is out of range: it must be below the "
            << "job's length of " << schedule.end_ << " " << WordOf(settings.unit) << "s";
    return InvalidArgument(message.str());
  }
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
