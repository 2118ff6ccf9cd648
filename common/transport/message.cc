#include "common/transport/message.h"

namespace kumo {

PeerName ServerPeer(int index) { return "server/" + std::to_string(index); }

PeerName WorkerPeer(const std::string& name, uint64_t incarnation) {
  return "worker/" + name + "/" + std::to_string(incarnation);
}

}  // namespace kumo
