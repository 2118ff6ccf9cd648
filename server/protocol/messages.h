// Messages that several machines of a server send.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/checkpoint/shard_file.h"
#include "common/transport/message.h"
#include "server/protocol/actions.h"
#include "server/protocol/directive.h"

namespace kumo {

// ACK of a message with this header. It repeats the fields by which the sender finds its message:
// the request number of a worker; between servers type, round, chunk, array and attempt. held: the
// content would be lost if this server died; the sender keeps it until a second ACK without `held`.
SendAction Acknowledgement(const PeerName& to, const wire::Header& header, bool held = false);

// REFUSED: the reason why a hello or another message has no effect. incarnation: of the process
// that is meant, if several processes may have the name; 0: any.
SendAction Refusal(const PeerName& to, const Status& status, uint64_t incarnation = 0);

// WELCOME: the generation that a peer takes part in from now on.
SendAction WelcomeTo(const PeerName& to, const Generation& generation);

// SAVED: a server's file of a version is durable, or could not be saved.
wire::Header SavedHeader(int64_t version, int attempt, const Result<SavedShardFile>& file);

}  // namespace kumo
