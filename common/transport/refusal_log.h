// What is said of messages and connections that were refused: one in a while, however many come.
//
// A value; one thread. Time is handed in.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

class RefusalLog {
 public:
  static constexpr TimeUs kInterval = kSecond;

  // A message of `from`, which may be anybody's, was refused. What the log is to say of it, with
  // how many went unsaid before; "" where the last was said less than kInterval ago.
  std::string Note(const PeerName& from, const Status& why, TimeUs now);
  // The same of whatever else was refused: `what` says that.
  std::string Note(const std::string& what, TimeUs now);

 private:
  TimeUs next_ = 0;
  uint64_t unsaid_ = 0;
};

}  // namespace kumo
