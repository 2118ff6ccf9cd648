#include "tests/sim/forger.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "tests/common/job/loss_and_accuracy.h"

namespace kumo::sim {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

constexpr size_t kRemembered = 64;  // messages
constexpr int kMostElements = 20;
constexpr int kPartitions = 4;

std::string ForgedText(Choices* choices) {
  switch (choices->Below(6)) {
    case 0:
      return std::string(1000, '\x7f');
    case 1:
      return "worker-0";
    case 2:
      return "../..";
    case 3:
      return "a\nb\x1b[2J%n";
    case 4:
      return std::string("\xff\x00\xfe", 3);
    default:
      return "";
  }
}

double ForgedNumber(Choices* choices) {
  const double numbers[] = {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(),
                            -1,
                            1e308,
                            1e-300,
                            0};
  return numbers[choices->Below(6)];
}

void ForgeScalar(Choices* choices, const FieldDescriptor* field,
                 google::protobuf::Message* message) {
  const Reflection& access = *message->GetReflection();
  const bool adds = field->is_repeated();
  if (adds && access.FieldSize(*message, field) >= kMostElements) {
    access.ClearField(message, field);
    return;
  }
  const auto put = [&](auto set, auto add, auto value) {
    if (adds) {
      (access.*add)(message, field, value);
    } else {
      (access.*set)(message, field, value);
    }
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      put(&Reflection::SetInt32, &Reflection::AddInt32, static_cast<int32_t>(choices->Wild(8)));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      put(&Reflection::SetUInt32, &Reflection::AddUInt32, static_cast<uint32_t>(choices->Wild(8)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      put(&Reflection::SetInt64, &Reflection::AddInt64, choices->Wild(16));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      put(&Reflection::SetUInt64, &Reflection::AddUInt64, static_cast<uint64_t>(choices->Wild(64)));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      put(&Reflection::SetDouble, &Reflection::AddDouble, ForgedNumber(choices));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      put(&Reflection::SetBool, &Reflection::AddBool, choices->Below(2) == 0);
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto& type = *field->enum_type();
      const int value = static_cast<int>(choices->Below(static_cast<uint64_t>(type.value_count())));
      put(&Reflection::SetEnum, &Reflection::AddEnum, type.value(value));
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      if (adds) {
        access.AddString(message, field, ForgedText(choices));
      } else {
        access.SetString(message, field, ForgedText(choices));
      }
      break;
    default:
      break;
  }
}

// Of the job itself: without these a message does not even get as far as the state machines.
bool Kept(const FieldDescriptor& field) {
  return field.containing_type() == wire::Header::descriptor() &&
         (field.name() == "protocol" || field.name() == "job");
}

Payload ForgedPayload(Choices* choices, const Payload& payload) {
  const uint64_t kind = choices->Below(4);
  if (kind == 0) return {};
  size_t size = payload.bytes.size();
  if (kind == 1) size = choices->Word() % 5000;
  auto bytes = std::make_shared<std::vector<std::byte>>(
      size, static_cast<std::byte>(kind == 2 ? 0xff : choices->Below(256)));
  return {bytes, std::span<const std::byte>(*bytes)};
}

// What people are told of a run: the epochs' table and the curve, to the bit.
std::string Figures(const SimResult& result) {
  std::string text;
  for (const EpochEvaluatedAction& epoch : result.epochs) {
    text += "epoch " + std::to_string(epoch.epoch) + ": " + test::Exactly(epoch.train) +
            "; validation " + test::Exactly(epoch.validation) + "\n";
  }
  for (const CurvePointAction& point : result.points) {
    text += "point " + std::to_string(point.version) + ": " + test::Exactly(point.train) + "\n";
  }
  return text;
}

}  // namespace

uint8_t Choices::Byte() {
  if (bytes_.empty()) return 255;
  const uint8_t byte = bytes_.front();
  bytes_ = bytes_.subspan(1);
  return byte;
}

uint64_t Choices::Below(uint64_t bound) { return bytes_.empty() ? bound - 1 : Byte() % bound; }

uint64_t Choices::Word() {
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | Byte();
  return word;
}

int64_t Choices::Wild(int64_t sensible) {
  const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20};
  const uint64_t kind = Below(10);
  if (kind < 6) return static_cast<int64_t>(Below(static_cast<uint64_t>(sensible)));
  if (kind < 9) return extremes[Below(6)];
  return static_cast<int64_t>(Word());
}

void ForgeField(Choices* choices, google::protobuf::Message* message) {
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  const FieldDescriptor* field =
      type.field(static_cast<int>(choices->Below(static_cast<uint64_t>(type.field_count()))));
  if (Kept(*field)) return;
  const Reflection& access = *message->GetReflection();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    ForgeScalar(choices, field, message);
  } else if (choices->Below(6) == 0) {
    access.ClearField(message, field);
  } else if (!field->is_repeated()) {
    ForgeField(choices, access.MutableMessage(message, field));
  } else if (const int size = access.FieldSize(*message, field);
             size == 0 || (size < kMostElements && choices->Below(2) == 0)) {
    ForgeField(choices, access.AddMessage(message, field));
  } else {
    ForgeField(choices,
               access.MutableRepeatedMessage(
                   message, field, static_cast<int>(choices->Below(static_cast<uint64_t>(size)))));
  }
}

// Whether the message tells numbers that are the worker's to compute.
bool Forger::TellsOwnNumbers(const wire::Header& header) const {
  switch (header.type()) {
    case wire::INITIALISE:
      return partitions_.contains(0);  // who has it makes the initial weights
    case wire::PUSH:
    case wire::PUT_STATE:
    case wire::EVALUATED:
      return partitions_.contains(header.partition());
    default:
      return false;
  }
}

Message Forger::Forged(const Message& message) {
  Message forged = message;
  for (uint64_t i = choices_.Below(3) + 1; i > 0; --i) ForgeField(&choices_, &forged.header);
  if (choices_.Below(4) == 0) forged.payload = ForgedPayload(&choices_, message.payload);
  if (TellsOwnNumbers(forged.header)) return message;
  ++forged_;
  VLOG(1) << "forged: " << forged.header.ShortDebugString() << " payload "
          << forged.payload.bytes.size() << ", was: " << message.header.ShortDebugString();
  return forged;
}

Message Forger::OfAnother(Message message) {
  const wire::Type type = message.header.type();
  if (type != wire::PUSH && type != wire::PUT_STATE && type != wire::EVALUATED) return message;
  Message other = message;
  other.header.set_partition(static_cast<int32_t>(choices_.Below(kPartitions)));
  test::SetLossSum(ForgedNumber(&choices_), other.header.mutable_metrics());
  if (TellsOwnNumbers(other.header)) return message;
  ++forged_;
  return other;
}

std::vector<Message> Forger::FromWorker(int worker, int /*server*/, Message message) {
  if (worker != worker_ || choices_.empty()) return {std::move(message)};
  if (sent_.size() < kRemembered) sent_.push_back(message);
  switch (choices_.Below(16)) {
    case 0:
    case 1:
      return {message, Forged(message)};
    case 2:
      return {Forged(message), message};
    case 3:
      return {Forged(message)};
    case 4:
      return {message, sent_[choices_.Below(sent_.size())]};
    case 5:
      return {message, Forged(sent_[choices_.Below(sent_.size())])};
    case 6:
      return {};
    case 7:
      return {message, OfAnother(message)};
    default:
      return {std::move(message)};
  }
}

// It does not leave because a server refuses what it says.
bool Forger::ToWorker(int /*server*/, int worker, const Message& message) {
  if (worker != worker_) return true;
  for (const auto& lease : message.header.orders().leases()) partitions_.insert(lease.partition());
  return message.header.type() != wire::REFUSED || choices_.empty();
}

SimSettings JobWithAForger(bool replicas) {
  SimSettings settings;
  settings.tensors = {{"a.weight", {13, 30}, Segment::kDecayed},
                      {"a.bias", {30}, Segment::kUndecayed},
                      {"n.mean", {17}, Segment::kStatistics}};
  settings.train_samples = 70;
  settings.validation_samples = 5;
  settings.servers = 2;
  settings.time_limit = 1000 * kSecond;
  Experiment& e = settings.experiment;
  e.job.name = "sim";
  e.job.epochs = 2;
  e.sync.mode = SyncMode::kBlock;
  e.sync.partitions = kPartitions;
  e.sync.minibatch = 4;
  e.sync.block = 2;
  e.sync.push_codec = CodecId::kFp32;
  e.cluster.workers = 2;
  e.cluster.suspect_after_s = 2;
  e.cluster.heartbeat_s = 0.3;
  e.cluster.chunk_kib = 1;
  e.cluster.recovery = StateLoss::kExact;
  e.cluster.stall_timeout_s = 30;
  e.cluster.replicas = replicas ? 2 : 1;
  e.checkpoint.every_rounds = 2;
  e.checkpoint.every_minutes = 0;
  return settings;
}

std::string ComplaintAboutForging(std::span<const uint8_t> bytes) {
  static const auto undisturbed = [](bool replicas) {
    return Cluster(JobWithAForger(replicas), nullptr).Run();
  };
  static const SimResult references[] = {undisturbed(false), undisturbed(true)};
  const bool replicas = !bytes.empty() && bytes[0] % 2 == 1;
  Choices choices(bytes.empty() ? bytes : bytes.subspan(1));
  Forger forger(1, &choices);
  SimSettings settings = JobWithAForger(replicas);
  settings.interference = &forger;
  const SimResult result = Cluster(settings, nullptr).Run();
  std::string complaint;
  for (const std::string& violation : result.violations) complaint += violation + "\n";
  if (result.status.ok()) {
    const SimResult& reference = references[replicas];
    if (result.weights != reference.weights) complaint += "other weights\n";
    if (Figures(result) != Figures(reference)) {
      complaint += "other figures:\n" + Figures(result) + "instead of\n" + Figures(reference);
    }
  } else if (result.status.message().find("worker-1") == std::string::npos) {
    complaint += "ends without naming the forger: " + result.status.message() + "\n";
  }
  return complaint;
}

}  // namespace kumo::sim
