// Wait notice: tells a user which process is waited for: soon, on every change, and then at growing
// intervals.
//
// Time is passed in; one thread.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"

namespace kumo {

class WaitNotice {
 public:
  // Called often with the process that is waited for, "" for none. Returns a line to show if there
  // is news: "waits for server 1 at tcp://beta:7700", later "(10 s already)".
  std::optional<std::string> Update(const std::string& waits_for, TimeUs now);

 private:
  std::optional<TimeUs> since_;  // none: not waiting
  std::string said_;             // "": nothing yet
  TimeUs said_at_ = 0;
  TimeUs again_after_ = 0;
};

}  // namespace kumo
