// Messages that several of a server's machines send.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/generation.h"

namespace kumo {

// Says that a message with this header has arrived, by what tells it from others: the number that a
// worker has given it; between servers type, round, chunk, array and attempt. held: it would be
// lost should this server die; the sender is to keep it until it hears otherwise.
SendAction Acknowledgement(const PeerName& to, const wire::Header& header, bool held = false);

// Says why a hello or another message counts for nothing. incarnation: of the process that is
// meant, where several may have its name; 0: whoever has.
SendAction Refusal(const PeerName& to, const Status& status, uint64_t incarnation = 0);

// Says which generation a peer takes part in from now on.
SendAction WelcomeTo(const PeerName& to, const Generation& generation);

// What a server says of its file of a version, which is durable, or could not be saved.
wire::Header SavedHeader(int64_t version, int attempt, const Result<SavedShardFile>& file);

}  // namespace kumo
