#include "common/transport/refusal_log.h"

#include "common/base/printable.h"
#include "common/transport/peer_names.h"

namespace kumo {

std::string RefusalLog::Note(Refused kind, const PeerName& from, const Status& why, TimeUs now) {
  return Note(
      kind, "message from '" + Printable(from, kShownOfAName) + "' refused: " + why.message(), now);
}

std::string RefusalLog::Note(Refused kind, const std::string& what, TimeUs now) {
  Rate& rate = rates_[static_cast<size_t>(kind)];
  if (now < rate.next) {
    ++rate.unsaid;
    return "";
  }
  std::string text = what;
  if (rate.unsaid > 0) {
    text += " (and " + std::to_string(rate.unsaid) + " more since the last message)";
  }
  rate = {.next = now + kInterval};
  return text;
}

}  // namespace kumo
