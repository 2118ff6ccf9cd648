// How a process talks to others: the settings of ZmqTransport and its parts.
//
// Plain values.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/clock.h"
#include "common/transport/framing.h"
#include "common/transport/keys.h"
#include "common/transport/message.h"

namespace kumo {

// Which payloads get a CRC32C when the sender has not put one into the header. Whatever carries one
// is checked on arrival.
enum class Checksums {
  kNetwork,  // those that leave the machine: neither ipc nor a loopback address
  kAlways,
  kNever,
};

struct ZmqTransportOptions {
  PeerName name;  // this process's own, 1 to 238 visible ASCII characters
  FramingOptions framing;
  Checksums checksums = Checksums::kNetwork;
  // With them each tcp connection is encrypted, and made only between those that the allow list
  // has. Connections over ipc stay as they are: the socket file's permissions guard them.
  SharedKeys keys;
  bool insecure = false;  // without keys: may listen on addresses that other machines reach

  int64_t send_queue_bytes = int64_t{1} << 30;  // per peer, not yet taken by the kernel
  // Likewise, of introductions (IsIntroduction), which go to anybody who asks; a longer one alone.
  int64_t introduction_queue_bytes = 256 << 10;
  int receive_queue_messages = 64;  // per peer
  int batch = 64;                   // messages that one Poll hands over at most

  // Of two processes with one name: the second has it when the first has not answered for so long.
  TimeUs silent_holder_us = 10 * kSecond;
  // "worker/NAME/1" and "worker/NAME/2" are one name.
  bool one_worker_per_name = false;

  int linger_ms = 1000;       // how long the destructor waits for what is queued
  int handshake_ms = 10'000;  // a connection that has not said its name by then is closed
  int connect_ms = 5'000;     // an attempt that has no answer by then is repeated
  int reconnect_ms = 50;      // pause before the first new attempt; doubles up to the maximum
  int reconnect_max_ms = 2'000;
  int silent_ms =
      30'000;  // a connection whose other end acknowledges nothing for so long is closed
};

}  // namespace kumo
