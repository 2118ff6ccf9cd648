// Phase of a job, with the words of JobStatus.phase.
#pragma once

#include <span>

#include "common/base/choice.h"

namespace kumo {

enum class Phase { kWaiting, kTraining, kFinished, kFailed };
inline constexpr Choice<Phase> kPhases[] = {
    {Phase::kWaiting, "waiting"},
    {Phase::kTraining, "training"},
    {Phase::kFinished, "finished"},
    {Phase::kFailed, "failed"},
};
constexpr std::span<const Choice<Phase>> ChoicesOf(Phase) { return kPhases; }

constexpr bool IsOver(Phase phase) { return phase == Phase::kFinished || phase == Phase::kFailed; }

}  // namespace kumo
