#include "common/transport/header_limits.h"

#include <cstring>
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
#include "proto/wire.pb.h"

namespace kumo {
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
