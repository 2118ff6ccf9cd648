#include "server/node/peers.h"

#include <cstddef>
#include <string>

#include "common/base/printable.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

constexpr size_t kMaxMembers = 4096;

}  // namespace

Status Peers::Check(const PeerName& from, const wire::Hello& hello) const {
  const int index = hello.server_index();
  const bool own_name = hello.role() == wire::Hello::WORKER
                            ? from == WorkerPeer(hello.name(), hello.incarnation())
                            : index > 0 && from == ServerPeer(index);
  if (!own_name) {
    return FailedPrecondition("the name " + Printable(from) + " belongs to another process");
  }
  if (members_.size() >= kMaxMembers && !Has(from)) {
    return ResourceExhausted("this server has " + std::to_string(kMaxMembers) +
                             " members already, the most that it admits");
  }
  return OkStatus();
}

std::vector<PeerName> Peers::RemoveUnless(
    const std::function<bool(const PeerName& peer, TimeUs seen)>& stays) {
  std::vector<PeerName> removed;
  std::erase_if(members_, [&](const auto& member) {
    if (stays(member.first, member.second)) return false;
    removed.push_back(member.first);
    return true;
  });
  return removed;
}

void Peers::LetWait(const PeerName& peer, bool worker) {
  if (waiting_.size() < kMaxMembers) waiting_[peer] = worker;
}

std::vector<PeerName> Peers::TakeWaiting(bool workers, TimeUs now) {
  std::vector<PeerName> welcome;
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& [peer, worker] = entry;
    if (worker && !workers) return false;
    Saw(peer, now);
    welcome.push_back(peer);
    return true;
  });
  return welcome;
}

}  // namespace kumo
