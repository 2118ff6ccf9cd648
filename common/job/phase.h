// Phase of a job, with the words of JobStatus.phase.
#pragma once

#include <span>

#include "common/base/choice.h"

namespace kumo {

enum class JobPhase { kWaiting, kTraining, kFinished, kFailed };
inline constexpr Choice<JobPhase> kPhases[] = {
    {JobPhase::kWaiting, "waiting"},
    {JobPhase::kTraining, "training"},
    {JobPhase::kFinished, "finished"},
    {JobPhase::kFailed, "failed"},
};
constexpr std::span<const Choice<JobPhase>> ChoicesOf(JobPhase) { return kPhases; }

constexpr bool IsOver(JobPhase phase) {
  return phase == JobPhase::kFinished || phase == JobPhase::kFailed;
}

}  // namespace kumo
