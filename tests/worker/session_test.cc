#include "worker/session.h"

#include <algorithm>
#include <deque>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/protocol.h"
#include "common/rng.h"

namespace kumo {
namespace {

using testing::HasSubstr;

SessionSettings SmallSettings(int servers = 1) {
  SessionSettings settings;
  Experiment& e = settings.experiment;
  e.job.name = "small";
  e.job.epochs = 2;
  e.sync.mode = SyncMode::kBlock;
  e.sync.partitions = 3;
  e.sync.minibatch = 4;
  e.sync.block = 2;
  e.cluster.chunk_kib = 2;
  e.cluster.servers.assign(servers, "ipc://somewhere");
  settings.identity = IdentityOf(e);
  settings.spec.layout = ParameterLayout::Make({{"a.weight", {40, 30}, Segment::kDecayed},
                                                {"a.bias", {30}, Segment::kUndecayed},
                                                {"n.mean", {17}, Segment::kStatistics}})
                             .value();
  settings.spec.train_samples = 80;  // 4 rounds an epoch
  settings.spec.validation_samples = 10;
  settings.name = "worker-0";
  settings.incarnation = 5;
  return settings;
}

Payload Bytes(size_t n) {
  auto zeros = std::make_shared<std::vector<std::byte>>(n);
  return {zeros, std::span<const std::byte>(*zeros)};
}

// A session, what it asked for, and servers that answer when the test lets them.
class Script {
 public:
  explicit Script(SessionSettings settings = SmallSettings())
      : settings_(std::move(settings)),
        session_(Session::Make(settings_, 0).value()),
        servers_(settings_.identity.servers) {}

  Session& session() { return session_; }
  const ShardMap& map() const { return session_.map(); }

  void Tick(TimeUs later = 0) {
    now += later;
    Take(session_.Tick(now));
  }
  // A message of a server, as it would be stamped.
  void Receive(int server, Message message) {
    message.header.set_job(settings_.identity.JobId());
    message.header.set_generation(generation);
    Take(session_.OnMessage(server, message, now));
  }
  void ReceiveHeader(int server, const wire::Header& header) { Receive(server, {header, {}}); }
  void Join() {
    Tick();
    for (int s = 0; s < servers_; ++s) Welcome(s);
  }
  void Welcome(int server) {
    wire::Header header;
    header.set_type(wire::WELCOME);
    header.mutable_welcome()->set_generation(generation);
    header.mutable_welcome()->set_since(since > 0 ? since : generation);
    header.mutable_welcome()->set_version(start_version);
    ReceiveHeader(server, header);
  }
  void Order(const std::map<int, int64_t>& leases, int64_t as_of = 0, bool released = false,
             int64_t stop = 0) {
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    header.set_round(as_of);
    header.mutable_orders()->set_released(released);
    header.mutable_orders()->set_stop_at(stop);
    for (const auto& [partition, from] : leases) {
      auto* lease = header.mutable_orders()->add_leases();
      lease->set_partition(partition);
      lease->set_from(from);
    }
    ReceiveHeader(0, header);
  }
  // Answers one request as a willing server would.
  void Answer(const SendToServerAction& send) {
    const wire::Header& asked = send.message.header;
    Message reply;
    wire::Header& header = reply.header;
    header.set_round(asked.round());
    header.set_partition(asked.partition());
    header.set_chunk(asked.chunk());
    header.set_slot(asked.slot());
    switch (asked.type()) {
      case wire::PULL:
        header.set_type(wire::CHUNK);
        header.set_slot(0);
        header.set_vector(asked.vector());
        header.set_codec(static_cast<uint32_t>(CodecId::kFp32));
        header.set_save(asked.chunk() == 0 && save_at.contains(asked.round()));
        header.set_stop(asked.chunk() == 0 && asked.round() == stop_at);
        header.set_move(asked.chunk() == 0 && asked.round() == move_at);
        reply.payload = Bytes(map().chunks()[asked.chunk()].range.size() * 4);
        break;
      case wire::GET_STATE:
        header.set_type(wire::STATE);
        break;
      case wire::PUSH:
      case wire::PUT_STATE:
      case wire::EVALUATED:
      case wire::INITIALISE:
        header.set_type(wire::ACK);
        header.set_acknowledges(asked.type());
        header.set_held(held && asked.type() == wire::PUSH);
        break;
      default:
        return;
    }
    Receive(send.server, std::move(reply));
  }
  // Answers and computes until the session waits; returns how many requests were answered.
  int Run(int64_t until_round = INT64_MAX) {
    int answered = 0;
    while (!left) {
      if (!sent.empty()) {
        const SendToServerAction send = sent.front();
        sent.pop_front();
        log.push_back(send);
        if (send.message.header.type() == wire::PULL && send.message.header.round() > until_round) {
          continue;
        }
        Answer(send);
        ++answered;
      } else if (!Work()) {
        break;
      }
    }
    return answered;
  }
  // Carries the computation out that was asked for; false when there is none.
  bool Work() {
    if (initialise) {
      initialise = false;
      std::vector<Payload> weights;
      for (const Chunk& chunk : map().chunks()) weights.push_back(Bytes(chunk.range.size() * 4));
      Take(session_.OnInitialised(std::move(weights), now));
    } else if (train) {
      const TrainAction asked = *std::exchange(train, std::nullopt);
      TrainedBlock block;
      const int64_t samples = session_.plan().PartitionSamples(asked.round, asked.partition).size();
      block.metrics.set_samples(samples);
      for (const Chunk& chunk : map().chunks()) {
        const Codec& codec = session_.PushCodec(asked.round, chunk.segment);
        block.contributions.push_back(samples == 0 ? Payload()
                                                   : Bytes(codec.EncodedBytes(chunk.range.size())));
        const int slots = StateSlots(settings_.experiment, settings_.spec);
        for (int slot = 0; asked.save_state && slot < slots; ++slot) {
          if (chunk.segment == Segment::kStatistics) continue;
          block.carried.push_back({chunk.index, slot, Bytes(chunk.range.size() * 4)});
        }
      }
      Take(session_.OnTrained(std::move(block), now));
    } else if (evaluate) {
      evaluate.reset();
      Take(session_.OnEvaluated(wire::Metrics(), now));
    } else {
      return false;
    }
    return true;
  }
  void Take(WorkerActions actions) {
    for (WorkerAction& action : actions) {
      if (auto* send = std::get_if<SendToServerAction>(&action)) sent.push_back(*send);
      if (std::get_if<InitialiseAction>(&action)) {
        ExpectIdle();
        initialise = true;
      }
      if (auto* install = std::get_if<InstallAction>(&action)) {
        installs.emplace_back(install->chunk, install->vector);
        EXPECT_EQ(install->payload.bytes.size(),
                  install->codec->EncodedBytes(map().chunks()[install->chunk].range.size()));
      }
      if (auto* adopt = std::get_if<AdoptAction>(&action)) adopted.insert(adopt->partition);
      if (auto* t = std::get_if<TrainAction>(&action)) {
        ExpectIdle();
        EXPECT_TRUE(adopted.contains(t->partition)) << "trains before it adopts";
        train = *t;
        trained.emplace_back(t->round.round, t->partition);
      }
      if (auto* e = std::get_if<EvaluateAction>(&action)) {
        ExpectIdle();
        evaluate = *e;
        evaluated.emplace_back(e->version, e->partition);
      }
      if (auto* drop = std::get_if<DropAction>(&action)) {
        adopted.erase(drop->partition);
        dropped.push_back(drop->partition);
      }
      if (auto* leave = std::get_if<LeaveAction>(&action)) left = leave->status;
    }
  }
  // One computation at a time.
  void ExpectIdle() { EXPECT_FALSE(initialise || train || evaluate); }
  int CountSent(wire::Type type) const {
    return static_cast<int>(std::count_if(
        sent.begin(), sent.end(), [&](const auto& s) { return s.message.header.type() == type; }));
  }

  TimeUs now = 0;
  uint32_t generation = 1;
  uint32_t since = 0;  // 0: as the generation
  bool held = false;   // acknowledgements of contributions say so
  int64_t start_version = 0;
  std::set<int64_t> save_at;  // versions whose round ends with a checkpoint
  int64_t stop_at = -1;
  int64_t move_at = -1;  // the version after whose round leases move
  std::deque<SendToServerAction> sent;
  std::vector<SendToServerAction> log;  // what Run answered, or kept waiting
  std::vector<std::pair<int, wire::Vector>> installs;
  std::vector<std::pair<int64_t, int>> trained, evaluated;  // round or version, partition
  std::vector<int> dropped;
  std::set<int> adopted;
  bool initialise = false;
  std::optional<TrainAction> train;
  std::optional<EvaluateAction> evaluate;
  std::optional<Status> left;

 private:
  SessionSettings settings_;
  Session session_;
  int servers_;
};

// --- Joining.

TEST(Session, JoinsServer0FirstAndThenTheOthers) {
  Script script(SmallSettings(3));
  script.Tick();
  ASSERT_EQ(script.sent.size(), 1u);
  EXPECT_EQ(script.sent[0].server, 0);
  const wire::Header& header = script.sent[0].message.header;
  EXPECT_EQ(header.type(), wire::HELLO);
  EXPECT_EQ(header.protocol(), kProtocolVersion);
  const SessionSettings settings = SmallSettings(3);
  EXPECT_TRUE(CheckHello(header, settings.identity, settings.spec).ok());
  script.sent.clear();
  script.Welcome(0);
  std::set<int> greeted;
  for (const auto& send : script.sent) {
    if (send.message.header.type() == wire::HELLO) greeted.insert(send.server);
  }
  EXPECT_EQ(greeted, (std::set<int>{1, 2}));
  script.Order({{1, 0}});
  EXPECT_EQ(script.CountSent(wire::PULL), 0);  // not before all are joined
  script.Welcome(2);
  script.Welcome(1);
  EXPECT_EQ(script.CountSent(wire::PULL), static_cast<int>(script.map().chunks().size()));
}

TEST(Session, RepeatsItsHelloAndGivesUpInTheEnd) {
  Script script;
  script.Tick();
  for (int i = 0; i < 5; ++i) script.Tick(kSecond);
  EXPECT_EQ(script.CountSent(wire::HELLO), 6);
  script.Tick(60 * kSecond);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  EXPECT_THAT(script.left->message(), HasSubstr("ipc://somewhere"));
}

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
    script.ReceiveHeader(0, done);
    ASSERT_TRUE(script.left);
    EXPECT_TRUE(script.left->ok());
  }
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

TEST(Session, WhatIsNoChunkIsNotInstalledAndAskedForAgain) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.sent.clear();
  const size_t numbers = script.map().chunks()[0].range.size();
  const auto chunk = [&](uint32_t codec, size_t bytes, int index = 0, int64_t round = 0) {
    Message m;
    m.header.set_type(wire::CHUNK);
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

// --- Saving, stopping, leases.

TEST(Session, ACheckpointsRoundPutsWhatIsCarriedBeforeTheNextBlock) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.push_codec = "1bit";
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.save_at = {1};
  script.Join();
  script.Order({{2, 0}});
  while (script.trained.empty() || script.trained.back().first < 1) {
    if (script.sent.empty()) {
      ASSERT_TRUE(script.Work());
    } else {
      const auto send = script.sent.front();
      script.sent.pop_front();
      script.Answer(send);
    }
  }
  ASSERT_TRUE(script.train->save_state);
  script.sent.clear();
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUT_STATE), 4);  // chunks that are trained
  std::deque<SendToServerAction> puts;
  for (const auto& send : std::exchange(script.sent, {})) {
    if (send.message.header.type() == wire::PUSH) {
      EXPECT_TRUE(send.message.header.save());
    }
    if (send.message.header.type() == wire::PUT_STATE) {
      EXPECT_EQ(send.message.header.round(), 2);
      puts.push_back(send);
    } else {
      script.Answer(send);
    }
  }
  for (auto send = script.sent; const auto& s : send) script.Answer(s);
  for (const auto& put : puts) {
    EXPECT_FALSE(script.train);
    script.Answer(put);
  }
  ASSERT_TRUE(script.train);
  EXPECT_FALSE(script.train->save_state);
}

TEST(Session, AStopEndsWithItsRoundAndWaitsForTheLastWord) {
  Script script;
  script.stop_at = 2;
  script.save_at = {2};
  script.Join();
  script.Order({{0, 0}, {1, 0}, {2, 0}});
  script.Run();
  ASSERT_FALSE(script.trained.empty());
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{2, 2}));
  EXPECT_FALSE(script.left);
  wire::Header stopped;
  stopped.set_type(wire::HEARTBEAT_REPLY);
  stopped.mutable_orders()->set_finished(true);
  stopped.mutable_orders()->set_stopped(true);
  script.ReceiveHeader(0, stopped);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
}

// The version that said so is gone by the time it joins.
TEST(Session, WhoJoinsAfterAStopWasDecidedHearsOfItWithItsOrders) {
  Script script;
  script.start_version = 1;
  script.Join();
  script.Order({{0, 1}}, 2, false, 2);
  script.Run();
  ASSERT_EQ(script.trained.size(), 1u);
  EXPECT_EQ(script.trained[0], (std::pair<int64_t, int>{1, 0}));
  script.Order({{0, 1}, {1, 2}}, 2, false, 2);
  script.Run();
  EXPECT_EQ(script.trained.size(), 1u);
}

TEST(Session, ALeaseThatIsTakenAwayIsDroppedAndItsBlockUnderWayIsNotPushed) {
  Script script;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  while (!script.train) {
    ASSERT_FALSE(script.sent.empty());
    const auto send = script.sent.front();
    script.sent.pop_front();
    script.Answer(send);
  }
  ASSERT_EQ(script.train->partition, 1);
  script.Order({{2, 0}});
  script.Order({{2, 0}});  // repeated: nothing new
  EXPECT_EQ(script.dropped, (std::vector<int>{1}));
  script.sent.clear();
  ASSERT_TRUE(script.Work());
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);
  ASSERT_TRUE(script.train);
  EXPECT_EQ(script.train->partition, 2);
}

TEST(Session, ARoundThatClosedWithoutItIsSkipped) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  wire::Header gone;
  gone.set_type(wire::GONE);
  gone.set_chunk(2);
  gone.set_round(3);
  script.ReceiveHeader(0, gone);
  script.Run();
  EXPECT_TRUE(script.trained.empty());  // is it ours still?
  script.Order({{1, 0}}, 3);
  script.Run();
  ASSERT_FALSE(script.trained.empty());
  EXPECT_EQ(script.trained.front(), (std::pair<int64_t, int>{3, 1}));
}

// --- Ends.

TEST(Session, ARefusalEndsItUnlessItIsAQuestionOfTime) {
  const auto after = [](StatusCode code) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(wire::REFUSED);
    header.mutable_refusal()->set_code(static_cast<uint32_t>(code));
    header.mutable_refusal()->set_reason("because");
    script.sent.clear();
    script.ReceiveHeader(0, header);
    if (script.left) {
      EXPECT_THAT(script.left->message(), HasSubstr("because"));
      EXPECT_EQ(script.CountSent(wire::BYE), 1) << "the coordinator hears why";
    }
    return script.left;
  };
  EXPECT_FALSE(after(StatusCode::kAborted));
  ASSERT_TRUE(after(StatusCode::kFailedPrecondition));
  EXPECT_EQ(after(StatusCode::kFailedPrecondition)->code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(after(StatusCode::kInvalidArgument)->code(), StatusCode::kInternal);
  EXPECT_EQ(after(StatusCode::kResourceExhausted)->code(), StatusCode::kResourceExhausted);
}

TEST(Session, ARefusalWithoutACodeIsNotSuccess) {
  for (const wire::Type type : {wire::REFUSED, wire::HEARTBEAT_REPLY}) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(type);
    header.mutable_refusal()->set_reason("because");
    script.ReceiveHeader(0, header);
    EXPECT_FALSE(script.left && script.left->ok()) << type;
  }
}

TEST(Session, AFailedJobEndsItWithTheJobsStatus) {
  Script script;
  script.Join();
  wire::Header header;
  header.set_type(wire::HEARTBEAT_REPLY);
  header.mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kDataLoss));
  header.mutable_refusal()->set_reason("server 1: damaged");
  script.ReceiveHeader(0, header);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kDataLoss);
}

TEST(Session, AServerThatStaysSilentEndsIt) {
  Script script(SmallSettings(2));
  script.Join();
  for (int second = 0; second < 610 && !script.left; ++second) {
    EXPECT_TRUE(!script.left || second > 590) << "it may be started again";
    wire::Header alive;
    alive.set_type(wire::HEARTBEAT_REPLY);
    script.ReceiveHeader(0, alive);
    script.Tick(kSecond);
  }
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  EXPECT_THAT(script.left->message(), HasSubstr("server 1"));
}

TEST(Session, ABlockThatCannotBeComputedIsToldToTheCoordinator) {
  Script script;
  script.Join();
  script.sent.clear();
  script.Take(script.session().OnFailed(FailedPrecondition("fc is infinite"), 0));
  ASSERT_EQ(script.CountSent(wire::BYE), 1);
  const wire::WorkerReport& report = script.sent.front().message.header.worker_report();
  EXPECT_EQ(report.failure(), "fc is infinite");
  EXPECT_EQ(report.failure_code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kFailedPrecondition);
  script.sent.clear();
  script.Tick(kSecond);
  script.Order({{0, 0}});
  EXPECT_TRUE(script.sent.empty());  // it has left
}

// --- Told to leave.

TEST(Session, ToldToLeaveItGoesOnUntilItsLeasesHaveMovedAndAllIsAcknowledged) {
  SessionSettings settings = SmallSettings();
  settings.experiment.sync.push_codec = "1bit";
  settings.identity = IdentityOf(settings.experiment);
  Script script(settings);
  script.Join();
  script.save_at = {1};
  script.move_at = 1;
  script.Order({{1, 0}});
  script.Run(0);
  script.sent.clear();
  script.Take(script.session().Leave(script.now));
  ASSERT_EQ(script.CountSent(wire::HEARTBEAT), 1);  // at once
  EXPECT_TRUE(script.sent.back().message.header.worker_report().leaving());
  EXPECT_FALSE(script.left);
  script.Tick(6 * kSecond);  // asks for version 1 again
  script.Run(1);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{1, 1}));
  EXPECT_FALSE(script.left);
  script.sent.clear();
  script.Order({}, 2, /*released=*/true);
  ASSERT_TRUE(script.left);
  EXPECT_EQ(script.left->code(), StatusCode::kUnavailable);
  ASSERT_EQ(script.CountSent(wire::BYE), 1);
  EXPECT_TRUE(script.sent.back().message.header.worker_report().handed_over());
}

TEST(Session, WithoutALeaseItLeavesAsSoonAsItIsReleased) {
  Script script;
  script.Join();
  script.Take(script.session().Leave(script.now));
  EXPECT_FALSE(script.left);
  script.Order({}, 0, /*released=*/true);
  EXPECT_TRUE(script.left);
}

TEST(Session, WhatIsNotAcknowledgedKeepsALeavingWorker) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  while (script.trained.empty() || script.train) {  // pushes, and nobody answers
    if (script.Work()) continue;
    ASSERT_FALSE(script.sent.empty());
    const auto send = script.sent.front();
    script.sent.pop_front();
    script.Answer(send);
  }
  ASSERT_GT(script.CountSent(wire::PUSH), 0);
  script.Take(script.session().Leave(script.now));
  script.Order({}, 1, /*released=*/true);
  EXPECT_FALSE(script.left);
  script.Run();
  EXPECT_TRUE(script.left);
}

TEST(Session, AskedTwiceOrTooLateItLeavesAsItIs) {
  for (const bool twice : {false, true}) {
    Script script;
    script.Join();
    script.Order({{1, 0}});
    script.Take(script.session().Leave(script.now));
    script.Take(script.session().Leave(script.now + 1));  // the same request
    EXPECT_FALSE(script.left);
    script.sent.clear();
    if (twice) {
      script.Take(script.session().Leave(script.now + kSecond));
    } else {
      script.Tick(26 * kSecond);  // checkpoint.grace_s is over
    }
    ASSERT_TRUE(script.left);
    ASSERT_EQ(script.CountSent(wire::BYE), 1);
    EXPECT_FALSE(script.sent.back().message.header.worker_report().handed_over());
  }
}

// --- Leases that move.

TEST(Session, WhereLeasesMoveNobodyGoesOnWithoutOrders) {
  Script script;
  script.move_at = 1;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run();
  EXPECT_EQ(script.trained.back().first, 1);
  script.Order({{1, 0}, {2, 0}}, 1);  // of before
  script.Run();
  EXPECT_EQ(script.trained.back().first, 1);
  script.Order({{2, 0}}, 2);
  script.Run(2);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{2, 2}));
  EXPECT_EQ(script.trained.size(), 5u);
}

TEST(Session, AStragglersPartitionIsComputedForItsRoundAlone) {
  Script script;
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);  // waits for version 1
  ASSERT_EQ(script.trained.size(), 1u);
  wire::Header header;
  header.set_type(wire::HEARTBEAT_REPLY);
  for (const auto& [partition, until] : std::map<int, int64_t>{{1, 0}, {2, 1}}) {
    auto* lease = header.mutable_orders()->add_leases();
    lease->set_partition(partition);
    lease->set_until(until);
  }
  script.ReceiveHeader(0, header);
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 2u);
  EXPECT_EQ(script.trained[1], (std::pair<int64_t, int>{0, 2}));
  script.Tick(6 * kSecond);  // asks for version 1 again
  script.Run(1);
  EXPECT_EQ(script.trained.size(), 3u);
  EXPECT_EQ(script.trained[2], (std::pair<int64_t, int>{1, 1}));
  script.Order({{1, 0}});
  EXPECT_THAT(script.dropped, testing::ElementsAre(2));
}

TEST(Session, AHelpersOrderDoesNotStandInForALease) {
  for (const bool lease_first : {false, true}) {
    Script script;
    script.Join();
    wire::Header header;
    header.set_type(wire::HEARTBEAT_REPLY);
    for (const bool is_lease : {lease_first, !lease_first}) {
      auto* lease = header.mutable_orders()->add_leases();
      lease->set_partition(1);
      if (!is_lease) lease->set_until(1);
    }
    script.ReceiveHeader(0, header);
    script.Run(2);
    EXPECT_GE(script.trained.size(), 3u);
  }
}

TEST(Session, OrdersThatWereOvertakenAreIgnored) {
  Script script;
  script.Join();
  script.Order({{1, 3}}, 3);
  script.Order({{2, 0}}, 2);
  EXPECT_TRUE(script.dropped.empty());
}

// --- Servers that no longer know it.

void SayGone(Script* script) {
  wire::Header gone;
  gone.set_type(wire::GONE);
  script->ReceiveHeader(0, gone);
}

TEST(Session, AServerThatDoesNotKnowItIsJoinedAgain) {
  Script script;
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run(0);
  script.sent.clear();
  SayGone(&script);
  EXPECT_THAT(script.dropped, testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(script.CountSent(wire::HELLO), 1);
  script.Welcome(0);
  script.Order({{2, 1}});
  script.Run(1);
  EXPECT_EQ(script.trained.back(), (std::pair<int64_t, int>{1, 2}));
}

TEST(Session, WordOfANewGenerationMakesItJoinThat) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);
  script.generation = 2;
  script.sent.clear();
  wire::Header orders;
  orders.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(1, orders);
  EXPECT_TRUE(script.dropped.empty());  // only server 0 knows
  script.ReceiveHeader(0, orders);
  EXPECT_TRUE(script.dropped.empty());  // it may go on with what it has
  EXPECT_EQ(script.CountSent(wire::HELLO), 1);
  script.generation = 1;
  script.Welcome(0);  // late
  script.Order({{1, 0}});
  EXPECT_EQ(script.session().StateInWords(), "joins server 0");
  script.generation = 2;
  script.Welcome(0);
  EXPECT_THAT(script.dropped, testing::ElementsAre(1));
  script.Welcome(1);
  script.Order({{1, 0}});
  script.Run(0);
  EXPECT_EQ(script.trained.size(), 2u);
}

// Another server than 0 says it: what the partitions carry is still here.
TEST(Session, AServerThatForgotItIsJoinedAgainAndAskedForWhatIsOpen) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.Run(0);
  script.sent.clear();
  wire::Header gone;
  gone.set_type(wire::GONE);
  script.ReceiveHeader(1, gone);
  EXPECT_TRUE(script.dropped.empty());
  ASSERT_EQ(script.CountSent(wire::HELLO), 1);
  script.sent.clear();
  script.Welcome(1);
  EXPECT_GT(script.CountSent(wire::PULL), 0);
}

// A server was started again, and what it held was kept twice: nobody goes back.
TEST(Session, InAGenerationThatGoesOnItKeepsWhatItHas) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}, {2, 0}});
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 2u);
  script.sent.clear();
  script.generation = 2;
  script.since = 1;
  wire::Header told;
  told.set_type(wire::HEARTBEAT_REPLY);
  script.ReceiveHeader(0, told);
  ASSERT_EQ(script.CountSent(wire::HELLO), 1);
  const wire::Hello& hello = script.sent.front().message.header.hello();
  EXPECT_EQ(hello.since(), 1u);
  ASSERT_EQ(hello.claims_size(), 2);
  EXPECT_EQ(hello.claims(0).partition(), 1);
  EXPECT_EQ(hello.claims(0).round(), 1);
  script.Welcome(0);
  EXPECT_TRUE(script.dropped.empty());
  const int64_t asked = script.CountSent(wire::PULL);
  EXPECT_GT(asked, 0);  // what is open on server 0
  script.Welcome(1);
  EXPECT_GT(script.CountSent(wire::PULL), asked);
  EXPECT_EQ(script.CountSent(wire::PUSH), 0);  // acknowledged
  script.Order({{1, 0}, {2, 0}}, 1);
  script.Run(1);
  EXPECT_EQ(script.trained.size(), 4u);
}

// An acknowledgement may say that the contribution would be lost with the server.
TEST(Session, ContributionsThatAreHeldAreSentAgainToWhoeverTakesTheServersPlace) {
  Script script(SmallSettings(2));
  script.Join();
  script.Order({{1, 0}});
  script.held = true;
  script.Run(0);
  ASSERT_EQ(script.trained.size(), 1u);
  wire::Header gone;
  gone.set_type(wire::GONE);
  const auto pushes_after_rejoining = [&] {
    script.sent.clear();
    script.ReceiveHeader(1, gone);
    script.Welcome(1);
    return script.CountSent(wire::PUSH);
  };
  const int64_t chunks = pushes_after_rejoining();
  EXPECT_GT(chunks, 0);
  EXPECT_EQ(script.session().StateInWords().find("acknowledgements"), std::string::npos);
  script.held = false;  // the round has closed
  for (const auto& send : std::exchange(script.sent, {})) {
    if (send.message.header.type() == wire::PUSH) script.Answer(send);
  }
  EXPECT_EQ(pushes_after_rejoining(), 0);
}

TEST(Session, AnotherGenerationHasOtherWeights) {
  // The servers were started again from a checkpoint; their version 0 is not the one that is
  // installed, and the block that is being computed is of a past that was given up.
  Script script;
  script.Join();
  script.Order({{1, 0}});
  while (!script.train) {
    ASSERT_FALSE(script.sent.empty());
    const auto send = script.sent.front();
    script.sent.pop_front();
    script.Answer(send);
  }
  SayGone(&script);
  script.generation = 2;
  script.sent.clear();
  script.Tick(kMillisecond);
  script.Welcome(0);
  script.Order({{1, 0}});
  script.sent.clear();
  script.installs.clear();
  ASSERT_TRUE(script.Work());  // the old block ends
  EXPECT_EQ(script.CountSent(wire::PUSH), 0) << "a block of generation 1 is pushed in generation 2";
  EXPECT_FALSE(script.train) << "trains from weights of generation 1";
  script.Run(0);
  EXPECT_EQ(script.installs.size(), script.map().chunks().size());
}

TEST(Session, AStopOfAnotherGenerationIsForgotten) {
  Script script;
  script.stop_at = 0;
  script.Join();
  script.Order({{1, 0}});
  script.Run();
  EXPECT_EQ(script.trained.size(), 1u);  // halted at version 1
  SayGone(&script);
  script.generation = 2;
  script.start_version = 1;
  script.stop_at = -1;
  script.sent.clear();
  script.Tick(kMillisecond);
  script.Welcome(0);
  script.Order({{1, 1}});
  script.Run(1);
  ASSERT_EQ(script.trained.size(), 2u);
  EXPECT_EQ(script.trained[1], (std::pair<int64_t, int>{1, 1}));
}

TEST(Session, MessagesOfOtherJobsAndGenerationsAreIgnored) {
  Script script;
  script.Join();
  Message orders;
  orders.header.set_type(wire::HEARTBEAT_REPLY);
  orders.header.mutable_orders()->set_finished(true);
  orders.header.set_generation(1);
  orders.header.set_job(SmallSettings().identity.JobId() + 1);
  script.Take(script.session().OnMessage(0, orders, 0));
  EXPECT_FALSE(script.left);
  orders.header.set_job(SmallSettings().identity.JobId());
  orders.header.set_generation(7);
  script.Take(script.session().OnMessage(0, orders, 0));
  EXPECT_FALSE(script.left);
}

// --- Hostile servers.

TEST(Session, RandomMessagesDoNotCrashItNorMakeItAskWithoutEnd) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, RngPurpose::kTest);
    SessionSettings settings = SmallSettings(1 + static_cast<int>(seed % 3));
    if (seed % 2) settings.experiment.sync.push_codec = "1bit";
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
    for (int i = 0; i < 3000 && !script.left; ++i) {
      const int server = static_cast<int>(rng.NextBelow(settings.identity.servers));
      Message m;
      wire::Header& h = m.header;
      h.set_type(static_cast<wire::Type>(rng.NextBelow(20) ? types[rng.NextBelow(10)] : wild(40)));
      if (h.type() == wire::REFUSED) h.set_type(wire::CHUNK);  // ends it: tested elsewhere
      h.set_round(rng.NextBelow(2) ? static_cast<int64_t>(rng.NextBelow(9)) : wild(9));
      h.set_partition(static_cast<int32_t>(wild(3)));
      h.set_chunk(static_cast<int32_t>(wild(5)));
      h.set_slot(static_cast<int32_t>(wild(2)));
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
