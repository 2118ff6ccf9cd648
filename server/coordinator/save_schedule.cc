#include "server/coordinator/save_schedule.h"

namespace kumo {

bool SaveSchedule::IsDue(const JobPlan& plan, int64_t version, TimeUs now) const {
  const RoundPlan last = plan.Round(version - 1);
  const bool by_epochs =
      options_.every_epochs > 0 && last.ends_epoch && (last.epoch + 1) % options_.every_epochs == 0;
  // It is not known yet which one will be the best.
  const bool may_be_best = options_.best != "none" && plan.EvaluatedEpoch(version) >= 0;
  const bool by_rounds = options_.every_rounds > 0 && version % options_.every_rounds == 0;
  const bool by_time = options_.every_minutes > 0 &&
                       static_cast<double>(now - began_at_) >= options_.every_minutes * 60e6;
  return by_rounds || by_epochs || may_be_best || by_time;
}

}  // namespace kumo
