// What libzmq is told so that a connection is encrypted and both its ends are known (CURVE, ZeroMQ
// RFC 26), and what it says when one was not made.
//
// Functions without state. They set options of a socket that is neither bound nor connected yet.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "common/transport/keys.h"
#include "common/transport/message.h"

namespace kumo {

// What CURVE adds to each frame: a command's name, a nonce, a box's authentication and flags.
constexpr size_t kCurveFrameOverhead = 8 + 8 + 16 + 1;

// The socket that listens: who connects must know its key, and have one that a ZapHandler allows.
// Without a ZapHandler in the context libzmq lets any key in, and its messages say no names then.
void UseKeysToListen(void* socket, const ConnectionKeys& keys);

// A socket that connects to `server`: only the holder of the key that the allow list has for it can
// answer. FailedPrecondition where the list has none.
Status UseKeysToConnect(void* socket, const ConnectionKeys& keys, const PeerName& server);

// The events of a socket's monitor that a handshake failed with.
int HandshakeFailures();
// Whether libzmq does not try again after such an event.
bool EndsForGood(int event);
// Why, for people, as far as this end knows: "... refuses the key of worker 3 ...". keys: null for
// none.
std::string WhyHandshakeFailed(int event, int value, const ConnectionKeys* keys);

}  // namespace kumo
