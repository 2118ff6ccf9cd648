// Schedules of the learning rate and of momentum: pure functions of the training position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/choice.h"
#include "common/base/status.h"

namespace kumo {

enum class ScheduleType { kConstant, kStep, kMultistep, kStages, kPoly, kCosine };
inline constexpr Choice<ScheduleType> kScheduleTypes[] = {
    {ScheduleType::kConstant, "constant", "the base rate"},
    {ScheduleType::kStep, "step", "times gamma after each schedule.step"},
    {ScheduleType::kMultistep, "multistep", "times gamma at each milestone"},
    {ScheduleType::kStages, "stages", "a rate for each stage"},
    {ScheduleType::kPoly, "poly", "polynomial decay"},
    {ScheduleType::kCosine, "cosine", "cosine decay"},
};
constexpr std::span<const Choice<ScheduleType>> ChoicesOf(ScheduleType) { return kScheduleTypes; }

enum class RatePer { kMinibatch, kSample };
inline constexpr Choice<RatePer> kRatePers[] = {
    {RatePer::kMinibatch, "minibatch", "of a minibatch's mean gradient"},
    {RatePer::kSample, "sample",
     "multiplied by the samples of the step, as CNTK's learningRatesPerSample"},
};
constexpr std::span<const Choice<RatePer>> ChoicesOf(RatePer) { return kRatePers; }

enum class PositionUnit { kEpoch, kSample };
inline constexpr Choice<PositionUnit> kPositionUnits[] = {{PositionUnit::kEpoch, "epoch"},
                                                          {PositionUnit::kSample, "sample"}};
constexpr std::span<const Choice<PositionUnit>> ChoicesOf(PositionUnit) { return kPositionUnits; }

// Positions are counted in `unit` from the job's start. During the warm-up the rate is
// learning_rate (rates[0]) * position / warmup for every type. After it:
//   constant   learning_rate
//   step       learning_rate * gamma^floor(position / step): a stage begins with the first
//              sample at its begin or after it, anywhere in an epoch
//   multistep  learning_rate * gamma^(milestones that are <= position)
//   stages     rates[milestones that are <= position]; learning_rate is not used
//   poly       final_rate + (learning_rate - final_rate) * (1 - p)^power
//   cosine     final_rate + (learning_rate - final_rate) * (1 + cos(pi p)) / 2
// with p = (position - warmup) / (end - warmup), at most 1, and `end` the job's end.
//
// Rates are those of a mean gradient or, per sample, are multiplied by the number of samples of the
// mean (CNTK's learningRatesPerSample). A time constant tc makes momentum
// exp(-samples of the step / tc), 0 for tc = 0: the time for which a gradient counts then does not
// depend on the minibatch (CNTK's momentumAsTimeConstant).
struct ScheduleSettings {
  ScheduleType type = ScheduleType::kConstant;
  double learning_rate = 0.01;  // > 0: the base rate
  RatePer per = RatePer::kMinibatch;
  PositionUnit unit = PositionUnit::kEpoch;  // of the positions below
  double step = 10;                          // step: > 0, length of a stage
  std::vector<double> milestones;            // multistep, stages: >= 0, strictly ascending
  std::vector<double> rates;                 // stages: > 0, one more than milestones
  std::vector<double> time_constants;        // >= 0, samples; one more than milestones, or none
  double gamma = 0.1;                        // step, multistep: > 0, factor per stage
  double power = 1.0;                        // poly: > 0
  double final_rate = 0.0;                   // poly, cosine: >= 0, the rate at the end
  double warmup = 0.0;  // >= 0, linear from 0 to the base rate over this many units
};

// A setting that contradicts others: its key, and the rest of the sentence, " = 3,2: must ascend".
struct SettingProblem {
  std::string key;
  std::string what;
};

// Contradictions of a schedule: stages without values, milestones that do not ascend strictly, and
// a warm-up as long as the job. section: of the settings, in keys. samples_per_epoch: nullopt if
// they are not known yet. Requires settings in the ranges of the option table.
std::vector<SettingProblem> ProblemsOf(const ScheduleSettings& settings, const std::string& section,
                                       int epochs, std::optional<int64_t> samples_per_epoch);

// A value; thread-safe.
class Schedule {
 public:
  // Requires settings in the ranges of the option table, and samples_per_epoch and epochs >= 1.
  // InvalidArgument for the first of ProblemsOf: settings of a checkpoint are not compared with
  // each other where they are read.
  static Result<Schedule> Make(const ScheduleSettings& settings, int64_t samples_per_epoch,
                               int epochs, const std::string& section = "schedule");
  // The rate for the mean gradient of `step_samples` samples, after `samples` samples of the whole
  // job.
  float RateAt(int64_t samples, int64_t step_samples) const;
  // The momentum of that step; none if the optimiser's own holds.
  std::optional<float> MomentumAt(int64_t samples, int64_t step_samples) const;

 private:
  double PositionOf(int64_t samples) const {
    return static_cast<double>(samples) / samples_per_unit_;
  }
  size_t MilestonesPassed(double position) const;
  // The rate at the end of the warm-up.
  double BaseRate() const {
    return settings_.type == ScheduleType::kStages ? settings_.rates[0] : settings_.learning_rate;
  }
  double RateAtPosition(double position) const;

  ScheduleSettings settings_;
  double samples_per_unit_ = 1;
  double end_ = 1;  // in settings_.unit
};

}  // namespace kumo
