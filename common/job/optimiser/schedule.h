// Learning-rate schedules: a pure function of the training position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace kumo {

// Positions are counted in `unit` from the job's start. During the warm-up the rate is
// learning_rate * position / warmup, whatever the type. After it:
//   constant   learning_rate
//   step       learning_rate * gamma^floor(position / step), so that a stage begins with the first
//              sample that lies at its begin or after it, wherever in an epoch that is
//   multistep  learning_rate * gamma^(milestones that are <= position)
//   poly       final_rate + (learning_rate - final_rate) * (1 - p)^power
//   cosine     final_rate + (learning_rate - final_rate) * (1 + cos(pi p)) / 2
// with p = (position - warmup) / (end - warmup), at most 1, and `end` the job's end.
struct ScheduleSettings {
  std::string type = "constant";   // constant, step, multistep, poly, cosine
  double learning_rate = 0.01;     // > 0: the base rate, of a mean gradient
  std::string unit = "epoch";      // what positions below count: epoch or sample
  double step = 10;                // step: > 0, length of a stage
  std::vector<double> milestones;  // multistep: >= 0, growing
  double gamma = 0.1;              // step, multistep: > 0, factor per stage
  double power = 1.0;              // poly: > 0
  double final_rate = 0.0;         // poly, cosine: >= 0, the rate at the end
  double warmup = 0.0;             // >= 0, linear from 0 to the base rate over this many units
};

// A value; thread-safe.
class Schedule {
 public:
  // InvalidArgument names the setting that is wrong. Requires samples_per_epoch and epochs >= 1.
  static Result<Schedule> Make(const ScheduleSettings& settings, int64_t samples_per_epoch,
                               int epochs);
  // The rate for a minibatch that starts after `samples` samples of the whole job.
  float RateAt(int64_t samples) const;

 private:
  double RateAtPosition(double position) const;

  ScheduleSettings settings_;
  double samples_per_unit_ = 1;
  double end_ = 1;  // in settings_.unit
};

}  // namespace kumo
