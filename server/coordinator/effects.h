// Effects: the consequences for the whole job that one part of the coordinator returns to it.
//
// A value, owned by the call that returns it.
#pragma once

#include <string>

#include "common/base/status.h"

namespace kumo {

// Applied by the Coordinator, in this order.
struct Effects {
  enum class Save { kNothing, kWhole, kPartial };

  Status failure = OkStatus();  // the job fails, unless ok
  std::string go_back = "";     // why the job goes back to a checkpoint; "": it does not
  // The shards save the versions that they hold now. kPartial: even if states that partitions carry
  // are missing.
  Save save = Save::kNothing;
  bool orders = false;  // members are sent their orders
  // A worker that was given up, or left with partitions, and why; "": none.
  std::string lost_worker = "";
};

}  // namespace kumo
