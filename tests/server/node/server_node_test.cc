#include "server/node/server_node.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/node/server_node_harness.h"

namespace kumo {
namespace {

using test::ExitOf;
using test::Find;
using test::Job;
using test::JobOn;
using test::Node;
using test::Plain;
using test::Sends;
using test::Stamped;
using test::WelcomeTo;
using test::WorkerHello;
using testing::HasSubstr;

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
  (void)node.Tick(kSecond);  // the training begins, with leases
  EXPECT_TRUE(node.OnMessage("worker/a/1", initialise(1, 1), 0).empty());
  for (const uint32_t generation : {0u, 2u, UINT32_MAX}) {
    EXPECT_TRUE(node.OnMessage("worker/a/1", initialise(generation, 0), 0).empty());
  }
  EXPECT_TRUE(node.OnMessage("worker/b/1", initialise(1, 0), 0).empty());
  EXPECT_TRUE(Find(Sends(node.OnMessage("worker/a/1", initialise(1, 0), 0)), wire::ACK));
}

TEST(ServerNode, AnyMessageOfAWorkerShowsThatItIsThere) {
  const Job job = JobOn(1);
  ServerNode node = Node(job, 0);
  const PeerName worker = "worker/a/1";
  (void)node.OnMessage(worker, WorkerHello(job, "a"), 0);
  (void)node.OnMessage(worker, Stamped(job, test::PullMessage(0, 0)), 7 * kSecond);
  Message status;
  status.header.set_type(wire::STATUS);
  const auto sends = Sends(node.OnMessage("client/1", status, 8 * kSecond));
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].message.header.job_status().workers(0).seen_seconds_ago(), 1);
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
  Message hello = WorkerHello(job, "");
  const auto join = [&](int i, TimeUs now) {
    const std::string name = "w" + std::to_string(i);
    hello.header.mutable_hello()->set_name(name);
    return Sends(node.OnMessage(WorkerPeer(name, 1), hello, now));
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

// Who speaks under a server's name is believed what that server says.
TEST(ServerNode, NobodyJoinsUnderAnothersName) {
  const Job job = JobOn(3);
  for (const int index : {0, 1}) {
    ServerNode node = Node(job, index);
    (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
    for (const PeerName& name : {ServerPeer(0), ServerPeer(1), ServerPeer(2), PeerName("client/x"),
                                 WorkerPeer("b", 1), WorkerPeer("a", 2)}) {
      if (index != 0 && name == ServerPeer(0)) continue;  // what server 0 says is no hello
      const auto sends = Sends(node.OnMessage(name, WorkerHello(job, "a"), 0));
      EXPECT_TRUE(Find(sends, wire::REFUSED)) << index << " " << name;
      EXPECT_FALSE(Find(sends, wire::WELCOME)) << index << " " << name;
    }
  }
  ServerNode node = Node(job, 0);
  const auto hello_of = [&](int index) {
    Message message = WorkerHello(job, "a");
    message.header.mutable_hello()->set_role(wire::Hello::SERVER);
    message.header.mutable_hello()->set_server_index(index);
    return message;
  };
  EXPECT_TRUE(Find(Sends(node.OnMessage(ServerPeer(2), hello_of(1), 0)), wire::REFUSED));
  EXPECT_TRUE(Find(Sends(node.OnMessage("worker/a/1", hello_of(1), 0)), wire::REFUSED));
  EXPECT_TRUE(Find(Sends(node.OnMessage(ServerPeer(0), hello_of(0), 0)), wire::REFUSED));
  EXPECT_TRUE(Find(Sends(node.OnMessage(ServerPeer(1), hello_of(1), 0)), wire::WELCOME));
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
  beat = Sends(node.OnRestored(2, DataLoss("half of it is gone"), kSecond));
  ASSERT_TRUE(Find(beat, wire::HEARTBEAT));  // at once
  EXPECT_THAT(Find(beat, wire::HEARTBEAT)->message.header.server_report().failure(),
              HasSubstr("half of it is gone"));
}

TEST(ServerNode, AFollowerCountsWhatComesFromWhomServer0HasNamed) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  const PeerName holder = "worker/a/1", other = "worker/b/1";
  (void)node.OnMessage(holder, WorkerHello(job, "a"), 0);
  (void)node.OnMessage(other, WorkerHello(job, "b"), 0);
  const ShardMap map(job.spec.layout, 2, job.experiment.cluster.chunk_kib * 1024);
  const Chunk& chunk = map.ServerChunks(1).front();
  TimeUs now = kSecond;
  const auto acknowledged = [&](const PeerName& from, const Message& message) {
    now += UnconfirmedContributions::kInterval;
    return Find(Sends(node.OnMessage(from, Stamped(job, message), now)), wire::ACK) != nullptr;
  };

  // Before it knows of leases what comes waits, and counts when it does.
  const Message initial = test::InitialiseMessage(chunk, 1);
  EXPECT_FALSE(acknowledged(other, initial));
  EXPECT_FALSE(acknowledged(holder, initial));
  LeaseTable table(job.experiment.sync.partitions);
  table.Begin({holder}, 0);
  Message orders = Plain(job, wire::HEARTBEAT_REPLY);
  *orders.header.mutable_orders()->mutable_lease_table() = table.ToWire();
  now += UnconfirmedContributions::kInterval;
  const auto sent = Sends(node.OnMessage(ServerPeer(0), orders, now));
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].to, holder) << "and then the other's, which does not count any more";
  EXPECT_EQ(sent[0].message.header.acknowledges(), wire::INITIALISE);

  const Message push = test::PushMessage(job, chunk, 0, 1);
  EXPECT_FALSE(acknowledged(other, push));
  EXPECT_TRUE(acknowledged(holder, push));
  EXPECT_TRUE(acknowledged(other, push)) << "a second one counts for nothing, whose it may be";
  // What it goes by is said to server 0, which then does not repeat it.
  EXPECT_EQ(Find(Sends(node.Tick(now + kSecond)), wire::HEARTBEAT)
                ->message.header.server_report()
                .lease_table(),
            HashOf(table.ToWire()));
  // In the absence of server 0, and when it was started again, the last word holds.
  orders.header.clear_orders();
  (void)node.OnMessage(ServerPeer(0), orders, now);
  EXPECT_FALSE(acknowledged(other, test::PushMessage(job, chunk, 0, 2)));
  EXPECT_TRUE(acknowledged(holder, test::PushMessage(job, chunk, 0, 2)));
}

TEST(ServerNode, AFollowerRepeatsThatItSavedUntilItIsHeard) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 1), 0);
  const SavedShardFile file{100, 7};
  EXPECT_TRUE(Find(Sends(node.OnSaved(1, 5, 0, file, 0)), wire::SAVED));
  EXPECT_TRUE(Find(Sends(node.OnSaved(1, 5, 7, file, 0)), wire::SAVED));
  for (int i = 1; i < 4; ++i) {
    EXPECT_TRUE(Find(Sends(node.Tick(i * kSecond)), wire::SAVED)) << i;
  }
  Message ack = Plain(job, wire::ACK);
  ack.header.set_acknowledges(wire::SAVED);
  ack.header.set_round(5);
  ack.header.set_attempt(7);  // each attempt is heard for itself
  (void)node.OnMessage(ServerPeer(0), ack, 4 * kSecond);
  const auto sent = Sends(node.Tick(4 * kSecond));
  ASSERT_TRUE(Find(sent, wire::SAVED));
  EXPECT_EQ(Find(sent, wire::SAVED)->message.header.attempt(), 0);
  ack.header.set_attempt(0);
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
    const ServerActions actions = node.OnMessage(ServerPeer(0), message, 0);
    const std::vector<SendAction> sends = Sends(actions);
    const SendAction* const bye = Find(sends, wire::BYE);
    const bool of_the_job = message.header.type() == wire::HEARTBEAT_REPLY;
    EXPECT_EQ(bye != nullptr, of_the_job && ExitOf(actions)) << "server 0 waits for it";
    if (bye) {
      EXPECT_EQ(bye->to, ServerPeer(0));
      EXPECT_EQ(bye->message.header.generation(), 1u);
    }
    return ExitOf(actions);
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

TEST(ServerNode, AFollowerLooksIntoItsFolderAgainWhenServer0Asks) {
  const Job job = JobOn(2);
  ServerNode node = Node(job, 1);
  const auto first = node.Tick(0);
  const auto joins = [](const ServerActions& actions) {
    std::vector<wire::Hello> hellos;
    for (const ServerAction& action : actions) {
      const auto* join = std::get_if<JoinAction>(&action);
      if (join) hellos.push_back(join->hello.message.header.hello());
    }
    return hellos;
  };
  ASSERT_EQ(joins(first).size(), 1u);
  EXPECT_EQ(joins(first)[0].asked(), 0u);
  Message ask = Plain(job, wire::ASK_FOLDER);
  ask.header.set_generation(6);
  const auto again = joins(node.OnMessage(ServerPeer(0), ask, 1));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].asked(), 6u);
  EXPECT_EQ(again[0].incarnation(), joins(first)[0].incarnation());
  // Once it takes part it has nothing to say.
  (void)node.OnMessage(ServerPeer(0), WelcomeTo(job, 6), 2);
  EXPECT_TRUE(node.OnMessage(ServerPeer(0), ask, 3).empty());
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
  EXPECT_TRUE(node.OnDiskAnswer(1, CheckpointChosen{std::optional<checkpoint::Manifest>()}, kSecond)
                  .empty());

  checkpoint::Manifest manifest;
  manifest.set_name("round-000000000003");
  manifest.set_version(3);
  const ServerActions chosen =
      node.OnDiskAnswer(2, CheckpointChosen{std::optional(manifest)}, kSecond);
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

// Its WELCOME of the generation before came after the new one's.
TEST(ServerNode, AMemberThatIsInAnOlderGenerationIsTold) {
  const Job job = JobOn(1);
  ServerNodeSettings settings;
  settings.identity = IdentityOf(job.experiment);
  settings.experiment = job.experiment;
  settings.generation = 2;
  ServerNode node(settings, 0);
  ASSERT_TRUE(Find(Sends(node.OnMessage("worker/w/1", WorkerHello(job, "w"), 0)), wire::WELCOME));
  const auto sent = Sends(node.OnMessage("worker/w/1", Plain(job, wire::HEARTBEAT), kSecond));
  ASSERT_TRUE(Find(sent, wire::HEARTBEAT_REPLY));
  EXPECT_EQ(Find(sent, wire::HEARTBEAT_REPLY)->message.header.generation(), 2u);
}

// A worker that goes on would bring what the job is about to forget.
TEST(ServerNode, WhereItsPartIsLostServer0WelcomesNoWorkerUntilTheJobHasGoneBack) {
  Job job = JobOn(2);
  job.experiment.cluster.replicas = 2;
  ServerNodeSettings settings;
  settings.identity = IdentityOf(job.experiment);
  settings.experiment = job.experiment;
  settings.generation = 2;
  ServerNode node(settings, 0);
  Message neighbour = Plain(job, wire::HELLO);
  wire::Hello* hello = neighbour.header.mutable_hello();
  *hello = HelloOf(settings.identity, {});
  hello->set_role(wire::Hello::SERVER);
  hello->set_server_index(1);
  hello->set_incarnation(7);
  hello->set_since(1);
  hello->set_holds_replica(true);
  (void)node.OnMessage("worker/w/1", WorkerHello(job, "w"), 0);
  (void)node.OnMessage(ServerPeer(1), neighbour, 0);
  const auto asked = Sends(node.Tick(kSecond));
  ASSERT_TRUE(Find(asked, wire::FETCH_REPLICA));
  Message nothing = Stamped(job, {}, 2);
  nothing.header.set_type(wire::ACK);
  nothing.header.set_acknowledges(wire::FETCH_REPLICA);
  nothing.header.set_chunk(Find(asked, wire::FETCH_REPLICA)->message.header.chunk());
  nothing.header.set_round(-1);
  std::vector<SendAction> sent = Sends(node.OnMessage(ServerPeer(1), nothing, kSecond));
  EXPECT_FALSE(Find(sent, wire::WELCOME));
  sent = Sends(node.OnMessage("worker/w/1", WorkerHello(job, "w"), kSecond));
  EXPECT_FALSE(Find(sent, wire::WELCOME));
  (void)node.Tick(2 * kSecond);
  sent = Sends(
      node.OnDiskAnswer(3, CheckpointChosen{std::optional<checkpoint::Manifest>()}, 2 * kSecond));
  ASSERT_TRUE(Find(sent, wire::WELCOME));
  EXPECT_EQ(Find(sent, wire::WELCOME)->message.header.welcome().since(), 3u);
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

}  // namespace
}  // namespace kumo
