#include "common/job/transport/message.h"

namespace kumo {

PeerName ServerPeer(int index) { return "server/" + std::to_string(index); }

}  // namespace kumo
