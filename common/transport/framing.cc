#include "common/transport/framing.h"

#include <climits>

#include <google/protobuf/stubs/logging.h>

#include "common/base/crc32c.h"
#include "common/job/protocol.h"
#include "common/transport/header_limits.h"

namespace kumo {
namespace {

std::string Bytes(uint64_t n) { return std::to_string(n) + " bytes"; }

Status CheckOrigin(const FramingOptions& options, const wire::Header& header) {
  if (IsIntroduction(header.type())) return OkStatus();
  if (header.protocol() != kProtocolVersion) {
    return FailedPrecondition("speaks protocol version " + std::to_string(header.protocol()) +
                              ", this process speaks " + std::to_string(kProtocolVersion) +
                              "; run the same Kumo everywhere");
  }
  if (header.job() != options.job) {
    return FailedPrecondition("belongs to another job; give each job its own ports");
  }
  return OkStatus();
}

Status CheckPayload(const wire::Header& header, std::span<const std::byte> payload) {
  if (payload.size() != header.payload_bytes()) {
    return InvalidArgument("payload of " + Bytes(payload.size()) + " where the header says " +
                           Bytes(header.payload_bytes()));
  }
  const uint32_t sent = header.payload_crc32c();
  if (sent == 0 || payload.empty()) return OkStatus();
  if (const uint32_t seen = PayloadChecksum(payload); seen != sent) {
    return DataLoss("payload of " + Bytes(payload.size()) +
                    " was damaged on the way: its CRC32C is " + std::to_string(seen) + ", not " +
                    std::to_string(sent));
  }
  return OkStatus();
}

}  // namespace

bool IsIntroduction(wire::Type type) {
  return type == wire::HELLO || type == wire::REFUSED || type == wire::STATUS ||
         type == wire::STATUS_REPLY || type == wire::PING || type == wire::PONG;
}

uint32_t PayloadChecksum(std::span<const std::byte> payload) { return Crc32c(payload); }

Status EncodeHeader(const FramingOptions& options, bool checksum, Message& message,
                    std::string& frame) {
  const std::span<const std::byte> payload = message.payload.bytes;
  if (payload.size() > options.max_payload_bytes) {
    return InvalidArgument("payload of " + Bytes(payload.size()) + ", but the limit is " +
                           Bytes(options.max_payload_bytes));
  }
  wire::Header& header = message.header;
  header.set_protocol(kProtocolVersion);
  header.set_job(options.job);
  header.set_payload_bytes(payload.size());
  if (payload.empty()) {
    header.set_payload_crc32c(0);
  } else if (checksum && header.payload_crc32c() == 0) {
    header.set_payload_crc32c(PayloadChecksum(payload));
  }
  const size_t length = header.ByteSizeLong();
  if (length > options.max_header_bytes) {
    return ResourceExhausted("header of " + Bytes(length) + ", but the limit is " +
                             Bytes(options.max_header_bytes));
  }
  frame.resize(length);
  header.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(frame.data()));
  return OkStatus();
}

Result<wire::Header> DecodeHeader(const FramingOptions& options, std::span<const std::byte> frame) {
  if (frame.size() > options.max_header_bytes || frame.size() > INT_MAX) {
    return InvalidArgument("header of " + Bytes(frame.size()) + ", but the limit is " +
                           Bytes(options.max_header_bytes));
  }
  KUMO_RETURN_IF_ERROR(CheckFieldLimits(frame));
  wire::Header header;
  // The parser would log a line for each broken string: a peer could fill our disk with them.
  const google::protobuf::LogSilencer silence;
  if (!header.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) {
    return InvalidArgument("header of " + Bytes(frame.size()) + " that is not a Kumo header");
  }
  if (header.type() == wire::TYPE_UNSPECIFIED) return InvalidArgument("header without a type");
  KUMO_RETURN_IF_ERROR(CheckOrigin(options, header));
  if (header.payload_bytes() > options.max_payload_bytes) {
    return InvalidArgument("announces a payload of " + Bytes(header.payload_bytes()) +
                           ", but the limit is " + Bytes(options.max_payload_bytes));
  }
  return header;
}

Result<Message> DecodeMessage(const FramingOptions& options, std::span<const Payload> frames) {
  if (frames.empty() || frames.size() > 2) {
    return InvalidArgument(std::to_string(frames.size()) +
                           " frames; a message has a header and at most one payload");
  }
  KUMO_ASSIGN_OR_RETURN(wire::Header header, DecodeHeader(options, frames[0].bytes));
  Message message{std::move(header), {}};
  if (frames.size() == 2) message.payload = frames[1];
  KUMO_RETURN_IF_ERROR(CheckPayload(message.header, message.payload.bytes));
  if (message.payload.empty()) message.payload = {};
  return message;
}

}  // namespace kumo
