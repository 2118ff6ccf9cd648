// Framing: conversion between a Message and the frames of a multipart message on the wire: a header
// frame (protobuf wire::Header) and, if there is a payload, one payload frame. The grammar is in
// docs/formats.md.
//
// Frames come from anyone who can reach the port. Decoding compares the frames with what is allowed
// and reports what is wrong; it allocates in proportion to the bytes that have arrived, never to a
// number that a peer sent.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

// Limits of the messages that a process accepts.
struct FramingOptions {
  // Header.job of all messages but introductions (see IsIntroduction).
  uint64_t job = 0;
  size_t max_header_bytes = size_t{1} << 20;
  // The longest legitimate payload: a coded chunk.
  size_t max_payload_bytes = size_t{4} << 20;
};

// True for types that pass whatever their protocol and job. HELLO and STATUS may come from
// processes of another job or protocol version, and REFUSED and STATUS_REPLY go to them, so that
// the receiver can name the first difference instead of staying silent. PING and PONG concern only
// names.
bool IsIntroduction(wire::Type type);

// CRC32C of a payload for Header.payload_crc32c. There 0 means "not checked", so a payload whose
// checksum happens to be 0 (one in 2^32) is not checked.
uint32_t PayloadChecksum(std::span<const std::byte> payload);

// Completes a header for the wire (protocol, job, payload_bytes and, if `checksum` is set and the
// sender has not set it, payload_crc32c) and serialises it into `frame`. ResourceExhausted if the
// header, InvalidArgument if the payload exceeds the options' limit: peers would drop the message.
Status EncodeHeader(const FramingOptions& options, bool checksum, Message& message,
                    std::string& frame);

// Decodes the frames of a message, header first; the payload shares ownership of the second frame.
// InvalidArgument: a wrong number of frames, a header that is too long, no protobuf, beyond
// FieldLimits or without a type, or a payload length beyond the limit or other than the header's;
// FailedPrecondition: another protocol version or job; DataLoss: a wrong checksum.
Result<Message> DecodeMessage(const FramingOptions& options, std::span<const Payload> frames);

// Limits on the lengths of texts and lists in a header, for all of proto/wire.proto in one table.
//
// A header of 1 MiB can expand a hundredfold in memory: an empty message in a list takes two bytes
// on the wire but sixty or more in memory. So its bytes are scanned and counted before they are
// parsed. State machines may impose tighter limits; these bound their input.
//
// Pure functions; thread-safe.
struct FieldLimit {
  // The message (of wire.proto unless another package is named) and the field: "Hello.claims",
  // "checkpoint.Origin.taken".
  std::string_view field;
  int elements = 1;  // of a list or a map
  int bytes = 0;     // of a text or of each text of a list; 0: no text
};

// The limits of exactly the texts and lists that a header can contain.
std::span<const FieldLimit> FieldLimits();

// InvalidArgument, naming the field, if a limit is exceeded, if the bytes are no protobuf, or if a
// singular message field occurs twice (protobuf would merge their lists).
Status CheckFieldLimits(std::span<const std::byte> header);

}  // namespace kumo
