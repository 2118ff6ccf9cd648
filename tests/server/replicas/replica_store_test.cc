#include "server/replicas/replica_store.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "server/replicas/replicator.h"
#include "tests/common/job/small_job.h"

namespace kumo {
namespace {

const JobPlan kKeptPlan = test::DelayedJob(0).plan();
constexpr size_t kReplicaNumbers = 3;
constexpr int kWindow = 100;

FloatArray FilledArray(float value) {
  auto array = std::make_shared<Buffer<float>>(kReplicaNumbers);
  std::fill_n(array->data(), kReplicaNumbers, value);
  return array;
}

// What a server sends to have a version kept: start, weights and one slot.
std::vector<Message> Messages(int chunk, int64_t version, Replicator* replicator = nullptr) {
  Replicator own("holder", kWindow);
  StepContext context;
  const Version sent = VersionOf({{Version::kStart, FilledArray(static_cast<float>(version))},
                                  {Version::kWeights, FilledArray(20)},
                                  {Version::kFirstSlot, FilledArray(30)}});
  (replicator ? *replicator : own).Send(chunk, version, version - 1, sent, nullptr, &context);
  std::vector<Message> messages;
  for (ServerAction& action : context.actions) {
    messages.push_back(std::move(std::get<SendAction>(action).message));
  }
  return messages;
}

void AddAll(const std::vector<Message>& messages, ReplicaStore* store) {
  for (const Message& message : messages)
    ASSERT_TRUE(store->Add(message, kReplicaNumbers, kKeptPlan).ok());
}

std::vector<int64_t> Kept(const ReplicaStore& store, int chunk) {
  std::vector<int64_t> kept;
  for (const auto& [number, version] : store.Find(chunk)) kept.push_back(number);
  return kept;
}

TEST(ReplicaStore, KeepsTheNewestVersionAndTheWeightsOfTheOneBefore) {
  ReplicaStore store;
  for (int64_t version = 4; version < 8; ++version) AddAll(Messages(0, version), &store);
  const auto versions = store.Find(0);
  ASSERT_EQ(Kept(store, 0), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(versions.at(7)->arrays.size(), 3u);
  EXPECT_EQ(versions.at(6)->arrays.size(), 2u);  // no slots
  float start = 0;
  std::memcpy(&start, versions.at(6)->arrays.at(Version::kStart).bytes.data(), sizeof start);
  EXPECT_EQ(start, 6);
  EXPECT_TRUE(store.Find(1).empty());
}

// With a delay of one round, contributions to rounds up to the one after the newest version may
// come from versions up to three before it.
TEST(ReplicaStore, WithADelayMoreVersionsAreKeptAndAllOfThemAreNeeded) {
  const JobPlan plan = test::DelayedJob(1).plan();
  ReplicaStore store, lacks_one;
  for (int64_t version = 0; version < 6; ++version) {
    for (const Message& message : Messages(0, version)) {
      ASSERT_TRUE(store.Add(message, kReplicaNumbers, plan).ok());
      if (version == 3) continue;
      ASSERT_TRUE(lacks_one.Add(message, kReplicaNumbers, plan).ok());
    }
  }
  EXPECT_EQ(Kept(store, 0), (std::vector<int64_t>{2, 3, 4, 5}));
  const Result<ReplicaStore::Newest> newest = store.Unpack(0, plan);
  ASSERT_TRUE(newest.ok());
  ASSERT_EQ(newest->versions.size(), 4u);
  EXPECT_EQ(newest->versions.at(2).start->data()[0], 2);
  EXPECT_TRUE(newest->versions.at(4).slots.empty());
  EXPECT_EQ(newest->versions.at(5).slots.size(), 1u);
  EXPECT_EQ(lacks_one.Unpack(0, plan).status().code(), StatusCode::kDataLoss);
}

TEST(ReplicaStore, AVersionThatHasNotAllArrivedDoesNotCount) {
  ReplicaStore store;
  AddAll(Messages(0, 1), &store);
  std::vector<Message> next = Messages(0, 2);
  next.pop_back();
  AddAll(next, &store);
  EXPECT_EQ(Kept(store, 0), (std::vector<int64_t>{1}));
  EXPECT_EQ(store.Find(0).at(1)->arrays.size(), 3u);
}

TEST(ReplicaStore, AnyOrderAndAnyRepetitionIsTheSame) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<Message> all;
    for (int64_t version = 1; version <= 2; ++version) {
      for (int copies = 0; copies < 2; ++copies) {
        for (Message& message : Messages(0, version)) all.push_back(std::move(message));
      }
    }
    std::shuffle(all.begin(), all.end(), random);
    ReplicaStore store;
    AddAll(all, &store);
    ASSERT_EQ(Kept(store, 0), (std::vector<int64_t>{1, 2}));
    ASSERT_EQ(store.Find(0).at(2)->arrays.size(), 3u);
  }
}

// The holder has joined between the messages of a version; then it was the one before.
TEST(ReplicaStore, AVersionThatComesAgainWithoutItsSlotsIsComplete) {
  std::vector<Message> whole = Messages(0, 1);
  std::vector<Message> without_slots = Messages(0, 1);
  without_slots.pop_back();
  for (Message& message : without_slots) message.header.set_arrays(2);
  ReplicaStore store;
  ASSERT_TRUE(store.Add(whole[2], kReplicaNumbers, kKeptPlan).ok());
  AddAll(without_slots, &store);
  EXPECT_EQ(Kept(store, 0), (std::vector<int64_t>{1}));
  ASSERT_TRUE(store.Add(whole[2], kReplicaNumbers, kKeptPlan).ok());  // late
  EXPECT_EQ(Kept(store, 0), (std::vector<int64_t>{1}));
}

TEST(ReplicaStore, WhatDoesNotFitIsRefused) {
  const auto refused = [](auto change) {
    Message message = Messages(0, 1).front();
    change(&message);
    ReplicaStore store;
    return store.Add(message, kReplicaNumbers, kKeptPlan).code() == StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused([](Message*) {}));
  EXPECT_TRUE(refused([](Message* m) { m->payload.bytes = m->payload.bytes.first(8); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_round(-1); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_round(kKeptPlan.rounds() + 1); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_round(INT64_MAX); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_version_array(-1); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_version_array(99); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_arrays(0); }));
  EXPECT_TRUE(refused([](Message* m) { m->header.set_arrays(1000); }));
}

TEST(Replicator, AVersionIsThereWhenEveryArrayIsAcknowledged) {
  Replicator replicator("holder", kWindow);
  const std::vector<Message> sent = Messages(5, 9, &replicator);
  EXPECT_FALSE(replicator.idle());
  StepContext context;
  EXPECT_FALSE(replicator.OnAcknowledged(sent[0].header, &context));
  EXPECT_FALSE(replicator.OnAcknowledged(sent[0].header, &context));  // again
  EXPECT_FALSE(replicator.OnAcknowledged(sent[2].header, &context));
  StepContext again{kSecond, {}};
  replicator.Tick(&again);
  again.now = 10 * kSecond;
  replicator.Tick(&again);
  ASSERT_EQ(again.actions.size(), 1u);  // only what is missing
  EXPECT_EQ(std::get<SendAction>(again.actions[0]).message.header.version_array(),
            sent[1].header.version_array());
  EXPECT_TRUE(replicator.OnAcknowledged(sent[1].header, &context));
  EXPECT_FALSE(replicator.OnAcknowledged(sent[1].header, &context));
  EXPECT_TRUE(replicator.idle());
}

TEST(Replicator, StartedOverItSendsNothingOfBeforeAndRepeatsSoonUntilItHears) {
  Replicator replicator("holder", kWindow);
  const std::vector<Message> before = Messages(0, 1, &replicator);
  replicator.StartOver();
  EXPECT_TRUE(replicator.idle());
  const auto repeats = [&](TimeUs from) {
    int times = 0;
    for (TimeUs now = from; now < from + kSecond; now += 100 * kMillisecond) {
      StepContext context{now, {}};
      replicator.Tick(&context);
      times += !context.actions.empty();
    }
    return times;
  };
  EXPECT_EQ(repeats(kSecond), 0);
  const std::vector<Message> sent = Messages(0, 2, &replicator);
  EXPECT_GE(repeats(2 * kSecond), 3);
  StepContext context;
  for (const Message& message : sent) replicator.OnAcknowledged(message.header, &context);
  Messages(0, 3, &replicator);
  EXPECT_EQ(repeats(3 * kSecond), 0);
}

TEST(Replicator, RepeatsWhatIsNotAcknowledgedLessAndLessOften) {
  Replicator replicator("holder", kWindow);
  Messages(0, 1, &replicator);
  int times = 0;
  for (TimeUs now = 0; now < 120 * kSecond; now += kSecond) {
    StepContext context{now, {}};
    replicator.Tick(&context);
    times += !context.actions.empty();
  }
  EXPECT_GE(times, 5);
  EXPECT_LE(times, 10);
}

// A window may take a slow network a long time. What is sent twice makes it longer.
TEST(Replicator, RepeatsNothingWhileTheHolderAnswers) {
  for (const bool another_holder : {false, true}) {
    Replicator replicator("holder", kWindow);
    if (another_holder) replicator.StartOver();
    std::vector<Message> sent;
    for (int chunk = 0; chunk < 4; ++chunk) {
      for (Message& message : Messages(chunk, 1, &replicator)) sent.push_back(std::move(message));
    }
    TimeUs now = kSecond;
    for (const Message& message : sent) {
      StepContext answered{now, {}};
      replicator.OnAcknowledged(message.header, &answered);
      for (int tick = 0; tick < 15; ++tick, now += 100 * kMillisecond) {
        StepContext context{now, {}};
        replicator.Tick(&context);
        EXPECT_TRUE(context.actions.empty());
      }
    }
    EXPECT_TRUE(replicator.idle());
  }
}

TEST(Replicator, AWindowIsOnItsWayAndTheOthersFollowInOrder) {
  Replicator replicator("holder", 4);
  std::vector<Message> sent;
  for (int chunk = 0; chunk < 10; ++chunk) {
    for (Message& message : Messages(chunk, 1, &replicator)) sent.push_back(std::move(message));
  }
  EXPECT_EQ(sent.size(), 6u) << "two versions of three arrays";
  EXPECT_TRUE(replicator.IsSending(9));
  EXPECT_FALSE(replicator.IsSending(10));
  // A version that waits and is made obsolete by later ones is not sent.
  EXPECT_TRUE(Messages(9, 3, &replicator).empty());
  std::vector<std::pair<int, int64_t>> there;
  for (size_t i = 0; i < sent.size(); ++i) {
    StepContext context;
    const wire::Header header = sent[i].header;
    if (replicator.OnAcknowledged(header, &context))
      there.emplace_back(header.chunk(), header.round());
    for (ServerAction& action : context.actions) {
      sent.push_back(std::move(std::get<SendAction>(action).message));
    }
    EXPECT_LE(sent.size() - (i + 1), 6u);
  }
  EXPECT_TRUE(replicator.idle());
  std::vector<std::pair<int, int64_t>> all;
  for (int chunk = 0; chunk < 9; ++chunk) all.emplace_back(chunk, 1);
  all.emplace_back(9, 3);
  EXPECT_EQ(there, all);
}

// --- The way back.

TEST(ReplicaFetch, AsksForAWindowAtATimeInOrder) {
  std::vector<Chunk> chunks;
  for (int i = 5; i < 15; ++i) chunks.push_back({.index = i, .range = {0, kReplicaNumbers}});
  ReplicaFetch fetch("holder", chunks, 3);
  std::vector<int> asked;
  size_t answered = 0;
  while (!fetch.complete() && answered <= asked.size()) {
    StepContext context;
    fetch.Tick(&context);
    for (const ServerAction& action : context.actions) {
      asked.push_back(std::get<SendAction>(action).message.header.chunk());
    }
    EXPECT_LE(asked.size(), answered + 3);
    ASSERT_LT(answered, asked.size()) << "nothing more is asked for";
    const int chunk = asked[answered++];
    for (const Message& message : Messages(chunk, 0))
      ASSERT_TRUE(fetch.OnMessage(message, kKeptPlan).ok());
    Message ack;
    ack.header.set_type(wire::ACK);
    ack.header.set_acknowledges(wire::FETCH_REPLICA);
    ack.header.set_chunk(chunk);
    ack.header.set_versions(1);
    ASSERT_TRUE(fetch.OnMessage(ack, kKeptPlan).ok());
  }
  EXPECT_EQ(asked, (std::vector<int>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
}

struct Fetching {
  Fetching()
      : fetch("holder", std::vector{Chunk{.index = 7, .range = {0, kReplicaNumbers}}}, kWindow) {}
  void Answer(int64_t newest, uint32_t versions) {
    Message ack;
    ack.header.set_type(wire::ACK);
    ack.header.set_acknowledges(wire::FETCH_REPLICA);
    ack.header.set_chunk(7);
    ack.header.set_round(newest);
    ack.header.set_versions(versions);
    ASSERT_TRUE(fetch.OnMessage(ack, kKeptPlan).ok());
  }
  ReplicaFetch fetch;
};

TEST(ReplicaFetch, IsCompleteWhenAllThatTheHolderNamesIsThere) {
  for (const bool answer_first : {true, false}) {
    Fetching f;
    StepContext asked;
    f.fetch.Tick(&asked);
    ASSERT_EQ(asked.actions.size(), 1u);
    if (answer_first) f.Answer(4, 2);
    for (const int64_t version : {3, 4}) {
      EXPECT_FALSE(f.fetch.complete());
      for (const Message& message : Messages(7, version)) {
        ASSERT_TRUE(f.fetch.OnMessage(message, kKeptPlan).ok());
      }
    }
    if (!answer_first) f.Answer(4, 2);
    EXPECT_TRUE(f.fetch.complete());
    EXPECT_FALSE(f.fetch.lost());
    StepContext more{kSecond * 100, {}};
    f.fetch.Tick(&more);
    EXPECT_TRUE(more.actions.empty());
  }
}

TEST(ReplicaFetch, AsksAgainOnlyIfNothingArrivesForAWhile) {
  std::vector<Chunk> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back({.index = i, .range = {0, kReplicaNumbers}});
  ReplicaFetch fetch("holder", chunks, 4);
  std::map<int, int> asked;  // times, by chunk
  TimeUs now = 0;
  const auto tick = [&](TimeUs until) {
    for (; now < until; now += 100 * kMillisecond) {
      StepContext context{now, {}};
      fetch.Tick(&context);
      for (const ServerAction& action : context.actions) {
        ++asked[std::get<SendAction>(action).message.header.chunk()];
      }
    }
  };
  tick(100 * kMillisecond);
  EXPECT_EQ(asked, (std::map<int, int>{{0, 1}})) << "until the holder is heard";
  // A slow link brings an array each second, and loses the last chunk.
  for (int chunk = 0; chunk < 3; ++chunk) {
    for (const Message& message : Messages(chunk, 0)) {
      ASSERT_TRUE(fetch.OnMessage(message, kKeptPlan).ok());
      tick(now + kSecond);
    }
  }
  EXPECT_EQ(asked, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  tick(now + 3 * kSecond);
  EXPECT_EQ(asked.at(3), 2);
}

TEST(ReplicaFetch, SaysWhenNothingWasKept) {
  Fetching f;
  f.Answer(-1, 0);
  EXPECT_TRUE(f.fetch.lost());
  EXPECT_FALSE(f.fetch.complete());
}

TEST(ReplicaFetch, RefusesWhatWasNotAskedFor) {
  Fetching f;
  EXPECT_EQ(f.fetch.OnMessage(Messages(8, 1).front(), kKeptPlan).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kumo
