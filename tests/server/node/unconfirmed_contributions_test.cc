#include "server/node/unconfirmed_contributions.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace kumo {
namespace {

UnconfirmedContributions::Entry Push(const PeerName& from, int chunk, int64_t round,
                                     size_t bytes = 0, TimeUs since = 0) {
  UnconfirmedContributions::Entry entry{from, {}, since};
  entry.message.header.set_type(wire::PUSH);
  entry.message.header.set_chunk(chunk);
  entry.message.header.set_round(round);
  if (bytes > 0) {
    auto owner = std::make_shared<std::string>(bytes, 'x');
    entry.message.payload = {owner, std::as_bytes(std::span(*owner))};
  }
  return entry;
}

TEST(UnconfirmedContributions, TheyAreAllThereWhenTheyAreDueAndOnce) {
  UnconfirmedContributions unconfirmed;
  EXPECT_TRUE(unconfirmed.empty());
  unconfirmed.Keep(Push("worker/a/1", 0, 5));
  unconfirmed.Keep(Push("worker/a/1", 1, 5));
  unconfirmed.Keep(Push("worker/b/1", 0, 5));
  EXPECT_FALSE(unconfirmed.empty());
  EXPECT_EQ(unconfirmed.TakeDue(UnconfirmedContributions::kInterval).size(), 3u);
  EXPECT_TRUE(unconfirmed.empty());
  unconfirmed.Keep(Push("worker/b/1", 0, 5));
  EXPECT_TRUE(unconfirmed.TakeDue(UnconfirmedContributions::kInterval + 1).empty())
      << "not all the time";
  EXPECT_FALSE(unconfirmed.empty());
}

TEST(UnconfirmedContributions, WhatIsNeverBorneOutIsDroppedWhenItsTimeIsUp) {
  UnconfirmedContributions unconfirmed;
  const TimeUs limit = UnconfirmedContributions::kPatience;
  unconfirmed.Keep(Push("worker/a/1", 0, 5, 0, 0));
  unconfirmed.Keep(Push("worker/a/1", 0, 5, 0, limit));  // a copy keeps the time of the first
  unconfirmed.Keep(Push("worker/b/1", 0, 5, 0, limit));
  const auto due = unconfirmed.TakeDue(limit + 1);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].from, "worker/b/1");
}

TEST(UnconfirmedContributions, WhoSendsWithoutEndLosesItsOwn) {
  UnconfirmedContributions unconfirmed;
  constexpr size_t kChunk = size_t{1} << 20;
  unconfirmed.Keep(Push("worker/honest/1", 0, 5, kChunk));
  for (int chunk = 0; chunk < 300; ++chunk)
    unconfirmed.Keep(Push("worker/flood/1", chunk, 5, kChunk));
  size_t bytes = 0;
  bool honest = false;
  for (const auto& one : unconfirmed.TakeDue(kSecond)) {
    bytes += one.message.payload.bytes.size();
    honest |= one.from == "worker/honest/1";
  }
  EXPECT_TRUE(honest);
  EXPECT_LE(bytes, UnconfirmedContributions::kMostBytes);
  EXPECT_GT(bytes, UnconfirmedContributions::kMostBytes / 2);
}

TEST(UnconfirmedContributions, WhatAMemberHadIsForgottenWithIt) {
  UnconfirmedContributions unconfirmed;
  unconfirmed.Keep(Push("worker/a/1", 0, 5, 100));
  unconfirmed.Keep(Push("worker/a/1", 1, 5, 100));
  unconfirmed.Forget("worker/b/1");
  EXPECT_FALSE(unconfirmed.empty());
  unconfirmed.Forget("worker/a/1");
  EXPECT_TRUE(unconfirmed.empty());
}

}  // namespace
}  // namespace kumo
