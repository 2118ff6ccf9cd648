#include "server/actions.h"

namespace kumo {

SendAction Acknowledgement(const PeerName& to, const wire::Header& header, bool held) {
  SendAction reply{to, {}};
  wire::Header& ack = reply.message.header;
  ack.set_type(wire::ACK);
  ack.set_acknowledges(header.type());
  ack.set_round(header.round());
  ack.set_partition(header.partition());
  ack.set_chunk(header.chunk());
  ack.set_slot(header.slot());
  ack.set_attempt(header.attempt());
  ack.set_held(held);
  return reply;
}

}  // namespace kumo
