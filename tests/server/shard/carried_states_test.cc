#include "server/shard/carried_states.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::PackFloats;
using test::StateMessage;
using test::UnpackFloats;
using testing::ElementsAre;

const Chunk kChunk{.index = 4, .server = 0, .segment = Segment::kDecayed, .range = {100, 103}};
constexpr int kPartitions = 2;
const JobPlan kCarriedPlan = [] {
  test::Job job = test::DelayedJob(0);
  job.experiment.sync.partitions = kPartitions;
  return job.plan();
}();

Message PutMessage(int64_t version, int partition, float value) {
  return StateMessage(wire::PUT_STATE, kChunk, version, partition, 0,
                      PackFloats(std::vector<float>(3, value)));
}

wire::Header Asking(int64_t version, int partition, bool wait = false) {
  wire::Header header = StateMessage(wire::GET_STATE, kChunk, version, partition, 0).header;
  header.set_wait(wait);
  header.set_request(100 * version + partition);
  return header;
}

std::vector<SendAction> Sent(const StepContext& context) {
  std::vector<SendAction> sent;
  for (const ServerAction& action : context.actions) sent.push_back(std::get<SendAction>(action));
  return sent;
}

TEST(CarriedStates, WhoKeepsAStateIsToldWhenTheRoundOfItsVersionHasClosed) {
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  StepContext context;
  const auto put = [&](const char* from, int64_t version, int partition, uint64_t request) {
    Message message = PutMessage(version, partition, 1);
    message.header.set_request(request);
    ASSERT_TRUE(states.Put(from, message, true, 6, /*held=*/true, &context).ok());
    EXPECT_EQ(Sent(context).back().message.header.request(), request);
  };
  put("worker/a/1", 6, 0, 20);
  put("worker/b/1", 7, 1, 30);
  put("worker/b/1", 7, 1, 31);  // another request for the same
  for (const SendAction& send : Sent(context)) EXPECT_TRUE(send.message.header.held());
  for (const int64_t closed : {5, 6, 7, 7}) {
    StepContext then;
    states.Acknowledge(closed, &then);
    const std::vector<SendAction> told = Sent(then);
    if (closed == 5) {
      EXPECT_TRUE(told.empty());
      continue;
    }
    if (told.empty()) continue;  // once is enough
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].to, closed == 6 ? "worker/a/1" : "worker/b/1");
    EXPECT_EQ(told[0].message.header.acknowledges(), wire::PUT_STATE);
    EXPECT_EQ(told[0].message.header.round(), closed);
    EXPECT_EQ(told[0].message.header.request(), closed == 6 ? 20u : 31u);
    EXPECT_FALSE(told[0].message.header.held());
  }
}

TEST(CarriedStates, AStateThatCameLateIsAcknowledgedAndKeptByNobody) {
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  for (const int64_t version : {5, 8}) {
    StepContext context;
    ASSERT_TRUE(states.Put("worker/a/1", PutMessage(version, 0, 1), true, 6, true, &context).ok());
    ASSERT_EQ(context.actions.size(), 1u);
    EXPECT_FALSE(Sent(context)[0].message.header.held());
  }
  ShardSnapshot snapshot{5, {}};
  states.AddTo(&snapshot);
  EXPECT_TRUE(snapshot.arrays.empty());
}

TEST(CarriedStates, WhoWaitsForAStateGetsItWhenItIsPut) {
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  EXPECT_FALSE(states.Asks("worker/old/1", Asking(7, 1, true), 6).value());
  EXPECT_FALSE(states.Asks("worker/new/1", Asking(7, 1, true), 6).value());  // its next owner
  EXPECT_FALSE(states.Asks("worker/gone/1", Asking(7, 0, true), 6).value());
  states.Forget("worker/gone/1");
  StepContext context;
  ASSERT_TRUE(states.Put("worker/a/1", PutMessage(7, 1, 3), true, 6, false, &context).ok());
  ASSERT_TRUE(states.Put("worker/a/1", PutMessage(7, 0, 4), true, 6, false, &context).ok());
  std::vector<SendAction> answers = Sent(context);
  std::erase_if(answers, [](const auto& s) { return s.message.header.type() != wire::STATE; });
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].to, "worker/new/1");
  EXPECT_EQ(answers[0].message.header.request(), 701u);
  EXPECT_THAT(UnpackFloats(answers[0].message.payload), ElementsAre(3, 3, 3));
}

// Nobody has it any more: whoever asks goes on without, and so does the snapshot.
TEST(CarriedStates, AStateThatNobodyWaitsForIsLost) {
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  StepContext context;
  ASSERT_TRUE(states.Put("worker/a/1", PutMessage(6, 0, 1), true, 6, false, &context).ok());
  EXPECT_FALSE(states.IsComplete(6));
  EXPECT_TRUE(states.Asks("worker/b/1", Asking(7, 1), 6).value());  // may still be put
  EXPECT_FALSE(states.IsComplete(7));
  EXPECT_TRUE(states.Asks("worker/b/1", Asking(6, 1), 6).value());
  EXPECT_TRUE(states.IsComplete(6));
  StepContext answer;
  states.Answer("worker/b/1", Asking(6, 1), &answer);
  EXPECT_TRUE(Sent(answer)[0].message.payload.empty());
  ShardSnapshot snapshot{6, {}};
  states.AddTo(&snapshot);
  EXPECT_EQ(snapshot.arrays.size(), 1u);
}

TEST(CarriedStates, WhatBelongsToOlderVersionsIsDropped) {
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  StepContext context;
  for (const int64_t version : {6, 7}) {
    for (int p = 0; p < kPartitions; ++p) {
      ASSERT_TRUE(
          states.Put("worker/a/1", PutMessage(version, p, 1), true, 6, false, &context).ok());
    }
  }
  EXPECT_TRUE(states.IsComplete(6));
  states.DropBefore(7);
  EXPECT_FALSE(states.IsComplete(6));
  EXPECT_TRUE(states.IsComplete(7));
}

TEST(CarriedStates, AChunkOfStatisticsCarriesNothing) {
  Chunk chunk = kChunk;
  chunk.segment = Segment::kStatistics;
  CarriedStates states(chunk, &kCarriedPlan, 1);
  EXPECT_TRUE(states.IsComplete(3));
  StepContext context;
  EXPECT_EQ(states.Put("worker/a/1", PutMessage(6, 0, 1), true, 6, false, &context).code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(states.Asks("worker/a/1", Asking(6, 0), 6).ok());
  EXPECT_TRUE(context.actions.empty());
}

TEST(CarriedStates, ASnapshotGivesThemBackHoweverItIsCut) {
  const float numbers[] = {1, 2, 3, 4, 5};
  const auto piece = [&](int partition, int64_t begin, int64_t end) {
    return StateArray{StateKind::kPartitionState,
                      partition,
                      0,
                      begin,
                      nullptr,
                      std::span(numbers).subspan(begin - 99, end - begin)};
  };
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  states.Restore({6, {piece(0, 99, 101), piece(0, 101, 104), piece(1, 100, 103)}});
  EXPECT_TRUE(states.IsComplete(6));
  for (int p = 0; p < kPartitions; ++p) {
    StepContext context;
    EXPECT_TRUE(states.Asks("worker/a/1", Asking(6, p), 6).value());
    states.Answer("worker/a/1", Asking(6, p), &context);
    EXPECT_THAT(UnpackFloats(Sent(context)[0].message.payload), ElementsAre(2, 3, 4));
  }
}

// Another part of the state was lost with a worker, and the snapshot is of other chunks.
TEST(CarriedStates, AStateOfWhichAPartIsMissingIsLost) {
  const float numbers[] = {1, 2, 3};
  const auto piece = [&](int partition, int64_t begin, int64_t end) {
    return StateArray{StateKind::kPartitionState,
                      partition,
                      0,
                      begin,
                      nullptr,
                      std::span(numbers).subspan(begin - 100, end - begin)};
  };
  CarriedStates states(kChunk, &kCarriedPlan, 1);
  states.Restore({6, {piece(0, 100, 102), piece(1, 100, 101), piece(1, 101, 103)}});
  for (int p = 0; p < kPartitions; ++p) {
    StepContext context;
    EXPECT_TRUE(states.Asks("worker/a/1", Asking(6, p), 6).value());
    states.Answer("worker/a/1", Asking(6, p), &context);
    EXPECT_EQ(Sent(context)[0].message.payload.empty(), p == 0) << p;
  }
}

}  // namespace
}  // namespace kumo
