// The phases of a job, and what follows for the whole of it from what one part of its coordinator
// was told.
#pragma once

#include <string>

#include "common/base/status.h"

namespace kumo {

enum class Phase { kWaiting, kTraining, kFinished, kFailed };

constexpr bool IsOver(Phase phase) { return phase == Phase::kFinished || phase == Phase::kFailed; }

// A part returns it; the Coordinator sees to it, in this order.
struct Effects {
  enum class Save { kNothing, kWhole, kPartial };

  Status failure = OkStatus();  // the job fails, unless ok
  std::string go_back = "";     // why the job has to go back; "": it has not
  // What the shards hold now is to be saved; kPartial: even where what partitions carry is not
  // there.
  Save save = Save::kNothing;
  bool orders = false;  // members are to be told their orders
};

}  // namespace kumo
