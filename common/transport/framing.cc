// Decoding treats the frames as hostile: any process that reaches the port can send them. The order
// of the checks is the defence:
//
//   1. number of frames, length of the header frame
//   2. CheckFieldLimits: scans the encoded header without allocating, and counts elements of lists
//      and bytes of texts against kLimits
//   3. the protobuf parser, whose memory is now bounded (and whose log is silent: it would write a
//      line for each invalid string)
//   4. type, protocol version and job, except for introductions
//   5. the announced length of the payload, its true length, and its CRC32C
//
// The scan follows rules that are built once from the descriptors (Rules), so a new field cannot be
// forgotten: without a row in kLimits a small limit applies, and a test demands the row. A singular
// message that occurs twice is refused, since protobuf would merge the lists of both. Unknown
// fields are skipped: the parser keeps them as bytes, whose length the header's limit bounds.
#include "common/transport/framing.h"

#include <climits>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

#include "common/base/crc32c.h"
#include "common/job/metric_list.h"
#include "common/job/protocol.h"
#include "proto/wire.pb.h"

namespace kumo {

namespace {

std::string Bytes(uint64_t n) { return std::to_string(n) + " bytes"; }

Status CheckOrigin(const FramingOptions& options, const wire::Header& header) {
  if (IsIntroduction(header.type())) return OkStatus();
  if (header.protocol() != kProtocolVersion) {
    return FailedPrecondition("speaks protocol version " + std::to_string(header.protocol()) +
                              ", but this process speaks version " +
                              std::to_string(kProtocolVersion) +
                              "; run the same Kumo version everywhere");
  }
  if (header.job() != options.job) {
    return FailedPrecondition("belongs to another job; use different ports for different jobs");
  }
  return OkStatus();
}

Status CheckPayload(const wire::Header& header, std::span<const std::byte> payload) {
  if (payload.size() != header.payload_bytes()) {
    return InvalidArgument("payload of " + Bytes(payload.size()) + ", but the header announces " +
                           Bytes(header.payload_bytes()));
  }
  const uint32_t sent = header.payload_crc32c();
  if (sent == 0 || payload.empty()) return OkStatus();
  if (const uint32_t seen = PayloadChecksum(payload); seen != sent) {
    return DataLoss("payload of " + Bytes(payload.size()) +
                    " was damaged in transit: its CRC32C is " + std::to_string(seen) + ", not " +
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

namespace {

Result<wire::Header> DecodeHeader(const FramingOptions& options, std::span<const std::byte> frame) {
  if (frame.size() > options.max_header_bytes || frame.size() > INT_MAX) {
    return InvalidArgument("header of " + Bytes(frame.size()) + ", but the limit is " +
                           Bytes(options.max_header_bytes));
  }
  KUMO_RETURN_IF_ERROR(CheckFieldLimits(frame));
  wire::Header header;
  // Checked first, because the parser logs a line for each invalid string: a peer could fill our
  // disk.
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

}  // namespace

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

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kPartitions = 4096;  // sync.partitions
constexpr int kWorkers = 4096;
constexpr int kServers = 64;
constexpr int kName = 1024;          // of a process, a machine, a checkpoint
constexpr int kSentence = 64 << 10;  // messages for people

constexpr FieldLimit kLimits[] = {
    {"Header.picture", 1, kMostPictureBytes},
    {"CoordinatorState.ended_epochs", 64},
    {"CoordinatorState.save_at", 16},
    {"CoordinatorState.EndedEpoch.evaluated", kPartitions},
    {"CoordinatorState.EndedEpoch.detections", 1, kDetectionBytes},
    {"Tensor.name", 1, kName},
    {"Tensor.shape", 16},
    {"JobSpec.tensors", 100'000},
    {"JobSpec.metrics", MetricList::kMostMetrics},
    {"JobSpec.train_name", 1, 4 * kName},
    {"JobSpec.validation_name", 1, 4 * kName},
    {"JobSpec.network", 1, 192 << 10},
    {"JobSpec.class_names", 4096, 255},
    {"JobSpec.mean_image", 32 << 10},
    {"Hello.job_name", 1, kName},
    {"Hello.experiment_text", 1, 256 << 10},
    {"Hello.name", 1, kName},
    {"Hello.host", 1, kName},
    {"Hello.device", 1, kName},
    {"Hello.boot", 1, kName},
    {"Hello.claims", kPartitions},
    {"Hello.hands_over", kPartitions},
    {"Welcome.restore", 1, kName},
    {"Refusal.reason", 1, kSentence},
    {"WorkerReport.state", 1, kSentence},
    {"WorkerReport.partitions", kPartitions},
    {"WorkerReport.failure", 1, kSentence},
    {"WorkerReport.unheard", kServers},
    {"ServerReport.waits_for", 1, kSentence},
    {"ServerReport.failure", 1, kSentence},
    {"ServerReport.missing", 16},
    {"LeaseTable.workers", 2 * kWorkers, 255},
    {"LeaseTable.leases", kPartitions},
    {"LeaseTable.helpers", 2 * kPartitions},
    {"Orders.leases", kPartitions},
    {"Orders.waits_for", 1, kSentence},
    {"SavedFile.failure", 1, kSentence},
    {"JobStatus.job_name", 1, kName},
    {"JobStatus.phase", 1, kName},
    {"JobStatus.waits_for", 1, kSentence},
    {"JobStatus.checkpoint_failure", 1, kSentence},
    {"JobStatus.trouble", 1, kSentence},
    {"JobStatus.curves_failure", 1, kSentence},
    {"JobStatus.figures", MetricList::kMostMetrics},
    {"JobStatus.validation_figures", MetricList::kMostMetrics},
    {"JobStatus.Figure.name", 1, MetricList::kLongestName},
    {"JobStatus.workers", kWorkers},
    {"JobStatus.servers", kServers},
    {"JobStatus.Worker.name", 1, kName},
    {"JobStatus.Worker.host", 1, kName},
    {"JobStatus.Server.host", 1, kName},
    {"TraceReport.peer", 1, kName},
    {"FilePiece.failure", 1, kSentence},
    {"HeldCheckpoints.checkpoints", kMostHeldCheckpoints},
    {"HeldCheckpoints.Checkpoint.files", kServers},
    {"checkpoint.Metric.name", 1, MetricList::kLongestName},
    {"checkpoint.SampleSums.sums", MetricList::kMostSums},
    {"checkpoint.SampleSums.detections", 1, kDetectionBytes},
    {"checkpoint.Progress.best_metric", 1, MetricList::kLongestName},
    {"checkpoint.Origin.checkpoint", 1, 4 * kName},
    {"checkpoint.Origin.taken", 200, kName},
    {"checkpoint.Origin.left", 200, kName},
    {"checkpoint.Origin.unused", 200, kName},
    {"checkpoint.Origin.notes", 200, kName},
};

// Scanning rule of a message type, by field number.
struct MessageRule {
  struct Field {
    std::string_view name;  // of limited fields
    const MessageRule* message = nullptr;
    int elements = 0;       // of a list; 0: no list
    int bytes = 0;          // of a text; 0: no text
    bool varints = false;   // a list whose elements may be packed varints
    int element_bytes = 0;  // a list whose elements may be packed with this size; 0: none
  };
  std::vector<Field> fields;

  const Field* Find(int number) const {
    return number > 0 && number < std::ssize(fields) ? &fields[number] : nullptr;
  }
};

int FixedBytes(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return 8;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return 4;
    default:
      return 0;
  }
}

class Rules {
 public:
  Rules() {
    for (const FieldLimit& limit : kLimits) limits_["kumo." + Scope(limit.field)] = &limit;
    header_ = Of(*wire::Header::descriptor());
  }
  const MessageRule& header() const { return *header_; }

 private:
  static std::string Scope(std::string_view field) {
    const bool other = field[0] >= 'a' && field[0] <= 'z';
    return (other ? "" : "wire.") + std::string(field);
  }

  const MessageRule* Of(const Descriptor& message) {
    auto& rule = rules_[&message];
    if (rule) return rule.get();
    rule = std::make_unique<MessageRule>();
    MessageRule* const made = rule.get();  // the map may grow meanwhile
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      if (field.number() >= std::ssize(made->fields)) made->fields.resize(field.number() + 1);
      MessageRule::Field& one = made->fields[field.number()];
      const auto limit = limits_.find(field.full_name());
      if (limit != limits_.end()) {
        one.name = limit->second->field;
        if (field.is_repeated()) one.elements = limit->second->elements;
        one.bytes = limit->second->bytes;
      }
      const bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      const bool nested = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      // A field without a limit in the table (a test finds it) has a small one.
      if (limit == limits_.end() && (text || field.is_repeated())) {
        one.name = field.full_name();
        if (field.is_repeated()) one.elements = kPartitions;
        if (text) one.bytes = kName;
      }
      one.element_bytes = FixedBytes(field);
      one.varints = !text && !nested && one.element_bytes == 0;
      // Protobuf would merge a second occurrence into the first, and with it their lists.
      if (nested && !field.is_repeated()) {
        one.name = field.full_name();
        one.elements = 1;
      }
      if (nested) one.message = Of(*field.message_type());
    }
    return made;
  }

  std::map<std::string, const FieldLimit*> limits_;
  std::map<const Descriptor*, std::unique_ptr<MessageRule>> rules_;
  const MessageRule* header_ = nullptr;
};

Status NoProtobuf() { return InvalidArgument("a header that is not protobuf"); }

Status TooMany(const MessageRule::Field& field) {
  return InvalidArgument(std::string(field.name) + " has more than " +
                         std::to_string(field.elements) + " elements");
}

// The number of elements in the packed block of `length` bytes; -1 if it is malformed.
int Packed(const MessageRule::Field& field, int length, CodedInputStream* in) {
  if (field.element_bytes > 0) return in->Skip(length) ? length / field.element_bytes : -1;
  const auto limit = in->PushLimit(length);
  int elements = 0;
  uint64_t value = 0;
  while (in->BytesUntilLimit() > 0) {
    if (!in->ReadVarint64(&value)) return -1;
    ++elements;
  }
  in->PopLimit(limit);
  return elements;
}

Status Check(const MessageRule& rule, CodedInputStream* in) {
  std::vector<int> elements;
  while (const uint32_t tag = in->ReadTag()) {
    const MessageRule::Field* const field = rule.Find(WireFormatLite::GetTagFieldNumber(tag));
    const auto type = WireFormatLite::GetTagWireType(tag);
    if (type == WireFormatLite::WIRETYPE_END_GROUP) return NoProtobuf();
    int count = 1;
    if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(in, tag)) return NoProtobuf();
    } else {
      uint32_t length = 0;
      if (!in->ReadVarint32(&length) || length > static_cast<uint32_t>(in->BytesUntilLimit())) {
        return NoProtobuf();
      }
      const int size = static_cast<int>(length);
      if (field != nullptr && field->message != nullptr) {
        const auto limit = in->PushLimit(size);
        KUMO_RETURN_IF_ERROR(Check(*field->message, in));
        if (in->BytesUntilLimit() > 0) return NoProtobuf();
        in->PopLimit(limit);
      } else if (field != nullptr && field->elements > 0 && field->bytes == 0) {
        count = Packed(*field, size, in);
        if (count < 0) return NoProtobuf();
      } else {
        if (field != nullptr && field->bytes > 0 && size > field->bytes) {
          return InvalidArgument(std::string(field->name) + " has more than " +
                                 std::to_string(field->bytes) + " bytes");
        }
        if (!in->Skip(size)) return NoProtobuf();
      }
    }
    if (field == nullptr || field->elements == 0) continue;
    elements.resize(rule.fields.size());
    int& so_far = elements[field - rule.fields.data()];
    so_far += count;
    if (so_far > field->elements) return TooMany(*field);
  }
  return in->ConsumedEntireMessage() || in->BytesUntilLimit() == 0 ? OkStatus() : NoProtobuf();
}

}  // namespace

std::span<const FieldLimit> FieldLimits() { return kLimits; }

Status CheckFieldLimits(std::span<const std::byte> header) {
  static const Rules* const rules = new Rules;
  const int size = static_cast<int>(header.size());
  CodedInputStream in(reinterpret_cast<const uint8_t*>(header.data()), size);
  const auto limit = in.PushLimit(size);
  KUMO_RETURN_IF_ERROR(Check(rules->header(), &in));
  in.PopLimit(limit);
  return OkStatus();
}

}  // namespace kumo
