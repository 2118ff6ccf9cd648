#include "common/transport/header_limits.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "common/job/metric_list.h"
#include "common/job/protocol.h"
#include "proto/wire.pb.h"

namespace kumo {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kPartitions = 4096;  // sync.partitions
constexpr int kWorkers = 4096;
constexpr int kServers = 64;
constexpr int kName = 1024;          // of a process, a machine, a checkpoint
constexpr int kSentence = 64 << 10;  // said to people

constexpr FieldLimit kLimits[] = {
    {"CoordinatorState.ended_epochs", 64},
    {"CoordinatorState.EndedEpoch.evaluated", kPartitions},
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
    {"checkpoint.SampleSums.sums", MetricList::kMostMetrics},
    {"checkpoint.Origin.checkpoint", 1, 4 * kName},
    {"checkpoint.Origin.taken", 200, kName},
    {"checkpoint.Origin.left", 200, kName},
    {"checkpoint.Origin.unused", 200, kName},
};

// What a message may contain, by field number.
struct MessageRule {
  struct Field {
    std::string_view name;  // of those that are limited
    const MessageRule* message = nullptr;
    int elements = 0;       // of a list; 0: it is none
    int bytes = 0;          // of a text; 0: it is none
    bool varints = false;   // whose elements may stand in one block
    int element_bytes = 0;  // likewise, where all are as long
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
    MessageRule* const made = rule.get();  // the map may grow
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
      // One that the table does not have, which its test says, has a short limit.
      if (limit == limits_.end() && (text || field.is_repeated())) {
        one.name = field.full_name();
        if (field.is_repeated()) one.elements = kPartitions;
        if (text) one.bytes = kName;
      }
      one.element_bytes = FixedBytes(field);
      one.varints = !text && !nested && one.element_bytes == 0;
      // Protobuf would merge one that comes again into the first, and with it their lists.
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

// How many elements the block of `length` bytes has that is read; -1 where it is broken.
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
