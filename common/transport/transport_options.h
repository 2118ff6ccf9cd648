// Options of ZmqTransport and its parts.
//
// Plain values.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/transport/framing.h"
#include "common/transport/keys.h"
#include "common/transport/message.h"

namespace kumo {

// Which payloads get a CRC32C if the sender has not set one in the header. A CRC in a message is
// always checked on arrival.
enum class Checksums {
  kNetwork,  // payloads that leave the machine: neither ipc nor a loopback address
  kAlways,
  kNever,
};

struct ZmqTransportOptions {
  PeerName name;  // of this process, 1 to 238 visible ASCII characters
  FramingOptions framing;
  Checksums checksums = Checksums::kNetwork;
  // With keys, each tcp connection is encrypted and made only between holders in the allow list.
  // ipc connections stay plain: the permissions of the socket file protect them.
  SharedKeys keys;
  bool insecure = false;  // allows listening for other machines without keys

  int64_t send_queue_bytes = int64_t{1} << 30;  // per peer, not yet taken by the kernel
  // The same for introductions (IsIntroduction), which go to anyone who asks; a longer one goes
  // alone.
  int64_t introduction_queue_bytes = 256 << 10;
  int receive_queue_messages = 64;  // per peer
  int batch = 64;                   // messages per Poll

  // Silence after which the holder of a name loses it to another process with the name.
  TimeUs silent_holder_us = 10 * kSecond;
  // Treats "worker/NAME/1" and "worker/NAME/2" as one name.
  bool one_worker_per_name = false;

  int linger_ms = 1000;       // time that the destructor waits for queued messages
  int handshake_ms = 10'000;  // time for a connection's handshake
  int connect_ms = 5'000;     // time for a connection attempt
  int reconnect_ms = 50;      // pause before the first retry; doubles up to the maximum
  int reconnect_max_ms = 2'000;
  // Time without TCP acknowledgements after which a connection is closed.
  int silent_ms = 30'000;
};

}  // namespace kumo
