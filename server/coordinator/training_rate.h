// How fast a job trains now, from the ends of its rounds: what the time that is left is worked out
// from.
//
// Rounds of one kind are alike (those of the warm-up, and those after it), so a rate is of one kind
// only: it is forgotten when another begins, and known again with the first round of that. What is
// longer ago than about a minute counts little; a round that is late counts as it goes.
//
// Owned by TrainingProgress; one thread.
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "common/job/job_plan.h"

namespace kumo {

class TrainingRate {
 public:
  // Whether rounds of the two take the same time for a sample.
  static bool AreAlike(const RoundPlan& a, const RoundPlan& b);

  void OnClosed(const RoundPlan& round, TimeUs now);
  // The job goes on from elsewhere, or after a pause.
  void Forget() { *this = TrainingRate(); }

  // None before a round has closed whose beginning was seen.
  std::optional<double> SamplesPerSecond(TimeUs now) const;
  // The same where the job goes on with rounds like `round`; else none.
  std::optional<double> SamplesPerSecondOf(const RoundPlan& round, TimeUs now) const;

 private:
  std::optional<RoundPlan> last_;  // that has closed
  TimeUs last_at_ = 0;
  // Of the rounds that count, with weights.
  double samples_ = 0;
  double seconds_ = 0;
};

}  // namespace kumo
