#include "server/protocol/messages.h"

namespace kumo {

SendAction Acknowledgement(const PeerName& to, const wire::Header& header, bool held) {
  SendAction reply{to, {}};
  wire::Header& ack = reply.message.header;
  ack.set_type(wire::ACK);
  ack.set_acknowledges(header.type());
  ack.set_request(header.request());
  ack.set_round(header.round());
  ack.set_partition(header.partition());
  ack.set_chunk(header.chunk());
  ack.set_version_array(header.version_array());
  ack.set_attempt(header.attempt());
  ack.set_held(held);
  return reply;
}

SendAction Refusal(const PeerName& to, const Status& status, uint64_t incarnation) {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::REFUSED);
  wire::Refusal* refusal = reply.message.header.mutable_refusal();
  refusal->set_code(static_cast<uint32_t>(status.code()));
  refusal->set_reason(status.message());
  refusal->set_incarnation(incarnation);
  return reply;
}

SendAction WelcomeTo(const PeerName& to, const Generation& generation) {
  SendAction reply{to, {}};
  reply.message.header.set_type(wire::WELCOME);
  wire::Welcome* welcome = reply.message.header.mutable_welcome();
  welcome->set_generation(generation.number);
  welcome->set_version(generation.start_version);
  welcome->set_restore(generation.restore);
  welcome->set_since(generation.since);
  return reply;
}

wire::Header SavedHeader(int64_t version, int attempt, const Result<SavedShardFile>& file) {
  wire::Header header;
  header.set_type(wire::SAVED);
  header.set_round(version);
  header.set_attempt(attempt);
  wire::SavedFile* saved = header.mutable_saved_file();
  if (file.ok()) {
    saved->set_bytes(file->bytes);
    saved->set_crc32c(file->crc32c);
    saved->set_not_finite(file->not_finite);
  } else {
    saved->set_failure(file.status().message());
  }
  return header;
}

}  // namespace kumo
