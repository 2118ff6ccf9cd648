// Refusal log: rate-limited log messages about refused messages and connections.
//
// A value; one thread. Time is passed in.
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

  // A message of `from`, which may be anyone's, was refused. Returns the text to log, with the
  // number of suppressed texts; "" if the last text was less than kInterval ago.
  std::string Note(const PeerName& from, const Status& why, TimeUs now);
  // The same for another refusal, which `what` describes.
  std::string Note(const std::string& what, TimeUs now);

 private:
  TimeUs next_ = 0;
  uint64_t unsaid_ = 0;
};

}  // namespace kumo
