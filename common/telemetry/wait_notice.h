// Says whom a process waits for: soon, when that changes, and again while it lasts, ever more
// rarely.
//
// Time is handed in; one thread.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"

namespace kumo {

class WaitNotice {
 public:
  // What is waited for now, "" for nothing; called often. A line to show when there is something
  // new to say: "waits for server 1 at tcp://beta:7700", later "(10 s already)".
  std::optional<std::string> Update(const std::string& waits_for, TimeUs now);

 private:
  std::optional<TimeUs> since_;  // none: nothing is waited for
  std::string said_;             // "": nothing yet
  TimeUs said_at_ = 0;
  TimeUs again_after_ = 0;
};

}  // namespace kumo
