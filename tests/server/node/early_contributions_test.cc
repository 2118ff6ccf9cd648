#include "server/node/early_contributions.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace kumo {
namespace {

EarlyContributions::Early Push(const PeerName& from, int chunk, int64_t round, size_t bytes = 0,
                               TimeUs since = 0) {
  EarlyContributions::Early early{from, {}, since};
  early.message.header.set_type(wire::PUSH);
  early.message.header.set_chunk(chunk);
  early.message.header.set_round(round);
  if (bytes > 0) {
    auto owner = std::make_shared<std::string>(bytes, 'x');
    early.message.payload = {owner, std::as_bytes(std::span(*owner))};
  }
  return early;
}

TEST(EarlyContributionsTest, TheyAreAllThereWhenTheyAreDueAndOnce) {
  EarlyContributions early;
  EXPECT_TRUE(early.empty());
  early.Keep(Push("worker/a/1", 0, 5));
  early.Keep(Push("worker/a/1", 1, 5));
  early.Keep(Push("worker/b/1", 0, 5));
  EXPECT_FALSE(early.empty());
  EXPECT_EQ(early.TakeDue(EarlyContributions::kInterval).size(), 3u);
  EXPECT_TRUE(early.empty());
  early.Keep(Push("worker/b/1", 0, 5));
  EXPECT_TRUE(early.TakeDue(EarlyContributions::kInterval + 1).empty()) << "not all the time";
  EXPECT_FALSE(early.empty());
}

TEST(EarlyContributionsTest, WhatIsNeverBorneOutIsDroppedWhenItsTimeIsUp) {
  EarlyContributions early;
  const TimeUs limit = EarlyContributions::kPatience;
  early.Keep(Push("worker/a/1", 0, 5, 0, 0));
  early.Keep(Push("worker/a/1", 0, 5, 0, limit));  // a copy: its time goes on
  early.Keep(Push("worker/b/1", 0, 5, 0, limit));
  const auto due = early.TakeDue(limit + 1);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].from, "worker/b/1");
}

TEST(EarlyContributionsTest, WhoSendsWithoutEndLosesItsOwn) {
  EarlyContributions early;
  constexpr size_t kChunk = size_t{1} << 20;
  early.Keep(Push("worker/honest/1", 0, 5, kChunk));
  for (int chunk = 0; chunk < 300; ++chunk) early.Keep(Push("worker/flood/1", chunk, 5, kChunk));
  size_t bytes = 0;
  bool honest = false;
  for (const auto& one : early.TakeDue(kSecond)) {
    bytes += one.message.payload.bytes.size();
    honest |= one.from == "worker/honest/1";
  }
  EXPECT_TRUE(honest);
  EXPECT_LE(bytes, EarlyContributions::kMostBytes);
  EXPECT_GT(bytes, EarlyContributions::kMostBytes / 2);
}

TEST(EarlyContributionsTest, WhatAMemberHadIsForgottenWithIt) {
  EarlyContributions early;
  early.Keep(Push("worker/a/1", 0, 5, 100));
  early.Keep(Push("worker/a/1", 1, 5, 100));
  early.Forget("worker/b/1");
  EXPECT_FALSE(early.empty());
  early.Forget("worker/a/1");
  EXPECT_TRUE(early.empty());
}

}  // namespace
}  // namespace kumo
