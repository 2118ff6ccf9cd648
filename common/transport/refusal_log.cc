#include "common/transport/refusal_log.h"

#include "common/base/printable.h"
#include "common/transport/peer_names.h"

namespace kumo {

std::string RefusalLog::Note(const PeerName& from, const Status& why, TimeUs now) {
  return Note("message from '" + Printable(from, kShownOfAName) + "' refused: " + why.message(),
              now);
}

std::string RefusalLog::Note(const std::string& what, TimeUs now) {
  if (now < next_) {
    ++unsaid_;
    return "";
  }
  std::string text = what;
  if (unsaid_ > 0) text += " (and " + std::to_string(unsaid_) + " more since the last message)";
  next_ = now + kInterval;
  unsaid_ = 0;
  return text;
}

}  // namespace kumo
