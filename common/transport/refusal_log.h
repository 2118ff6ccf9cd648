// Refusal log: rate-limited log messages about refused messages and connections.
//
// Each kind of refusal has its own rate, so that a flood of one does not hide another.
//
// A value; one thread. Time is passed in.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

enum class Refused {
  kConnection,  // its key is not allowed
  kName,        // a connection speaks by a name that it may not have
  kMessage,     // its bytes are wrong
};

class RefusalLog {
 public:
  static constexpr TimeUs kInterval = kSecond;

  // A message of `from`, which may be anyone's, was refused. Returns the text to log, with the
  // number of suppressed texts of this kind; "" if the last one was less than kInterval ago.
  std::string Note(Refused kind, const PeerName& from, const Status& why, TimeUs now);
  // The same for a refusal that `what` describes.
  std::string Note(Refused kind, const std::string& what, TimeUs now);

 private:
  struct Rate {
    TimeUs next = 0;
    uint64_t unsaid = 0;
  };
  std::array<Rate, 3> rates_;  // by Refused
};

}  // namespace kumo
