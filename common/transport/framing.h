// Message <-> the frames of one multipart message on the wire: a header frame (protobuf
// wire::Header) and, where there is a payload, one payload frame behind it. docs/formats.md has the
// grammar.
//
// Frames come from anybody who can reach the port. Decoding looks at what is there, compares it
// with what may be there and says what is wrong; it allocates in proportion to the bytes that have
// really arrived, never to a number that a peer wrote down.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

// What a process accepts.
struct FramingOptions {
  // Header.job of everything that is not an introduction (see IsIntroduction).
  uint64_t job = 0;
  size_t max_header_bytes = size_t{1} << 20;
  // The longest payload that any peer has a reason to send: a coded chunk.
  size_t max_payload_bytes = size_t{4} << 20;
};

// HELLO and STATUS come from processes that may belong to another job or speak another protocol
// version, REFUSED and STATUS_REPLY go to them: these pass whatever their protocol and job, so that
// the receiver can answer with the first difference by name instead of with silence. So do PING and
// PONG, which are about names.
bool IsIntroduction(wire::Type type);

// CRC32C of a payload as Header.payload_crc32c carries it. 0 on the wire means "not checked", so a
// payload whose checksum happens to be 0 (one in 2^32) goes unchecked.
uint32_t PayloadChecksum(std::span<const std::byte> payload);

// Fills in what the wire adds to a header (protocol, job, payload_bytes and, when `checksum` is set
// and the sender has not already put it there, payload_crc32c) and serialises it into `frame`.
// ResourceExhausted when the header is longer than the options allow, InvalidArgument when the
// payload is: peers would drop the message.
Status EncodeHeader(const FramingOptions& options, bool checksum, Message& message,
                    std::string& frame);

// The header of `frame`. InvalidArgument: too long, no protobuf, a text or a list longer than
// header_limits.h allows, without a type, a payload length that the options forbid;
// FailedPrecondition: another protocol version or job.
Result<wire::Header> DecodeHeader(const FramingOptions& options, std::span<const std::byte> frame);

// Frames as they arrived, header first -> a message whose payload shares the second frame's owner.
// The errors of DecodeHeader; InvalidArgument for no or too many frames and for a payload whose
// length is not what the header says; DataLoss for a checksum that does not match.
Result<Message> DecodeMessage(const FramingOptions& options, std::span<const Payload> frames);

}  // namespace kumo
