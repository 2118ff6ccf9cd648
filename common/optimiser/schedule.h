// Learning-rate schedules, and momentum's: pure functions of the training position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// Positions are counted in `unit` from the job's start. During the warm-up the rate is
// learning_rate (rates[0]) * position / warmup, whatever the type. After it:
//   constant   learning_rate
//   step       learning_rate * gamma^floor(position / step), so that a stage begins with the first
//              sample that lies at its begin or after it, wherever in an epoch that is
//   multistep  learning_rate * gamma^(milestones that are <= position)
//   stages     rates[milestones that are <= position]; learning_rate is not used
//   poly       final_rate + (learning_rate - final_rate) * (1 - p)^power
//   cosine     final_rate + (learning_rate - final_rate) * (1 + cos(pi p)) / 2
// with p = (position - warmup) / (end - warmup), at most 1, and `end` the job's end.
//
// All of these are rates of a mean gradient, or, per sample, such times the samples that it is the
// mean of (CNTK's learningRatesPerSample). A time constant tc makes momentum
// exp(-samples of the step / tc), 0 for tc = 0: how long a gradient counts then does not depend on
// the minibatch (CNTK's momentumAsTimeConstant).
struct ScheduleSettings {
  std::string type = "constant";       // constant, step, multistep, stages, poly, cosine
  double learning_rate = 0.01;         // > 0: the base rate
  std::string per = "minibatch";       // minibatch: of a mean gradient; or sample
  std::string unit = "epoch";          // what positions below count: epoch or sample
  double step = 10;                    // step: > 0, length of a stage
  std::vector<double> milestones;      // multistep, stages: >= 0, growing
  std::vector<double> rates;           // stages: > 0, one more than milestones
  std::vector<double> time_constants;  // >= 0, samples; one more than milestones, or none
  double gamma = 0.1;                  // step, multistep: > 0, factor per stage
  double power = 1.0;                  // poly: > 0
  double final_rate = 0.0;             // poly, cosine: >= 0, the rate at the end
  double warmup = 0.0;                 // >= 0, linear from 0 to the base rate over this many units
};

// A value; thread-safe.
class Schedule {
 public:
  // InvalidArgument names the setting that is wrong. Requires samples_per_epoch and epochs >= 1.
  static Result<Schedule> Make(const ScheduleSettings& settings, int64_t samples_per_epoch,
                               int epochs);
  // The rate for the mean gradient of `step_samples` samples, the first of which comes after
  // `samples` samples of the whole job.
  float RateAt(int64_t samples, int64_t step_samples) const;
  // The momentum of that step; none where the optimiser's own holds.
  std::optional<float> MomentumAt(int64_t samples, int64_t step_samples) const;

 private:
  double PositionOf(int64_t samples) const {
    return static_cast<double>(samples) / samples_per_unit_;
  }
  size_t MilestonesPassed(double position) const;
  // What a warm-up rises to.
  double BaseRate() const {
    return settings_.type == "stages" ? settings_.rates[0] : settings_.learning_rate;
  }
  double RateAtPosition(double position) const;

  ScheduleSettings settings_;
  double samples_per_unit_ = 1;
  double end_ = 1;  // in settings_.unit
};

}  // namespace kumo
