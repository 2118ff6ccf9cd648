#include "server/server_node.h"

#include <algorithm>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/protocol.h"
#include "tests/server/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::SmallJob;
using testing::HasSubstr;

Job JobOn(int servers) {
  Job job = SmallJob();
  job.experiment.cluster.servers.assign(servers, "ipc://somewhere");
  job.experiment.cluster.workers = 1;
  job.experiment.sync.push_codec = "int8";
  return job;
}

ServerNode Node(const Job& job, int index) {
  ServerNodeSettings settings;
  settings.index = index;
  settings.identity = IdentityOf(job.experiment);
  settings.experiment = job.experiment;
  settings.host = "here";
  settings.incarnation = 3;
  return ServerNode(settings, 0);
}

Message Stamped(const Job& job, Message message, uint32_t generation = 1) {
  message.header.set_protocol(kProtocolVersion);
  message.header.set_job(IdentityOf(job.experiment).JobId());
  message.header.set_generation(generation);
  return message;
}

Message WorkerHello(const Job& job, const std::string& name) {
  const JobIdentity identity = IdentityOf(job.experiment);
  Message message;
  message.header.set_type(wire::HELLO);
  wire::Hello* hello = message.header.mutable_hello();
  hello->set_role(wire::Hello::WORKER);
  hello->set_job_name(identity.job_name);
  hello->set_experiment_hash(identity.experiment_hash);
  hello->set_experiment_text(identity.experiment_text);
  hello->set_servers(identity.servers);
  hello->set_chunk_kib(identity.chunk_kib);
  hello->set_name(name);
  *hello->mutable_spec() = SpecToWire(job.spec);
  return Stamped(job, std::move(message), 0);
}

Message Plain(const Job& job, wire::Type type) {
  Message message;
  message.header.set_type(type);
  return Stamped(job, std::move(message));
}

std::vector<SendAction> Sends(const ServerActions& actions) {
  std::vector<SendAction> sends;
  for (const ServerAction& action : actions) {
    if (const auto* send = std::get_if<SendAction>(&action)) sends.push_back(*send);
  }
  return sends;
}

const SendAction* Find(const std::vector<SendAction>& sends, wire::Type type) {
  const auto found = std::find_if(sends.begin(), sends.end(), [&](const SendAction& s) {
    return s.message.header.type() == type;
  });
  return found == sends.end() ? nullptr : &*found;
}

std::optional<Status> ExitOf(const ServerActions& actions) {
  for (const ServerAction& action : actions) {
    if (const auto* left = std::get_if<ExitAction>(&action)) return left->status;
  }
  return std::nullopt;
}

// --- Joining.

TEST(ServerNode, WelcomesAWorkerOfItsJob) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  const auto sends = Sends(node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0));
  const SendAction* welcome = Find(sends, wire::WELCOME);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->to, "worker/a/1");
  EXPECT_EQ(welcome->message.header.protocol(), kProtocolVersion);
  EXPECT_EQ(welcome->message.header.job(), IdentityOf(job.experiment).JobId());
  EXPECT_EQ(welcome->message.header.welcome().generation(), 1u);
  EXPECT_EQ(welcome->message.header.welcome().version(), 0);
}

TEST(ServerNode, RefusesAWorkerOfAnotherExperimentByNameAndIsNotHurt) {
  const Job job = JobOn(1);
  Job other = JobOn(1);
  other.experiment.sync.block = 99;
  ServerNode node = Node(job, 0);
  auto sends = Sends(node.OnMessage("worker/b/1", WorkerHello(other, "b"), 0));
  const SendAction* refusal = Find(sends, wire::REFUSED);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->message.header.refusal().code(),
            static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_THAT(refusal->message.header.refusal().reason(), HasSubstr("sync.block"));
  sends = Sends(node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0));
  EXPECT_TRUE(Find(sends, wire::WELCOME));
}

TEST(ServerNode, TheFirstWorkerSaysWhatTheNetworkIs) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  Message impossible = WorkerHello(job, "x");
  impossible.header.mutable_hello()->mutable_spec()->mutable_tensors(0)->add_shape(INT64_MAX);
  EXPECT_TRUE(Find(Sends(node.OnMessage("worker/x/1", impossible, 0)), wire::REFUSED));
  (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  Job other = job;
  other.spec.train_samples = 81;
  EXPECT_TRUE(Find(Sends(node.OnMessage("worker/b/1", WorkerHello(other, "b"), 0)), wire::REFUSED));
}

TEST(ServerNode, RefusesWorkersWhenItHasToldTheCheckpointIsOfAnotherNetwork) {
  const Job job = JobOn(1);
  ServerNodeSettings settings;
  settings.identity = IdentityOf(job.experiment);
  settings.experiment = job.experiment;
  settings.restored = checkpoint::Manifest();
  settings.restored->set_name("round-000000000003");
  settings.restored->set_fingerprint(1);
  ServerNode node(settings, 0);
  const auto sends = Sends(node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0));
  const SendAction* refusal = Find(sends, wire::REFUSED);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->message.header.refusal().reason(), HasSubstr("round-000000000003"));
}

TEST(ServerNode, OtherJobsStrangersAndOldGenerationsDoNotReachTheShard) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  const auto initialise = [&](uint32_t generation, uint64_t job_change) {
    const ShardMap map(job.spec.layout, 1, job.experiment.cluster.chunk_kib * 1024);
    Message m = Stamped(job, test::InitialiseMessage(map.chunks()[0], 1), generation);
    m.header.set_job(m.header.job() + job_change);
    return m;
  };
  EXPECT_TRUE(node.OnMessage("worker/a/1", initialise(1, 0), 0).empty());
  auto sends = Sends(node.OnMessage("worker/a/1", Plain(job, wire::HEARTBEAT), 0));
  EXPECT_TRUE(Find(sends, wire::GONE));  // it has to join first
  (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  EXPECT_TRUE(node.OnMessage("worker/a/1", initialise(1, 1), 0).empty());
  for (const uint32_t generation : {0u, 2u, UINT32_MAX}) {
    EXPECT_TRUE(node.OnMessage("worker/a/1", initialise(generation, 0), 0).empty());
  }
  EXPECT_TRUE(node.OnMessage("worker/b/1", initialise(1, 0), 0).empty());
  EXPECT_TRUE(Find(Sends(node.OnMessage("worker/a/1", initialise(1, 0), 0)), wire::ACK));
}

TEST(ServerNode, AnybodyMayAskForTheStatus) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  Message message;
  message.header.set_type(wire::STATUS);
  const auto sends = Sends(node.OnMessage("client/1", message, 0));
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].message.header.job_status().job_name(), "small");
  EXPECT_EQ(sends[0].message.header.job_status().phase(), "waiting");
}

// --- A server other than the first.

Message WelcomeTo(const Job& job, uint32_t generation, const std::string& restore = "") {
  Message welcome = Plain(job, wire::WELCOME);
  welcome.header.mutable_welcome()->set_generation(generation);
  welcome.header.mutable_welcome()->set_since(generation);
  welcome.header.mutable_welcome()->set_restore(restore);
  return welcome;
}

TEST(ServerNode, AFollowerJoinsServer0BeforeItTakesWorkers) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  const auto sends = Sends(node.Tick(0));
  const SendAction* hello = Find(sends, wire::HELLO);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->to, ServerPeer(0));
  EXPECT_EQ(hello->message.header.hello().server_index(), 1);
  EXPECT_TRUE(node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0).empty());
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 4), 0);
  EXPECT_EQ(node.generation(), 4u);
  const auto welcome = Sends(node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0));
  ASSERT_TRUE(Find(welcome, wire::WELCOME));
  EXPECT_EQ(Find(welcome, wire::WELCOME)->message.header.welcome().generation(), 4u);
  const auto beat = Sends(node.Tick(kSecond));
  ASSERT_TRUE(Find(beat, wire::HEARTBEAT));
  EXPECT_TRUE(Find(beat, wire::HEARTBEAT)->message.header.server_report().ready());
}

TEST(ServerNode, TheTableOfMembersIsBoundedAndForgetsTheSilent) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  int welcomed = 0;
  const Message hello = WorkerHello(job, "a");
  const auto join = [&](int i, TimeUs now) {
    return Sends(node.OnMessage("worker/w" + std::to_string(i) + "/1", hello, now));
  };
  for (int i = 0; i < 5000; ++i) welcomed += Find(join(i, 0), wire::WELCOME) != nullptr;
  EXPECT_EQ(welcomed, 4096);
  const auto refused = join(5000, 0);
  ASSERT_TRUE(Find(refused, wire::REFUSED));
  EXPECT_EQ(Find(refused, wire::REFUSED)->message.header.refusal().code(),
            static_cast<uint32_t>(StatusCode::kResourceExhausted));
  (void)node.Tick(25 * kSecond);  // they have been silent
  EXPECT_TRUE(Find(join(5000, 25 * kSecond), wire::WELCOME));
}

TEST(ServerNode, AFollowerLoadsWhatServer0Chose) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 2, "round-000000000003"), 0);
  const ServerActions actions = node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  const auto restore = std::find_if(actions.begin(), actions.end(), [](const ServerAction& a) {
    return std::holds_alternative<RestoreAction>(a);
  });
  ASSERT_NE(restore, actions.end());
  EXPECT_EQ(std::get<RestoreAction>(*restore).checkpoint, "round-000000000003");
  auto beat = Sends(node.Tick(kSecond));
  EXPECT_FALSE(Find(beat, wire::HEARTBEAT)->message.header.server_report().ready());
  (void)node.OnRestored(2, DataLoss("half of it is gone"), kSecond);
  beat = Sends(node.Tick(kSecond));
  ASSERT_TRUE(Find(beat, wire::HEARTBEAT));  // at once
  EXPECT_THAT(Find(beat, wire::HEARTBEAT)->message.header.server_report().failure(),
              HasSubstr("half of it is gone"));
}

TEST(ServerNode, AFollowerRepeatsThatItSavedUntilItIsHeard) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  checkpoint::File file;
  file.set_name("shard-1");
  EXPECT_TRUE(Find(Sends(node.OnSaved(1, 5, file, 0)), wire::SAVED));
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(Find(Sends(node.Tick(i * kSecond)), wire::SAVED)) << i;
  }
  Message ack = Plain(job, wire::ACK);
  ack.header.set_acknowledges(wire::SAVED);
  ack.header.set_round(5);
  (void)node.OnMessage(ServerPeer(0), ack, 4 * kSecond);
  EXPECT_FALSE(Find(Sends(node.Tick(5 * kSecond)), wire::SAVED));
}

TEST(ServerNode, AFollowerLeavesWithTheJob) {
  const Job job = JobOn(2);
  const auto exit_after = [&](auto fill) {
    ServerNode node = Node(job, 1);
    (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
    Message message = Plain(job, wire::HEARTBEAT_REPLY);
    fill(&message.header);
    return ExitOf(node.OnMessage(ServerPeer(0), message, 0));
  };
  EXPECT_FALSE(exit_after([](wire::Header*) {}));
  const auto done = exit_after([](wire::Header* h) { h->mutable_orders()->set_finished(true); });
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->ok());
  const auto stopped = exit_after([](wire::Header* h) {
    h->mutable_orders()->set_finished(true);
    h->mutable_orders()->set_stopped(true);
  });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->code(), StatusCode::kUnavailable);
  const auto refused = exit_after([](wire::Header* h) {
    h->set_type(wire::REFUSED);
    h->mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), StatusCode::kFailedPrecondition);
  const auto failed = exit_after([](wire::Header* h) {
    h->mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kDataLoss));
    h->mutable_refusal()->set_reason("damaged");
  });
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), StatusCode::kDataLoss);
  EXPECT_THAT(failed->message(), HasSubstr("damaged"));
  const auto nameless = exit_after([](wire::Header* h) { h->mutable_refusal(); });
  ASSERT_TRUE(nameless);
  EXPECT_FALSE(nameless->ok()) << "a failure without a code is not success";
}

TEST(ServerNode, AFollowerDoesNotWaitForServer0ForEver) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  EXPECT_FALSE(ExitOf(node.Tick(59 * kSecond)));
  const auto left = ExitOf(node.Tick(61 * kSecond));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->code(), StatusCode::kUnavailable);
}

TEST(ServerNode, AFollowerThatHasJoinedWaitsForServer0ToComeBack) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  EXPECT_FALSE(ExitOf(node.Tick(599 * kSecond)));
  EXPECT_TRUE(ExitOf(node.Tick(601 * kSecond)));
}

// --- Going back.

std::vector<RestoreAction> Restores(const ServerActions& actions) {
  std::vector<RestoreAction> restores;
  for (const ServerAction& action : actions) {
    if (const auto* restore = std::get_if<RestoreAction>(&action)) restores.push_back(*restore);
  }
  return restores;
}

TEST(ServerNode, AFollowerJoinsANewGenerationAndLoadsWhatItStartsFrom) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  Message newer = Plain(job, wire::HEARTBEAT_REPLY);
  newer.header.set_generation(2);
  (void)node.OnMessage(ServerPeer(0), newer, kSecond);
  EXPECT_EQ(node.generation(), 0u);
  EXPECT_TRUE(Find(Sends(node.Tick(kSecond)), wire::HELLO));
  // Nobody is a member any more, and a late word of the generation before changes nothing.
  EXPECT_TRUE(node.OnMessage("worker/a/1", Plain(job, wire::PULL), kSecond).empty());
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), kSecond);
  EXPECT_EQ(node.generation(), 0u);
  const auto restores =
      Restores(node.OnMessage(ServerPeer(0), WelcomeTo(job, 2, "round-000000000003"), kSecond));
  EXPECT_EQ(node.generation(), 2u);
  ASSERT_EQ(restores.size(), 1u);  // it knows the network already
  EXPECT_EQ(restores[0].checkpoint, "round-000000000003");
  EXPECT_EQ(restores[0].generation, 2u);
  EXPECT_GT(restores[0].wanted.size(), 0);
}

TEST(ServerNode, Server0WelcomesNobodyUntilItKnowsWhereAGenerationStarts) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 0);
  const auto server_hello = [&](uint64_t incarnation) {
    Message hello = WorkerHello(job, "");
    hello.header.mutable_hello()->set_role(wire::Hello::SERVER);
    hello.header.mutable_hello()->set_server_index(1);
    hello.header.mutable_hello()->set_incarnation(incarnation);
    hello.header.mutable_hello()->clear_spec();
    return hello;
  };
  (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
  (void)node.OnMessage(ServerPeer(1), server_hello(1), 0);
  Message beat = Plain(job, wire::HEARTBEAT);
  beat.header.mutable_server_report()->set_ready(true);
  (void)node.OnMessage(ServerPeer(1), beat, 0);
  (void)node.Tick(kSecond);
  ASSERT_EQ(node.Describe(kSecond).phase(), "training");

  const ServerActions back = node.OnMessage(ServerPeer(1), server_hello(2), kSecond);
  EXPECT_TRUE(std::any_of(back.begin(), back.end(), [](const ServerAction& action) {
    return std::holds_alternative<ChooseCheckpointAction>(action);
  }));
  EXPECT_EQ(node.generation(), 2u);
  EXPECT_FALSE(Find(Sends(back), wire::WELCOME));
  EXPECT_FALSE(
      Find(Sends(node.OnMessage("worker/a/1", WorkerHello(job, "a"), kSecond)), wire::WELCOME));
  EXPECT_TRUE(node.OnChosen(1, std::optional<checkpoint::Manifest>(), kSecond).empty());

  checkpoint::Manifest manifest;
  manifest.set_name("round-000000000003");
  manifest.set_version(3);
  const ServerActions chosen =
      node.OnChosen(2, std::optional<checkpoint::Manifest>(manifest), kSecond);
  ASSERT_EQ(Restores(chosen).size(), 1u);
  const auto welcome = Sends(node.OnMessage(ServerPeer(1), server_hello(2), kSecond));
  ASSERT_TRUE(Find(welcome, wire::WELCOME));
  EXPECT_EQ(Find(welcome, wire::WELCOME)->message.header.welcome().generation(), 2u);
  EXPECT_EQ(Find(welcome, wire::WELCOME)->message.header.welcome().version(), 3);
  // The process that was replaced, should it live, is told; the new one does not take it for
  // itself.
  const auto late = Sends(node.OnMessage(ServerPeer(1), server_hello(1), kSecond));
  ASSERT_TRUE(Find(late, wire::REFUSED));
  EXPECT_EQ(Find(late, wire::REFUSED)->message.header.refusal().incarnation(), 1u);
}

TEST(ServerNode, ARefusalOfAnotherProcessIsNotForUs) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);  // incarnation 3
  Message refusal = Plain(job, wire::REFUSED);
  refusal.header.mutable_refusal()->set_code(static_cast<uint32_t>(StatusCode::kUnavailable));
  refusal.header.mutable_refusal()->set_incarnation(2);
  EXPECT_FALSE(ExitOf(node.OnMessage(ServerPeer(0), refusal, 0)));
  refusal.header.mutable_refusal()->set_incarnation(3);
  EXPECT_TRUE(ExitOf(node.OnMessage(ServerPeer(0), refusal, 0)));
}

// --- Hostile peers.

class WildMessages {
 public:
  WildMessages(const Job& job, uint64_t seed)
      : job_(job),
        map_(job.spec.layout, static_cast<int>(job.experiment.cluster.servers.size()),
             job.experiment.cluster.chunk_kib * 1024),
        rng_(seed, RngPurpose::kTest) {}

  Rng& rng() { return rng_; }

  Message Next() {
    const Chunk& chunk = map_.chunks()[rng_.NextBelow(map_.chunks().size())];
    Message m = test::PushMessage(job_, chunk, static_cast<int64_t>(rng_.NextBelow(8)),
                                  static_cast<int>(rng_.NextBelow(3)));
    wire::Header& h = m.header;
    const int types[] = {1, 4, 6, 10, 11, 13, 16, 17, 20, 21, 30};
    if (rng_.NextBelow(3)) h.set_type(static_cast<wire::Type>(types[rng_.NextBelow(11)]));
    if (rng_.NextBelow(30) == 0) h.set_type(static_cast<wire::Type>(Wild(40)));
    if (h.type() == wire::INITIALISE || h.type() == wire::PUT_STATE) {
      m.payload = test::PackFloats(std::vector<float>(chunk.range.size()));
    }
    if (h.type() == wire::HELLO) m = RandomHello();
    m = Stamped(job_, std::move(m));
    for (uint64_t i = rng_.NextBelow(4); i > 0; --i) Mutate(&m);
    return m;
  }

 private:
  int64_t Wild(int64_t sensible) {
    const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20};
    if (rng_.NextBelow(3) == 0) return extremes[rng_.NextBelow(6)];
    return static_cast<int64_t>(rng_.NextBelow(sensible));
  }

  Message RandomHello() {
    Message m = WorkerHello(job_, "w" + std::to_string(rng_.NextBelow(5)));
    wire::Hello* hello = m.header.mutable_hello();
    if (rng_.NextBelow(4) == 0) {
      hello->set_role(wire::Hello::SERVER);
      hello->set_server_index(static_cast<int32_t>(Wild(3)));
    }
    hello->set_incarnation(rng_.NextBelow(3));
    if (rng_.NextBelow(4) == 0) hello->mutable_spec()->set_train_samples(Wild(100));
    if (rng_.NextBelow(4) == 0) hello->mutable_spec()->mutable_tensors(0)->add_shape(Wild(9));
    if (rng_.NextBelow(4) == 0) hello->set_experiment_hash(rng_.NextUint64());
    if (rng_.NextBelow(4) == 0) hello->set_name(std::string(1000, '\x7f'));
    return m;
  }

  void Mutate(Message* m) {
    wire::Header& h = m->header;
    switch (rng_.NextBelow(16)) {
      case 0:
        h.set_round(Wild(10));
        break;
      case 1:
        h.set_partition(static_cast<int32_t>(Wild(4)));
        break;
      case 2:
        h.set_chunk(static_cast<int32_t>(Wild(6)));
        break;
      case 3:
        h.set_codec(static_cast<uint32_t>(Wild(7)));
        break;
      case 4:
        h.set_samples(Wild(9));
        break;
      case 5:
        h.set_slot(static_cast<int32_t>(Wild(2)));
        break;
      case 6:
        h.set_vector(static_cast<wire::Vector>(Wild(3)));
        break;
      case 7:
        h.set_generation(static_cast<uint32_t>(Wild(3)));
        break;
      case 8:
        h.set_job(rng_.NextUint64());
        break;
      case 9:
        m->payload = test::PackFloats(std::vector<float>(rng_.NextBelow(600)));
        break;
      case 10:
        h.mutable_metrics()->set_samples(Wild(100));
        break;
      case 11:
        h.mutable_metrics()->set_loss_sum(std::numeric_limits<double>::quiet_NaN());
        break;
      case 12:
        h.mutable_worker_report()->set_samples(Wild(100));
        break;
      case 13:
        h.mutable_server_report()->set_version(Wild(9));
        break;
      case 14:
        h.mutable_saved_file()->set_name("../../etc");
        break;
      default:
        h.set_wait(true);
    }
  }

  const Job& job_;
  ShardMap map_;
  Rng rng_;
};

TEST(ServerNode, RandomMessagesNeitherCrashNorFillAServer) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const int servers = 1 + static_cast<int>(seed % 3);
    const Job job = JobOn(servers);
    WildMessages wild(job, seed);
    const int index = static_cast<int>(seed % servers);
    ServerNode node = Node(job, index);
    if (index > 0) (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
    if (seed % 4) (void)node.OnMessage("worker/w0/1", WorkerHello(job, "w0"), 0);
    std::vector<std::shared_ptr<ChunkWork>> work;
    bool over = false;
    size_t most = 0;
    TimeUs now = 0;
    const auto take = [&](ServerActions actions) {
      most = std::max(most, actions.size());
      over |= ExitOf(actions).has_value();
      for (ServerAction& action : actions) {
        if (auto* compute = std::get_if<ComputeAction>(&action)) work.push_back(compute->work);
      }
    };
    for (int i = 0; i < 1000 && !over; ++i) {
      now += static_cast<TimeUs>(wild.rng().NextBelow(20 * kMillisecond));
      const std::string name = "w" + std::to_string(wild.rng().NextBelow(5));
      PeerName from = "worker/" + name + "/1";
      if (wild.rng().NextBelow(20) == 0) from = ServerPeer(static_cast<int>(i % servers));
      if (from == ServerPeer(0) && index > 0) from = "client/1";  // server 0 itself is trusted
      take(node.OnMessage(from, wild.Next(), now));
      if (wild.rng().NextBelow(5) == 0) take(node.Tick(now));
      while (!work.empty() && wild.rng().NextBelow(2)) {
        const auto next = work.back();
        work.pop_back();
        next->Run();
        take(node.OnComputed(*next, now));
      }
      ASSERT_LT(work.size(), 10u);
    }
    // Never more than an answer or two for each of the few members and parked requests.
    EXPECT_LT(most, 200u);
    if (index == 0) {
      Message status;
      status.header.set_type(wire::STATUS);
      EXPECT_EQ(Sends(node.OnMessage("client/1", status, now)).size(), 1u);
      EXPECT_LT(node.Describe(now).ByteSizeLong(), 100'000u);
    }
  }
}

// A neighbour's messages neither: what it is sent to keep, and what it fetches.
TEST(ServerNode, RandomMessagesBetweenNeighboursDoNotCrashThem) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Job job = JobOn(2);
    job.experiment.cluster.replicas = 2;
    WildMessages wild(job, seed);
    ServerNode node = Node(job, 1);
    const bool fetches = seed % 2 == 0;
    Message welcome = WelcomeTo(job, 2);
    if (fetches) welcome.header.mutable_welcome()->set_since(1);
    (void)node.OnMessage(ServerPeer(0), welcome, 0);
    (void)node.OnMessage("worker/a/1", WorkerHello(job, "a"), 0);
    const ShardMap map(job.spec.layout, 2, job.experiment.cluster.chunk_kib * 1024);
    for (int i = 0; i < 1000; ++i) {
      const auto below = [&](uint64_t n) { return static_cast<int>(wild.rng().NextBelow(n)); };
      Message m = wild.Next();
      wire::Header& h = m.header;
      const wire::Type types[] = {wire::REPLICATE, wire::FETCH_REPLICA, wire::ACK};
      h.set_type(types[below(3)]);
      h.set_acknowledges(types[below(2)]);
      h.set_generation(2);
      h.set_job(IdentityOf(job.experiment).JobId());
      h.set_chunk(below(map.chunks().size() + 2) - 1);
      h.set_round(below(5) == 0 ? INT64_MAX - below(3) : below(4) - 1);
      h.set_slot(below(6) - 1);
      h.set_arrays(static_cast<uint32_t>(below(5)));
      const bool known = h.chunk() >= 0 && h.chunk() < static_cast<int>(map.chunks().size());
      if (known && below(4) > 0) {
        m.payload = test::PackFloats(std::vector<float>(map.chunks()[h.chunk()].range.size()));
      }
      (void)node.OnMessage(ServerPeer(0), m, i * kMillisecond);
      (void)node.Tick(i * kMillisecond);
    }
  }
}

TEST(ServerNode, RandomMessagesFromServer0DoNotCrashAFollower) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Job job = JobOn(2);
    WildMessages wild(job, seed);
    ServerNode node = Node(job, 1);
    const int types[] = {2, 4, 5, 12, 14, 15};
    for (int i = 0; i < 500; ++i) {
      Message m = wild.Next();
      m.header.set_type(static_cast<wire::Type>(types[wild.rng().NextBelow(6)]));
      m.header.mutable_welcome()->set_generation(static_cast<uint32_t>(wild.rng().NextBelow(3)));
      m.header.mutable_welcome()->set_since(static_cast<uint32_t>(wild.rng().NextBelow(3)));
      m.header.mutable_welcome()->set_restore("../..");
      if (wild.rng().NextBelow(20) == 0) m.header.mutable_refusal()->set_code(12345);
      (void)node.OnMessage(ServerPeer(0), m, i * kMillisecond);
      (void)node.Tick(i * kMillisecond);
    }
  }
}

}  // namespace
}  // namespace kumo
