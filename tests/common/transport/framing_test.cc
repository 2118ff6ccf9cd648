
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/job/protocol.h"
#include "common/transport/framing.h"
#include "proto/wire.pb.h"

namespace kumo {

namespace {

using ::testing::HasSubstr;

FramingOptions Options() {
  FramingOptions options;
  options.job = 42;
  options.max_header_bytes = 4096;
  options.max_payload_bytes = 1000;
  return options;
}

Payload MakePayload(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, std::as_bytes(std::span(*owner))};
}

std::string RandomBytes(Rng& rng, size_t n) {
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.NextUint32());
  return bytes;
}

Message RandomMessage(Rng& rng) {
  Message message;
  message.header.set_type(wire::PUSH);
  message.header.set_round(static_cast<int64_t>(rng.NextBelow(1'000'000)));
  message.header.set_partition(static_cast<int32_t>(rng.NextBelow(8)));
  message.header.set_codec(static_cast<uint32_t>(rng.NextBelow(6)));
  message.header.mutable_hello()->set_name(std::string(rng.NextBelow(50), 'n'));
  if (rng.NextBelow(3) > 0) message.payload = MakePayload(RandomBytes(rng, rng.NextBelow(1001)));
  return message;
}

// The frames of a message, as the other side gets them.
std::vector<Payload> Frames(Message message, bool checksum = true,
                            FramingOptions options = Options()) {
  std::string header;
  const Status status = EncodeHeader(options, checksum, message, header);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<Payload> frames = {MakePayload(header)};
  if (!message.payload.empty()) frames.push_back(message.payload);
  return frames;
}

std::string Refusal(const std::vector<Payload>& frames, StatusCode code) {
  const Result<Message> message = DecodeMessage(Options(), frames);
  if (message.ok()) return "accepted";
  EXPECT_EQ(message.status().code(), code) << message.status().message();
  return message.status().message();
}

Message Push(const std::string& payload) {
  Message message;
  message.header.set_type(wire::PUSH);
  if (!payload.empty()) message.payload = MakePayload(payload);
  return message;
}

TEST(FramingTest, EveryMessageComesBackAsItWasSent) {
  Rng rng(1, RngPurpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    const Message sent = RandomMessage(rng);
    const Result<Message> received = DecodeMessage(Options(), Frames(sent, i % 2 == 0));
    ASSERT_TRUE(received.ok()) << received.status().message();
    EXPECT_EQ(received->header.hello().name(), sent.header.hello().name());
    EXPECT_EQ(received->header.round(), sent.header.round());
    EXPECT_EQ(received->header.protocol(), kProtocolVersion);
    EXPECT_EQ(received->header.job(), Options().job);
    ASSERT_EQ(received->payload.bytes.size(), sent.payload.bytes.size());
    // Not a copy: the very same bytes, held by the same owner.
    EXPECT_EQ(received->payload.owner, sent.payload.empty() ? nullptr : sent.payload.owner);
  }
}

TEST(FramingTest, AChecksumOfTheSenderIsKeptAndChecked) {
  Message message = Push("abc");
  message.header.set_payload_crc32c(PayloadChecksum(message.payload.bytes));
  EXPECT_TRUE(DecodeMessage(Options(), Frames(message, false)).ok());
  message.header.set_payload_crc32c(message.header.payload_crc32c() ^ 1);
  EXPECT_THAT(Refusal(Frames(message, true), StatusCode::kDataLoss), HasSubstr("damaged"));
}

TEST(FramingTest, AnyFlippedBitOfACheckedPayloadIsFound) {
  const std::vector<Payload> frames = Frames(Push("some numbers"));
  const std::string payload = "some numbers";
  for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
    std::string damaged = payload;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(Refusal({frames[0], MakePayload(damaged)}, StatusCode::kDataLoss),
                HasSubstr("damaged in transit"));
  }
}

TEST(FramingTest, AnotherJobAndAnotherProtocolAreRefusedByName) {
  FramingOptions other = Options();
  other.job = 43;
  EXPECT_THAT(Refusal(Frames(Push(""), true, other), StatusCode::kFailedPrecondition),
              HasSubstr("another job"));
  wire::Header header;
  header.set_type(wire::PULL);
  header.set_protocol(kProtocolVersion + 1);
  header.set_job(Options().job);
  EXPECT_THAT(Refusal({MakePayload(header.SerializeAsString())}, StatusCode::kFailedPrecondition),
              HasSubstr("protocol version " + std::to_string(kProtocolVersion + 1)));
}

TEST(FramingTest, IntroductionsPassWhateverTheirJobAndProtocol) {
  for (const wire::Type type :
       {wire::HELLO, wire::REFUSED, wire::STATUS, wire::STATUS_REPLY, wire::PING, wire::PONG}) {
    wire::Header header;
    header.set_type(type);
    header.set_protocol(kProtocolVersion + 1);
    header.set_job(Options().job + 1);
    const auto message =
        DecodeMessage(Options(), std::vector<Payload>{MakePayload(header.SerializeAsString())});
    EXPECT_TRUE(message.ok()) << message.status().message();
  }
}

TEST(FramingTest, WrongNumbersOfFramesAreRefused) {
  EXPECT_THAT(Refusal({}, StatusCode::kInvalidArgument), HasSubstr("0 frames"));
  const std::vector<Payload> frames = Frames(Push("abc"));
  EXPECT_THAT(Refusal({frames[0], frames[1], frames[1]}, StatusCode::kInvalidArgument),
              HasSubstr("3 frames"));
  EXPECT_THAT(Refusal({frames[0]}, StatusCode::kInvalidArgument), HasSubstr("payload of 0 bytes"));
  EXPECT_THAT(Refusal({Frames(Push(""))[0], frames[1]}, StatusCode::kInvalidArgument),
              HasSubstr("payload of 3 bytes, but the header announces 0"));
}

TEST(FramingTest, WhatIsTooLongIsRefusedOnBothSides) {
  FramingOptions wide = Options();
  wide.max_payload_bytes = 1 << 20;
  wide.max_header_bytes = 1 << 20;
  Message long_header = Push("");
  long_header.header.mutable_hello()->set_experiment_text(std::string(5000, 'x'));
  Message long_payload = Push(std::string(1001, 'x'));
  EXPECT_THAT(Refusal(Frames(long_payload, true, wide), StatusCode::kInvalidArgument),
              HasSubstr("announces a payload of 1001 bytes"));
  EXPECT_THAT(Refusal(Frames(long_header, true, wide), StatusCode::kInvalidArgument),
              HasSubstr("the limit is 4096"));
  std::string frame;
  EXPECT_EQ(EncodeHeader(Options(), true, long_payload, frame).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(EncodeHeader(Options(), true, long_header, frame).code(),
            StatusCode::kResourceExhausted);
}

TEST(FramingTest, AHeaderWithoutATypeIsRefused) {
  EXPECT_THAT(Refusal({MakePayload("")}, StatusCode::kInvalidArgument),
              HasSubstr("without a type"));
}

// Changes one frame somehow: flips, cuts, repeats, swaps with noise.
void Mutate(Rng& rng, std::string& bytes) {
  switch (rng.NextBelow(5)) {
    case 0:
      if (!bytes.empty())
        bytes[rng.NextBelow(bytes.size())] ^= static_cast<char>(1 << rng.NextBelow(8));
      break;
    case 1:
      bytes.resize(rng.NextBelow(bytes.size() + 1));
      break;
    case 2:
      bytes += bytes.substr(rng.NextBelow(bytes.size() + 1));
      break;
    case 3:
      if (!bytes.empty()) bytes[rng.NextBelow(bytes.size())] = static_cast<char>(rng.NextUint32());
      break;
    default:
      bytes.insert(rng.NextBelow(bytes.size() + 1), RandomBytes(rng, rng.NextBelow(20)));
  }
}

TEST(FramingTest, MutatedFramesAreDecodedConsistentlyOrRefused) {
  testing::internal::CaptureStderr();
  int accepted = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 100'000; ++seed) {
    Rng rng(seed, RngPurpose::kTest, 1);
    std::vector<Payload> frames = Frames(RandomMessage(rng));
    const uint64_t mutations = 1 + rng.NextBelow(4);
    for (uint64_t m = 0; m < mutations; ++m) {
      Payload& frame = frames[rng.NextBelow(frames.size())];
      std::string bytes(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
      Mutate(rng, bytes);
      frame = MakePayload(bytes);
    }
    const Result<Message> message = DecodeMessage(Options(), frames);
    if (!message.ok()) {
      ++refused;
      EXPECT_FALSE(message.status().message().empty());
      continue;
    }
    ++accepted;
    // What passes obeys the options.
    const wire::Header& header = message->header;
    ASSERT_NE(header.type(), wire::TYPE_UNSPECIFIED) << "seed " << seed;
    ASSERT_EQ(header.payload_bytes(), message->payload.bytes.size()) << "seed " << seed;
    ASSERT_LE(message->payload.bytes.size(), Options().max_payload_bytes) << "seed " << seed;
    if (!IsIntroduction(header.type())) {
      ASSERT_EQ(header.job(), Options().job) << "seed " << seed;
      ASSERT_EQ(header.protocol(), kProtocolVersion) << "seed " << seed;
    }
    if (header.payload_crc32c() != 0 && !message->payload.empty()) {
      ASSERT_EQ(header.payload_crc32c(), PayloadChecksum(message->payload.bytes))
          << "seed " << seed;
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a peer must not fill our log";
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 10'000);
}

TEST(FramingTest, NoiseIsNeverAccepted) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed, RngPurpose::kTest, 2);
    std::vector<Payload> frames;
    const uint64_t count = rng.NextBelow(4);
    for (uint64_t i = 0; i < count; ++i) {
      frames.push_back(MakePayload(RandomBytes(rng, rng.NextBelow(200))));
    }
    EXPECT_FALSE(DecodeMessage(Options(), frames).ok()) << "seed " << seed;
  }
}

}  // namespace

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using ::testing::HasSubstr;

Status Check(const std::string& bytes) { return CheckFieldLimits(std::as_bytes(std::span(bytes))); }
Status Check(const wire::Header& header) { return Check(header.SerializeAsString()); }

// "Hello.claims", "checkpoint.Origin.taken"
std::string NameOf(const FieldDescriptor& field) {
  std::string name = field.full_name();
  for (const std::string prefix : {"kumo.wire.", "kumo."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

// The ways from a header to each message that it can contain; no message contains itself.
void Walk(const Descriptor& message, std::vector<const FieldDescriptor*> way,
          std::map<const Descriptor*, std::vector<const FieldDescriptor*>>* ways) {
  ASSERT_LT(way.size(), 10u);
  ways->try_emplace(&message, way);
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    way.push_back(&field);
    Walk(*field.message_type(), way, ways);
    way.pop_back();
  }
}

std::map<const Descriptor*, std::vector<const FieldDescriptor*>> Messages() {
  std::map<const Descriptor*, std::vector<const FieldDescriptor*>> ways;
  Walk(*wire::Header::descriptor(), {}, &ways);
  return ways;
}

// A header with one message of the kind that `way` leads to; that message.
Message* Along(const std::vector<const FieldDescriptor*>& way, wire::Header* header) {
  Message* message = header;
  for (const FieldDescriptor* field : way) {
    const Reflection* const reflection = message->GetReflection();
    message = field->is_repeated() ? reflection->AddMessage(message, field)
                                   : reflection->MutableMessage(message, field);
  }
  return message;
}

void Add(Message* message, const FieldDescriptor& field, int bytes) {
  const Reflection* const r = message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.is_map()) {  // a key may only come once
        auto* evaluated =
            static_cast<wire::CoordinatorState::EndedEpoch*>(message)->mutable_evaluated();
        (*evaluated)[static_cast<int>(evaluated->size())];
      } else {
        r->AddMessage(message, &field);
      }
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      field.is_repeated() ? r->AddString(message, &field, std::string(bytes, 'x'))
                          : r->SetString(message, &field, std::string(bytes, 'x'));
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      r->AddInt32(message, &field, -1);
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      r->AddInt64(message, &field, 300);
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      r->AddFloat(message, &field, 0.5);
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      r->AddDouble(message, &field, 0.5);
      return;
    default:
      FAIL() << field.full_name() << ": teach this test its type";
  }
}

// A field that is added to wire.proto without a limit makes this fail.
TEST(HeaderLimitsTest, EveryTextAndEveryListHasALimitAndNothingElse) {
  std::set<std::string> limited, fields;
  for (const FieldLimit& limit : FieldLimits()) {
    EXPECT_TRUE(limited.insert(std::string(limit.field)).second) << limit.field << " twice";
  }
  for (const auto& [message, way] : Messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      const bool text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      // A map's entries are its elements.
      if (text || field.is_repeated()) fields.insert(NameOf(field));
      for (const FieldLimit& limit : FieldLimits()) {
        if (limit.field != NameOf(field)) continue;
        EXPECT_EQ(limit.bytes > 0, text) << limit.field;
        EXPECT_TRUE(limit.elements == 1 || field.is_repeated()) << limit.field;
      }
    }
  }
  EXPECT_EQ(limited, fields);
}

// Protobuf merges a message that comes again into the first: a list in it would be as long as all
// of them together.
TEST(HeaderLimitsTest, AMessageThatIsNoListsComesOnce) {
  for (const auto& [message, way] : Messages()) {
    if (way.empty() || way.back()->is_repeated()) continue;
    wire::Header header;
    Along(way, &header);
    EXPECT_TRUE(Check(header).ok()) << way.back()->full_name();
    wire::Header outer;
    Message* const owner = Along({way.begin(), way.end() - 1}, &outer);
    Message* const inner = owner->GetReflection()->MutableMessage(owner, way.back());
    // The field twice: what the first does not know stands beside it.
    owner->GetReflection()->MutableUnknownFields(owner)->AddLengthDelimited(
        way.back()->number(), inner->SerializeAsString());
    EXPECT_THAT(Check(outer).message(), HasSubstr(NameOf(*way.back()))) << way.back()->full_name();
  }
}

TEST(HeaderLimitsTest, EachFieldMayBeAsLongAsItsLimitAndNoLonger) {
  for (const auto& [message, way] : Messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      const auto limits = FieldLimits();
      const auto limit = std::ranges::find_if(
          limits, [&](const FieldLimit& one) { return one.field == NameOf(field); });
      if (limit == limits.end()) continue;
      wire::Header header;
      Message* const owner = Along(way, &header);
      for (int e = 0; e < limit->elements; ++e) Add(owner, field, e == 0 ? limit->bytes : 0);
      EXPECT_TRUE(Check(header).ok()) << limit->field << ": " << Check(header).message();
      if (field.is_repeated()) {
        Add(owner, field, 0);
        EXPECT_THAT(Check(header).message(), HasSubstr(std::string(limit->field))) << limit->field;
      }
      if (limit->bytes > 0) {
        wire::Header longer;
        Add(Along(way, &longer), field, limit->bytes + 1);
        EXPECT_THAT(Check(longer).message(), HasSubstr(std::string(limit->field)));
      }
    }
  }
}

TEST(HeaderLimitsTest, AListInPiecesIsCountedWhole) {
  wire::Header header;
  for (int i = 0; i < 40; ++i) header.mutable_worker_report()->add_unheard(i);
  const std::string half = header.SerializeAsString();
  EXPECT_TRUE(Check(half).ok());
  // The same list again within one message, and of elements one by one.
  wire::WorkerReport report = header.worker_report();
  std::string inner = report.SerializeAsString() + report.SerializeAsString();
  std::string bytes = "\xc2\x01";  // worker_report, by its length
  ASSERT_LT(inner.size(), 128u);
  bytes += static_cast<char>(inner.size());
  EXPECT_FALSE(Check(bytes + inner).ok());
  inner.clear();
  for (int i = 0; i < 63; ++i) inner += std::string("\x78\x01", 2);  // unheard, a varint each
  bytes = "\xc2\x01";
  bytes += static_cast<char>(inner.size());
  EXPECT_TRUE(Check(bytes + inner).ok());
}

TEST(HeaderLimitsTest, WhatIsBrokenIsRefusedOrParsedButNeverMore) {
  wire::Header good;
  good.set_type(wire::HELLO);
  good.mutable_hello()->set_name("worker-0");
  for (int i = 0; i < 20; ++i) good.mutable_hello()->add_claims()->set_partition(i);
  good.mutable_hello()->mutable_spec()->add_tensors()->add_shape(7);
  good.mutable_origin()->add_taken("fc1");
  const std::string whole = good.SerializeAsString();
  EXPECT_TRUE(Check(whole).ok());
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, RngPurpose::kTest);
    std::string bytes = whole.substr(0, rng.NextBelow(whole.size() + 1));
    for (uint64_t flips = rng.NextBelow(4); flips > 0 && !bytes.empty(); --flips) {
      bytes[rng.NextBelow(bytes.size())] = static_cast<char>(rng.NextUint32());
    }
    wire::Header header;
    // Bytes of whatever protobuf takes are taken here too, unless something is too long.
    if (header.ParseFromString(bytes) && !Check(bytes).ok()) {
      EXPECT_THAT(Check(bytes).message(), HasSubstr("more than")) << "seed " << seed;
    }
  }
}

TEST(HeaderLimitsTest, AMillionBytesOfEmptyClaimsAreRefused) {
  std::string claims;
  for (int i = 0; i < 330'000; ++i) claims += std::string("\x8a\x01\0", 3);
  std::string header = "\xaa\x01";
  uint32_t length = static_cast<uint32_t>(claims.size());
  for (; length >= 128; length >>= 7) header += static_cast<char>(length | 128);
  header += static_cast<char>(length);
  header += claims;
  wire::Header parsed;
  ASSERT_TRUE(parsed.ParseFromString(header));
  ASSERT_EQ(parsed.hello().claims_size(), 330'000);
  EXPECT_THAT(Check(header).message(), HasSubstr("Hello.claims has more than 4096 elements"));
}

}  // namespace

}  // namespace kumo
