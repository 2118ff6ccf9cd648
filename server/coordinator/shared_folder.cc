#include "server/coordinator/shared_folder.h"

#include <glog/logging.h>

namespace kumo {

Result<bool> SharedFolder::Admits(const PeerName& from, const wire::Hello& hello,
                                  uint32_t generation, StepContext* context) const {
  if (hello.role() != wire::Hello::SERVER || token_ == 0) return true;
  const bool looked = hello.asked() == generation;
  const bool found = hello.folder() == token_;
  if (private_disks_ ? looked && !found : found) return true;
  if (!looked) {
    SendAction ask{from, {}};
    ask.message.header.set_type(wire::ASK_FOLDER);
    context->Do(std::move(ask));
    return false;
  }
  if (private_disks_) {
    Status refused = FailedPrecondition(
        "output.directory of server " + std::to_string(hello.server_index()) + " on " +
        hello.host() + " is the folder " + directory_ + " of server 0: with checkpoint.disks = " +
        "private each server needs one of its own; name another one with kumo-server --disk, or "
        "set checkpoint.disks = shared");
    LOG_EVERY_T(ERROR, 1) << refused.message();
    return refused;
  }
  Status refused = FailedPrecondition(
      "output.directory of server " + std::to_string(hello.server_index()) + " on " + hello.host() +
      " is not the folder " + directory_ + " of server 0 on " + host_ +
      ": each server saves its part of a checkpoint there, so it must be one folder for all of "
      "them; name storage that they share, or set checkpoint.disks = private");
  LOG_EVERY_T(ERROR, 1) << refused.message();
  return refused;
}

}  // namespace kumo
