#include "worker/session/session.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/job/protocol.h"
#include "tests/worker/session/session_harness.h"

namespace kumo {
namespace {

using test::Bytes;
using test::Script;
using test::SmallSettings;

// --- A whole job.

TEST(Session, ComputesAndPushesEachBlockOnceAndEvaluatesEachEpoch) {
  for (const int servers : {1, 3}) {
    Script script(SmallSettings(servers));
    script.Join();
    script.Order({{0, 0}, {1, 0}, {2, 0}});
    script.Run();
    std::vector<std::pair<int64_t, int>> expected;
    for (int64_t r = 0; r < 8; ++r) {
      for (int p = 0; p < 3; ++p) expected.emplace_back(r, p);
    }
    EXPECT_EQ(script.trained, expected);
    EXPECT_EQ(script.evaluated, (std::vector<std::pair<int64_t, int>>{
                                    {4, 0}, {4, 1}, {4, 2}, {8, 0}, {8, 1}, {8, 2}}));
    std::set<std::tuple<int64_t, int, int>> pushes;
    for (const auto& send : script.log) {
      const wire::Header& h = send.message.header;
      if (h.type() == wire::PUSH) {
        EXPECT_TRUE(pushes.emplace(h.round(), h.partition(), h.chunk()).second);
        EXPECT_EQ(send.server, script.map().chunks()[h.chunk()].server);
        EXPECT_EQ(h.has_metrics(), h.chunk() == 0);
      }
    }
    EXPECT_EQ(pushes.size(), 8 * 3 * script.map().chunks().size());
    wire::Header done;
    done.set_type(wire::HEARTBEAT_REPLY);
    done.mutable_orders()->set_finished(true);
    script.sent.clear();
    script.ReceiveHeader(0, done);
    ASSERT_TRUE(script.left);
    EXPECT_TRUE(script.left->ok());
    EXPECT_EQ(script.CountSent(wire::BYE), 1) << "server 0 waits for it";
  }
}

// Each version of them is waited for: a server may be behind with any chunk, and would refuse
// contributions to later rounds.
TEST(Session, NumbersOfFrozenChunksArePulledOnceAndTheirVersionsWithEachRound) {
  SessionSettings settings = SmallSettings();
  settings.spec.layout = ParameterLayout::Make({{"a", {600}, Segment::kDecayed, {.rate = 0}},
                                                {"b", {10}, Segment::kDecayed},
                                                {"c", {20}, Segment::kUndecayed, {.rate = 0}}})
                             .value();
  Script script(settings);
  script.Join();
  script.Order({{0, 0}, {1, 0}, {2, 0}});
  script.Run();
  std::map<int, int> pulls, with_base, installs;
  for (const auto& send : script.log) {
    const wire::Header& header = send.message.header;
    if (header.type() != wire::PULL) continue;
    ++pulls[header.chunk()];
    if (header.has_base()) {
      EXPECT_EQ(header.base(), header.round() - 1);
      ++with_base[header.chunk()];
    }
  }
  for (const auto& [chunk, vector] : script.installs) ++installs[chunk];
  ASSERT_EQ(script.map().chunks().size(), 4u);
  for (const Chunk& chunk : script.map().chunks()) {
    EXPECT_EQ(pulls[chunk.index], 9) << "8 rounds, and the last evaluation";
    EXPECT_EQ(with_base[chunk.index], chunk.frozen() ? 8 : 0);
    EXPECT_EQ(installs[chunk.index], chunk.frozen() ? 1 : 9);
  }
}

// With fragments: a chunk's numbers are pulled with the versions that change them.
TEST(Session, NumbersThatARoundHasNotChangedAreNotPulledAgain) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.block *= 2;
  settings.experiment.sync.fragments = 2;
  Script script(settings);
  script.Join();
  script.Order({{0, 0}, {1, 0}, {2, 0}});
  script.Run();
  const JobPlan& plan = script.session().shape().plan;
  int same = 0;
  for (const auto& send : script.log) {
    const wire::Header& header = send.message.header;
    if (header.type() != wire::PULL || header.round() == 0) continue;
    const bool changed =
        JobPlan::TakesPart(plan.Round(header.round() - 1), script.map().chunks()[header.chunk()]);
    EXPECT_EQ(header.has_base(), !changed);
    if (!changed) ++same;
  }
  EXPECT_GT(same, 3);
  std::map<int, int> installs;
  for (const auto& [chunk, vector] : script.installs) ++installs[chunk];
  for (const Chunk& chunk : script.map().chunks()) {
    if (chunk.trained()) {
      EXPECT_LT(installs[chunk.index], plan.rounds() + 1);
    }
  }
}

TEST(Session, TimesAreReportedWhenARoundHasShownThem) {
  Script script(SmallSettings(), 1'750'638 * kSecond);  // the machine's uptime
  script.Join();
  script.Order({{1, 0}});
  // The last report that was sent, with the times of now.
  const auto report = [&] {
    script.Tick(kSecond);
    wire::WorkerReport last;
    std::erase_if(script.sent, [&](const auto& send) {
      const wire::Header& header = send.message.header;
      if (header.type() != wire::HEARTBEAT) return false;
      last = header.worker_report();
      return true;
    });
    EXPECT_NE(last.state(), "") << "no heartbeat";
    return last;
  };
  script.RunUntilItTrains();
  wire::WorkerReport said = report();
  EXPECT_FALSE(said.has_compute_ms() || said.has_wait_ms() || said.has_network_ms());
  EXPECT_EQ(said.computing_s(), 1) << "it trains since a second";
  script.times = {.compute_ms = 12, .coding_ms = 3};
  script.Work();
  // All is acknowledged 5 ms later, and the next version comes 7 ms after that, within 11 ms.
  script.now += 5 * kMillisecond;
  std::deque<SendToServerAction> pulls;
  for (const auto& send : std::exchange(script.sent, {})) {
    if (send.message.header.type() == wire::PULL) {
      pulls.push_back(send);
    } else {
      script.Answer(send);
    }
  }
  ASSERT_GT(pulls.size(), 1u);
  script.now += 7 * kMillisecond;
  while (pulls.size() > 1) {
    script.Answer(pulls.front());
    pulls.pop_front();
  }
  script.now += 11 * kMillisecond;
  script.Answer(pulls.front());
  said = report();
  EXPECT_FALSE(said.has_computing_s() && !script.train);
  EXPECT_EQ(said.compute_ms(), 12);
  EXPECT_EQ(said.network_ms(), 3 + 5 + 11);
  EXPECT_EQ(said.wait_ms(), 7);
}

// Behind what it pushes, its pulls would wait on a slow network until all is pushed.
TEST(Session, TheNextVersionIsAskedForBeforeTheBlockIsPushed) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.RunUntilItTrains();
  const int chunks = static_cast<int>(script.map().chunks().size());
  EXPECT_EQ(script.CountSent(wire::PULL), chunks);
  for (const auto& send : script.sent) EXPECT_NE(send.message.header.type(), wire::PUSH);
  // A chunk that comes back early is installed after the block.
  script.installs.clear();
  script.Answer(script.sent.front());
  script.sent.pop_front();
  EXPECT_TRUE(script.installs.empty());
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.installs.size(), 1u);
  EXPECT_EQ(script.CountSent(wire::PULL), chunks - 1) << "each is asked for once";
}

TEST(Session, WhatIsCodedEarlyIsPushedAtOnceAndNotAgain) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.RunUntilItTrains();
  const auto pushed = [&script] {
    std::map<int, int> times;
    for (const auto& send : script.sent) {
      const wire::Header& h = send.message.header;
      if (h.type() != wire::PUSH) continue;
      EXPECT_EQ(h.partition(), 1);
      EXPECT_EQ(h.has_metrics(), h.chunk() == 0);
      ++times[h.chunk()];
    }
    return times;
  };
  ASSERT_GE(script.map().chunks().size(), 3u);
  script.HandOn({2});
  script.HandOn({1});
  EXPECT_EQ(pushed(), (std::map<int, int>{{1, 1}, {2, 1}}));
  ASSERT_TRUE(script.Work());
  std::map<int, int> all;
  for (const Chunk& chunk : script.map().chunks()) all[chunk.index] = 1;
  EXPECT_EQ(pushed(), all);
  script.Run();
  ASSERT_TRUE(script.trained.size() > 1) << "the next round's block pushes everything anew";
}

TEST(Session, OnlyTheHolderOfPartition0BringsTheInitialWeights) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.Run(-1);
  EXPECT_FALSE(script.initialise);
  script.Order({{0, 0}, {1, 0}});
  EXPECT_TRUE(script.initialise);
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::INITIALISE), static_cast<int>(script.map().chunks().size()));
}

TEST(Session, ABlockStartsWhenAllChunksOfItsVersionAreInstalled) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  std::vector<SendToServerAction> pulls;
  for (const auto& send : script.sent) {
    if (send.message.header.type() == wire::PULL) pulls.push_back(send);
  }
  ASSERT_EQ(pulls.size(), script.map().chunks().size());
  for (size_t i = 0; i < pulls.size(); ++i) {
    EXPECT_FALSE(script.train);
    script.Answer(pulls[i]);
    script.Answer(pulls[i]);  // twice
  }
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.installs.size(), pulls.size());
}

// --- What an answer belongs to.

TEST(Session, AnAnswerByAnotherNumberOrFromAnotherServerChangesNothing) {
  SessionSettings settings = SmallSettings(2);
  settings.experiment.block.nesterov = true;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.Join();
  script.Order({{0, 0}});
  ASSERT_TRUE(script.Work());  // the initial weights
  std::set<wire::Type> types;
  // Each request is answered wrongly before it is answered well.
  while (script.trained.size() < 5) {
    if (script.Work()) continue;
    ASSERT_FALSE(script.sent.empty());
    const SendToServerAction send = script.sent.front();
    script.sent.pop_front();
    const uint64_t number = send.message.header.request();
    if (number == 0) continue;
    types.insert(send.message.header.type());
    const size_t sent = script.sent.size();
    const size_t installed = script.installs.size();
    SendToServerAction wrong = send;
    for (const uint64_t other : {uint64_t{0}, number + 1000, UINT64_MAX}) {
      wrong.message.header.set_request(other);
      script.Answer(wrong);
    }
    wrong = send;
    wrong.server = 1 - send.server;
    script.Answer(wrong);
    EXPECT_EQ(script.sent.size(), sent);
    EXPECT_EQ(script.installs.size(), installed);
    EXPECT_FALSE(script.train || script.evaluate);
    script.Take(script.session().OnConnected(send.server, script.now));
    const auto open = std::exchange(script.sent, {});
    EXPECT_TRUE(std::any_of(open.begin(), open.end(), [&](const SendToServerAction& again) {
      return again.message.header.request() == number;
    })) << "it is not answered yet, and keeps its number";
    script.sent = open;
    std::erase_if(script.sent,
                  [&](const auto& again) { return again.message.header.request() == number; });
    script.Answer(send);
  }
  EXPECT_THAT(types,
              testing::IsSupersetOf({wire::INITIALISE, wire::PULL, wire::PUSH, wire::EVALUATED}));
}

// The job went back: what the servers' former processes say of what they were asked is of a past
// that was given up, even where it looks like what is asked now.
TEST(Session, AnAnswerToWhatWasAskedBeforeTheJobWentBackChangesNothing) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  const auto former = std::exchange(script.sent, {});
  script.generation = 2;
  script.Tick(kSecond);
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  script.Welcome(0);
  script.Order({{1, 0}});
  const auto now = std::exchange(script.sent, {});
  for (const auto& send : former) script.Answer(send);
  EXPECT_TRUE(script.installs.empty());
  EXPECT_FALSE(script.train);
  for (const auto& send : now) script.Answer(send);
  EXPECT_EQ(script.installs.size(), script.map().chunks().size());
  EXPECT_TRUE(script.train);
}

TEST(Session, TheTwoPullsOfAChunkAreToldApart) {
  SessionSettings settings = SmallSettings();
  settings.experiment.block.nesterov = true;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.Join();
  script.Order({{1, 4}}, 4);  // an evaluated version
  std::set<uint64_t> numbers;
  while (!script.evaluate) {
    ASSERT_FALSE(script.sent.empty());
    const SendToServerAction send = script.sent.front();
    script.sent.pop_front();
    const wire::Header& asked = send.message.header;
    if (asked.type() == wire::PULL) {
      EXPECT_TRUE(numbers.insert(asked.request()).second);
      const size_t installed = script.installs.size();
      SendToServerAction other = send;  // the other vector under this one's number
      other.message.header.set_vector(asked.vector() == wire::START ? wire::WEIGHTS : wire::START);
      script.Answer(other);
      EXPECT_EQ(script.installs.size(), installed);
    }
    script.Answer(send);
  }
  EXPECT_EQ(numbers.size(), 2 * script.map().chunks().size());
  for (const Chunk& chunk : script.map().chunks()) {
    for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
      EXPECT_THAT(script.installs, testing::Contains(std::pair(chunk.index, vector)).Times(1));
    }
  }
}

TEST(Session, WhoHoldsAVersionAsksForTheDifferenceToIt) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.pull_codec = CodecId::kInt8;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.Join();
  script.Order({{1, 0}});
  std::set<int64_t> bases;  // in pulls of version 1
  for (int step = 0; step < 1000 && bases.empty(); ++step) {
    if (script.sent.empty()) {
      ASSERT_TRUE(script.Work());
      continue;
    }
    const SendToServerAction send = script.sent.front();
    script.sent.pop_front();
    const wire::Header& asked = send.message.header;
    if (asked.type() == wire::PULL && asked.vector() == wire::START) {
      EXPECT_EQ(asked.has_base(), asked.round() > 0);
      if (asked.round() == 1) {
        bases.insert(asked.base());
        // A difference to another version, or one that does not say so, is not taken.
        const size_t installed = script.installs.size();
        for (const int64_t base : {int64_t{-1}, int64_t{1}, int64_t{7}}) {
          std::optional<Message> reply = script.Reply(send);
          ASSERT_TRUE(reply.has_value());
          const Codec& int8 = CodecOf(CodecId::kInt8);
          reply->header.set_codec(static_cast<uint32_t>(int8.id()));
          if (base >= 0) reply->header.set_base(base);
          reply->payload =
              Bytes(int8.EncodedBytes(script.map().chunks()[asked.chunk()].range.size()));
          script.Receive(send.server, *reply);
        }
        EXPECT_EQ(script.installs.size(), installed);
      }
    }
    script.Answer(send);
  }
  EXPECT_EQ(bases, std::set<int64_t>{0});
}

// A server works a gradient's staleness out from it.
TEST(Session, AContributionSaysWhatItsWeightsHadInAsyncMode) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.mode = SyncMode::kAsync;
  settings.experiment.sync.staleness = 3;
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.applied = [](const wire::Header& pull) { return 100 * pull.round() + pull.chunk(); };
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run(/*until_round=*/2);
  int pushes = 0;
  for (const SendToServerAction& send : script.log) {
    const wire::Header& header = send.message.header;
    if (header.type() != wire::PUSH) continue;
    EXPECT_EQ(header.applied(), 100 * header.round() + header.chunk());
    ++pushes;
  }
  EXPECT_GT(pushes, 0);
}

TEST(Session, ARelayHasTheContributionsOfAllPartitionsOfTheVersionThatIsHeld) {
  SessionSettings settings = SmallSettings();
  Experiment& e = settings.experiment;
  e.sync.push_codec = CodecId::kTopk;
  e.block.rule = BlockRule::kAverage;
  e.cluster.chunk_kib = 16;
  settings.identity = IdentityOf(e);
  const size_t partitions = e.sync.partitions;
  Script script(settings);
  script.Join();
  script.Order({{1, 0}});
  size_t relayed = 0;
  for (int step = 0; step < 1000 && relayed == 0; ++step) {
    if (script.sent.empty()) {
      ASSERT_TRUE(script.Work());
      continue;
    }
    const SendToServerAction send = script.sent.front();
    script.sent.pop_front();
    const wire::Header& asked = send.message.header;
    const Chunk* chunk = nullptr;
    if (asked.type() == wire::PULL) chunk = &script.map().chunks()[asked.chunk()];
    if (asked.round() != 1 || chunk == nullptr || !chunk->trained()) {
      script.Answer(send);
      continue;
    }
    EXPECT_EQ(asked.base(), 0);
    const Codec& topk = e.sync.PushCodec();
    const size_t length = topk.EncodedBytes(chunk->range.size());
    const auto answer = [&](size_t bytes, CodecId codec, std::optional<int64_t> base) {
      Message reply = *script.Reply(send);
      reply.header.set_codec(static_cast<uint32_t>(codec));
      if (base) reply.header.set_base(*base);
      reply.payload = Bytes(bytes);
      script.Receive(send.server, reply);
    };
    for (const size_t count : {size_t{1}, partitions - 1, partitions + 1}) {
      answer(count * length, CodecId::kTopk, 0);
    }
    answer(partitions * length, CodecId::kTopk, 1);             // from another version
    answer(partitions * length, CodecId::kTopk, std::nullopt);  // from none
    answer(partitions * length, CodecId::kInt8, 0);
    EXPECT_TRUE(script.relays.empty());
    answer(partitions * length, CodecId::kTopk, 0);
    relayed = partitions * length;
  }
  script.Run(/*until_round=*/1);
  ASSERT_FALSE(script.relays.empty());
  EXPECT_EQ(script.relays.front().second, relayed);
}

TEST(Session, WhatIsNoChunkIsNotInstalledAndAskedForAgain) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  uint64_t pull = 0;
  for (const auto& send : std::exchange(script.sent, {})) {
    const wire::Header& header = send.message.header;
    if (header.type() == wire::PULL && header.chunk() == 0) pull = header.request();
  }
  ASSERT_GT(pull, 0u);
  const size_t numbers = script.map().chunks()[0].range.size();
  const auto chunk = [&](uint32_t codec, size_t bytes, int index = 0, int64_t round = 0) {
    Message m;
    m.header.set_type(wire::CHUNK);
    m.header.set_request(pull);
    m.header.set_chunk(index);
    m.header.set_round(round);
    m.header.set_codec(codec);
    m.payload = Bytes(bytes);
    script.Receive(0, m);
  };
  constexpr uint32_t kFp32 = static_cast<uint32_t>(CodecId::kFp32);
  chunk(kFp32, numbers * 4 - 1);
  chunk(kFp32, 0);
  chunk(kFp32, numbers * 4 + 4);
  chunk(0, numbers * 4);
  chunk(99, numbers * 4);
  chunk(kFp32, numbers * 4, -1);
  chunk(kFp32, numbers * 4, 1000);
  chunk(kFp32, numbers * 4, 0, 1);
  chunk(kFp32, numbers * 4, 0, -1);
  EXPECT_TRUE(script.installs.empty());
  script.Tick(10 * kSecond);
  int asked = 0;
  for (const auto& send : script.sent) {
    asked += send.message.header.type() == wire::PULL && send.message.header.chunk() == 0;
  }
  EXPECT_EQ(asked, 1);
}

TEST(Session, WhatIsNotAnsweredIsRepeatedEverMoreRarelyAndThenNoMore) {
  SessionSettings settings = SmallSettings();
  settings.experiment.cluster.suspect_after_s = 1000;
  Script script(settings);
  script.Join();
  script.Order({{1, 0}});
  std::vector<TimeUs> times;
  SendToServerAction pull;
  for (TimeUs t = 0; t < 200 * kSecond; t += 100 * kMillisecond) {
    for (const auto& send : script.sent) {
      if (send.message.header.type() != wire::PULL || send.message.header.chunk() != 2) continue;
      times.push_back(script.now);
      pull = send;
    }
    script.sent.clear();
    script.Tick(100 * kMillisecond);
  }
  ASSERT_GE(times.size(), 4u);
  ASSERT_LE(times.size(), 60u);
  for (size_t i = 2; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], times[i - 1] - times[i - 2] - 100 * kMillisecond);
  }
  script.Answer(pull);
  script.sent.clear();
  script.Tick(100 * kSecond);
  for (const auto& send : script.sent) {
    EXPECT_FALSE(send.message.header.type() == wire::PULL && send.message.header.chunk() == 2);
  }
}

TEST(Session, AConnectionThatComesBackIsAskedAgainAtOnce) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.sent.clear();
  script.Take(script.session().OnConnected(0, script.now));
  EXPECT_EQ(script.CountSent(wire::PULL), static_cast<int>(script.map().chunks().size()));
  for (const auto& send : script.sent) {
    EXPECT_EQ(send.message.header.generation(), 1u);
    EXPECT_EQ(send.message.header.job(), SmallSettings().identity.JobId());
  }
}

// --- Hostile servers.

TEST(Session, RandomMessagesDoNotCrashItNorMakeItAskWithoutEnd) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, RngPurpose::kTest);
    SessionSettings settings = SmallSettings(1 + static_cast<int>(seed % 3));
    if (seed % 2) settings.experiment.sync.push_codec = CodecId::kOneBit;
    settings.experiment.block.nesterov = seed % 4 < 2;
    settings.identity = IdentityOf(settings.experiment);
    Script script(settings);
    script.Join();
    const auto wild = [&](int64_t sensible) -> int64_t {
      const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20};
      if (rng.NextBelow(4) == 0) return extremes[rng.NextBelow(6)];
      return static_cast<int64_t>(rng.NextBelow(sensible));
    };
    const int types[] = {2, 5, 12, 12, 14, 14, 14, 15, 18, 18};
    uint64_t newest = 1;  // request that was seen
    for (int i = 0; i < 3000 && !script.left; ++i) {
      const int server = static_cast<int>(rng.NextBelow(settings.identity.servers));
      Message m;
      wire::Header& h = m.header;
      h.set_type(static_cast<wire::Type>(rng.NextBelow(20) ? types[rng.NextBelow(10)] : wild(40)));
      if (h.type() == wire::REFUSED) h.set_type(wire::CHUNK);  // ends it: tested elsewhere
      h.set_round(rng.NextBelow(2) ? static_cast<int64_t>(rng.NextBelow(9)) : wild(9));
      h.set_partition(static_cast<int32_t>(wild(3)));
      h.set_chunk(static_cast<int32_t>(wild(5)));
      h.set_carried_array(static_cast<int32_t>(wild(2)));
      // One that may be open, if it is not nonsense.
      h.set_request(rng.NextBelow(4) ? newest - std::min(newest, rng.NextBelow(12))
                                     : static_cast<uint64_t>(wild(9)));
      h.set_vector(static_cast<wire::Vector>(wild(2)));
      h.set_codec(static_cast<uint32_t>(wild(6)));
      h.set_save(rng.NextBelow(2));
      h.set_stop(rng.NextBelow(50) == 0);
      const wire::Type acknowledged[] = {wire::PUSH,      wire::PULL,      wire::INITIALISE,
                                         wire::PUT_STATE, wire::GET_STATE, wire::EVALUATED};
      h.set_acknowledges(rng.NextBelow(8) ? acknowledged[rng.NextBelow(6)]
                                          : static_cast<wire::Type>(wild(40)));
      if (rng.NextBelow(3) == 0) m.payload = Bytes(rng.NextBelow(2) ? 2048 : rng.NextBelow(3000));
      h.mutable_welcome()->set_generation(rng.NextBelow(10) ? script.generation
                                                            : static_cast<uint32_t>(wild(3)));
      h.mutable_welcome()->set_version(wild(4));
      for (uint64_t l = rng.NextBelow(4); l > 0; --l) {
        auto* lease = h.mutable_orders()->add_leases();
        lease->set_partition(static_cast<int32_t>(wild(3)));
        lease->set_from(rng.NextBelow(4) ? static_cast<int64_t>(rng.NextBelow(9)) : wild(9));
        lease->set_handed_over(rng.NextBelow(2));
      }
      script.Receive(server, std::move(m));
      // In between it is answered well, so that it gets on.
      if (!script.sent.empty() && rng.NextBelow(3)) {
        const auto send = script.sent[rng.NextBelow(script.sent.size())];
        script.Answer(send);
      }
      if (rng.NextBelow(3) == 0) (void)script.Work();
      for (const auto& send : script.sent) {
        newest = std::max(newest, send.message.header.request());
      }
      script.now += static_cast<TimeUs>(rng.NextBelow(50 * kMillisecond));
      script.sent.clear();
      script.Tick();
      // One request of each kind for each chunk and partition, a greeting, heartbeats.
      ASSERT_LT(script.sent.size(), 200u);
      ASSERT_FALSE(script.session().StateInWords().empty());
    }
  }
}

}  // namespace
}  // namespace kumo
