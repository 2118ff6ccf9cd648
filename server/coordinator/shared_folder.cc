#include "server/coordinator/shared_folder.h"

#include <glog/logging.h>

namespace kumo {

Result<bool> SharedFolder::Admits(const PeerName& from, const wire::Hello& hello,
                                  uint32_t generation, Turn* turn) const {
  if (hello.role() != wire::Hello::SERVER || token_ == 0 || hello.folder() == token_) return true;
  if (hello.asked() != generation) {
    SendAction ask{from, {}};
    ask.message.header.set_type(wire::ASK_FOLDER);
    turn->Do(std::move(ask));
    return false;
  }
  Status refused = FailedPrecondition(
      "output.directory of server " + std::to_string(hello.server_index()) + " on " + hello.host() +
      " is not the folder " + directory_ + " of server 0 on " + host_ +
      ": each server saves its part of a checkpoint there, so it must be one folder for all of "
      "them; name storage that they share");
  LOG_EVERY_T(ERROR, 1) << refused.message();
  return refused;
}

}  // namespace kumo
