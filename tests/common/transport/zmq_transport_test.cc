#include "common/transport/zmq_transport.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "common/base/rng.h"
#include "tests/common/transport/loop.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server on a free address of each kind.
class ZmqTransportTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::string FreeAddress() {
    if (GetParam() == "tcp") return "tcp://127.0.0.1:0";
    path_ = std::filesystem::temp_directory_path() /
            ("kumo_transport_test_" + std::to_string(getpid()));
    return "ipc://" + path_.string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Start(Node& server, std::initializer_list<Node*> clients) {
    const Status bound = server.transport->Bind(FreeAddress());
    ASSERT_TRUE(bound.ok()) << bound.message();
    for (Node* client : clients) {
      const Status status =
          client->transport->Connect("server/0", server.transport->bound_address());
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

 private:
  std::filesystem::path path_;
};

INSTANTIATE_TEST_SUITE_P(Addresses, ZmqTransportTest, ::testing::Values("tcp", "ipc"),
                         [](const auto& test) { return test.param; });

TEST_P(ZmqTransportTest, MessagesGoBothWaysBetweenNamedPeers) {
  Node server("server/0");
  Node worker("worker/a/1");
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(5, "to the server"), {&server, &worker}));
  ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return !server.received.empty(); }));
  EXPECT_EQ(server.received[0].first, "worker/a/1");
  EXPECT_EQ(server.received[0].second.header.chunk(), 5);
  EXPECT_EQ(Text(server.received[0].second.payload), "to the server");

  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(SendSoon(server, "worker/a/1", MakeMessage(6, large), {&server, &worker}));
  ASSERT_TRUE(SendSoon(server, "worker/a/1", MakeMessage(7), {&server, &worker}));
  ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return worker.received.size() == 2; }));
  EXPECT_EQ(worker.received[0].first, "server/0");
  EXPECT_EQ(Text(worker.received[0].second.payload), large);
  EXPECT_TRUE(worker.received[1].second.payload.empty());

  EXPECT_EQ(server.transport->counters().messages_sent, 2u);
  EXPECT_EQ(worker.transport->counters().messages_received, 2u);
  EXPECT_EQ(worker.transport->counters().bytes_received, server.transport->counters().bytes_sent);
  EXPECT_GT(server.transport->counters().bytes_sent, large.size());
}

TEST_P(ZmqTransportTest, OrderIsKeptPerPeerAndNobodyStarves) {
  constexpr int kMessages = 3000;
  Node server("server/0");
  Node a("worker/a/1");
  Node b("worker/b/1");
  Start(server, {&a, &b});
  std::map<Node*, int> sent = {{&a, 0}, {&b, 0}};
  ASSERT_TRUE(RunUntil({&server, &a, &b}, [&] {
    for (auto& [node, next] : sent) {
      // Messages of both kinds of payload: copied ones and owned ones.
      const std::string payload(next % 2 == 0 ? 10 : 5000, 'p');
      while (next < kMessages &&
             node->transport->Send("server/0", MakeMessage(next, payload)).ok()) {
        ++next;
      }
    }
    return server.received.size() == 2 * kMessages;
  }));
  std::map<PeerName, int> next;
  for (const auto& [from, message] : server.received) {
    ASSERT_EQ(message.header.chunk(), next[from]++) << from;
  }
  // Both sent from the start, so neither may be served only after all of the other's.
  const auto first_of = [&](const PeerName& peer) {
    return std::find_if(server.received.begin(), server.received.end(),
                        [&](const auto& entry) { return entry.first == peer; }) -
           server.received.begin();
  };
  EXPECT_LT(first_of("worker/a/1"), kMessages);
  EXPECT_LT(first_of("worker/b/1"), kMessages);
}

TEST_P(ZmqTransportTest, APayloadIsSentFromWhereItLiesAndLetGoOnce) {
  constexpr int kMessages = 64;  // more than the kernel's buffers and the receiver's queue take
  ZmqTransportOptions options = TestOptions("server/0");
  options.receive_queue_messages = 1;
  Node server(options);
  Node worker("worker/a/1");
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));

  std::atomic<int> freed{0};
  std::vector<std::string*> buffers;
  for (int i = 0; i < kMessages; ++i) {
    auto* buffer = new std::string(1 << 20, 'a');
    buffers.push_back(buffer);
    std::shared_ptr<const void> owner(buffer, [&freed](std::string* text) {
      ++freed;
      delete text;
    });
    Message message = MakeMessage(1 + i);
    message.payload = {std::move(owner), std::as_bytes(std::span(*buffer))};
    const Status status = worker.transport->Send("server/0", std::move(message));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // The server does not read, so the last one still waits: it is held, and what is written into it
  // now is what arrives.
  EXPECT_LT(freed, kMessages);
  buffers.back()->back() = 'z';
  ASSERT_TRUE(
      RunUntil({&server, &worker}, [&] { return server.received.size() == 1 + kMessages; }));
  EXPECT_EQ(Text(server.received.back().second.payload).back(), 'z');
  ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return freed == kMessages; }));
  worker.transport.reset();
  EXPECT_EQ(freed, kMessages);
}

TEST_P(ZmqTransportTest, PayloadsThatWereNeverSentAreLetGoWithTheTransport) {
  std::atomic<int> freed{0};
  {
    ZmqTransportOptions options = TestOptions("server/0");
    options.receive_queue_messages = 1;
    Node server(options);
    Node worker("worker/a/1");
    Start(server, {&worker});
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));
    for (int i = 0; i < 64; ++i) {
      auto* buffer = new std::string(1 << 20, 'a');
      Message message = MakeMessage(1 + i);
      message.payload.bytes = std::as_bytes(std::span(*buffer));
      message.payload.owner = std::shared_ptr<const void>(buffer, [&freed](std::string* text) {
        ++freed;
        delete text;
      });
      ASSERT_TRUE(worker.transport->Send("server/0", std::move(message)).ok());
    }
    worker.transport.reset();
  }
  EXPECT_EQ(freed, 64);
}

TEST_P(ZmqTransportTest, AReceivedPayloadOutlivesTheTransport) {
  Message message;
  {
    Node server("server/0");
    Node worker("worker/a/1");
    Start(server, {&worker});
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1, std::string(100'000, 'k')),
                         {&server, &worker}));
    ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return !server.received.empty(); }));
    message = std::move(server.received[0].second);
  }
  EXPECT_EQ(Text(message.payload), std::string(100'000, 'k'));
}

TEST_P(ZmqTransportTest, AnUnknownPeerIsUnavailable) {
  Node server("server/0");
  Start(server, {});
  const Status status = server.transport->Send("worker/nobody/1", MakeMessage(1, "x"));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("worker/nobody/1 is not connected"));
  EXPECT_EQ(server.transport->counters().sends_unavailable, 1u);
}

TEST_P(ZmqTransportTest, APeerThatLeftBecomesUnavailable) {
  Node server("server/0");
  Node worker("worker/a/1");
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1), {&server, &worker}));
  ASSERT_TRUE(SendSoon(server, "worker/a/1", MakeMessage(1), {&server, &worker}));
  worker.transport.reset();
  EXPECT_TRUE(RunUntil({&server}, [&] {
    return server.transport->Send("worker/a/1", MakeMessage(1)).code() == StatusCode::kUnavailable;
  }));
}

TEST_P(ZmqTransportTest, TheEndOfAPeersConnectionIsReported) {
  Node server("server/0");
  Node a("worker/a/1");
  Node b("worker/b/1");
  Start(server, {&a, &b});
  for (Node* node : {&a, &b}) {
    ASSERT_TRUE(SendSoon(*node, "server/0", MakeMessage(1), {&server, &a, &b}));
  }
  ASSERT_TRUE(RunUntil({&server, &a, &b}, [&] { return server.received.size() == 2; }));
  EXPECT_THAT(server.gone, IsEmpty());
  // Messages of before, which are delivered after the end, are no sign of life.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(a.transport->Send("server/0", MakeMessage(i)).ok());
  usleep(100'000);  // the kernel has them
  a.transport.reset();
  ASSERT_TRUE(RunUntil({&server, &b}, [&] { return !server.gone.empty(); }));
  for (int i = 0; i < 20; ++i) server.Poll(kMillisecond);
  EXPECT_THAT(server.gone, ElementsAre("worker/a/1"));
  EXPECT_THAT(server.back, IsEmpty());
}

// Ends all connections of this process, as a box on the way may.
void CutAllConnections() {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) shutdown(fd, SHUT_RDWR);
  }
}

TEST_P(ZmqTransportTest, APeerThatConnectsAnewIsReportedBack) {
  Node server("server/0");
  Node worker("worker/a/1");
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1), {&server, &worker}));
  ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return server.received.size() == 1; }));
  CutAllConnections();
  ASSERT_TRUE(RunUntil({&server, &worker}, [&] {
    (void)worker.transport->Send("server/0", MakeMessage(2));
    return !server.back.empty();
  }));
  EXPECT_THAT(server.gone, ElementsAre("worker/a/1"));
  EXPECT_THAT(server.back, ElementsAre("worker/a/1"));
}

TEST_P(ZmqTransportTest, NothingIsKeptForAServerThatIsNotThere) {
  const std::string address =
      FreeAddress() == "tcp://127.0.0.1:0" ? "tcp://127.0.0.1:1" : FreeAddress();
  Node worker("worker/a/1");
  ASSERT_TRUE(worker.transport->Connect("server/0", address).ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(worker.transport->Send("server/0", MakeMessage(i)).code(), StatusCode::kUnavailable);
    worker.Poll(kMillisecond);
  }
  EXPECT_TRUE(worker.connected.empty());
}

TEST_P(ZmqTransportTest, APeerThatDoesNotReadFillsABoundedQueue) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.receive_queue_messages = 1;
  Node server(options);
  options = TestOptions("worker/a/1");
  options.send_queue_bytes = int64_t{8} << 20;
  Node worker(options);
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));
  auto payload = std::make_shared<std::string>(1 << 20, 'a');
  int sent = 0;
  Status status;
  for (; sent < 1000; ++sent) {
    Message message = MakeMessage(1 + sent);
    message.payload = {payload, std::as_bytes(std::span(*payload))};
    status = worker.transport->Send("server/0", message);
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("server/0 does not read its messages"));
  // The queue's 8, and what the kernel buffers (up to 4 + 32 MiB where it grows them fully).
  EXPECT_LT(sent, 100);
  // Once it reads, everything accepted arrives, and there is room again.
  ASSERT_TRUE(RunUntil({&server, &worker},
                       [&] { return server.received.size() == 1 + static_cast<size_t>(sent); }));
  EXPECT_TRUE(SendSoon(worker, "server/0", MakeMessage(1), {&server, &worker}));
}

// Whoever asks and does not read costs less than who takes part.
TEST_P(ZmqTransportTest, OfAnswersToAnybodyFewWait) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.introduction_queue_bytes = 256 << 10;
  Node server(options);
  options = TestOptions("worker/a/1");
  options.receive_queue_messages = 1;
  Node worker(options);
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));
  ASSERT_TRUE(SendSoon(server, "worker/a/1", MakeMessage(0), {&server, &worker}));
  Message answer;
  answer.header.set_type(wire::STATUS_REPLY);
  answer.header.mutable_job_status()->set_waits_for(std::string(60'000, 'w'));
  int sent = 0;
  Status status;
  for (int full = 0; full < 100;) {
    status = server.transport->Send("worker/a/1", answer);
    status.ok() ? ++sent : ++full;
    if (!status.ok()) usleep(1000);  // the kernel takes what it buffers
  }
  EXPECT_THAT(status.message(), HasSubstr("worker/a/1 does not read its messages"));
  // What waits, and what the kernel buffers: up to 4 + 32 MiB.
  EXPECT_LT(sent, 37 * ((1 << 20) / 60'000));
}

TEST_P(ZmqTransportTest, HeadersCountInTheQueueToo) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.send_queue_bytes = int64_t{1} << 20;
  Node server(options);
  options = TestOptions("worker/a/1");
  options.receive_queue_messages = 1;
  Node worker(options);
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));
  ASSERT_TRUE(SendSoon(server, "worker/a/1", MakeMessage(0), {&server, &worker}));
  Message message = MakeMessage(1);
  message.header.mutable_refusal()->set_reason(std::string(10'000, 'x'));
  Status status;
  int sent = 0;
  while (sent < 100'000 && status.ok()) {
    status = server.transport->Send("worker/a/1", message);
    sent += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("worker/a/1 does not read its messages"));
  EXPECT_LT(sent, 6'000) << "the queue's 100, and what the kernel buffers";
}

// A job of many small chunks is sent by the thousand: what both ends are there for arrives.
TEST_P(ZmqTransportTest, ManySmallMessagesAreNotDropped) {
  Node server("server/0");
  Node worker("worker/a/1");
  Start(server, {&worker});
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&server, &worker}));
  constexpr int kMany = 20'000;
  for (int i = 1; i <= kMany; ++i) {
    const Status status = worker.transport->Send("server/0", MakeMessage(i, "small"));
    ASSERT_TRUE(status.ok()) << i << ": " << status.message();
  }
  EXPECT_TRUE(RunUntil({&server, &worker}, [&] { return server.received.size() == kMany + 1; }));
}

TEST_P(ZmqTransportTest, AServerThatComesBackOnItsAddressIsFoundAgain) {
  auto server = std::make_unique<Node>("server/0");
  Node worker("worker/a/1");
  Start(*server, {&worker});
  ASSERT_TRUE(RunUntil({server.get(), &worker}, [&] { return worker.connected.size() == 1; }));
  // OnConnected's word holds: the message that follows it is taken.
  ASSERT_TRUE(worker.transport->Send("server/0", MakeMessage(1)).ok());
  ASSERT_TRUE(RunUntil({server.get(), &worker}, [&] { return server->received.size() == 1; }));
  const std::string address = server->transport->bound_address();
  server.reset();
  ASSERT_TRUE(RunUntil({&worker}, [&] {
    return worker.transport->Send("server/0", MakeMessage(2)).code() == StatusCode::kUnavailable;
  }));

  server = std::make_unique<Node>("server/0");
  const Status again = server->transport->Bind(address);
  ASSERT_TRUE(again.ok()) << again.message();
  ASSERT_TRUE(RunUntil({server.get(), &worker}, [&] { return worker.connected.size() == 2; }));
  ASSERT_TRUE(worker.transport->Send("server/0", MakeMessage(3)).ok());
  ASSERT_TRUE(RunUntil({server.get(), &worker}, [&] { return !server->received.empty(); }));
  EXPECT_EQ(server->received.back().second.header.chunk(), 3);
  ASSERT_TRUE(SendSoon(*server, "worker/a/1", MakeMessage(4), {server.get(), &worker}));
}

// `node` says something to server 0 until `done`.
bool SaysUntil(Node& node, const std::function<bool()>& done, std::initializer_list<Node*> nodes) {
  return RunUntil(nodes, [&] {
    (void)node.transport->Send("server/0", MakeMessage(2));
    return done();
  });
}

TEST_P(ZmqTransportTest, ASecondProcessUnderALiveNameIsRefusedAndTheFirstUndisturbed) {
  Node server("server/0");
  Node first("server/1");
  Start(server, {&first});
  ASSERT_TRUE(SendSoon(first, "server/0", MakeMessage(1), {&server, &first}));
  ASSERT_TRUE(RunUntil({&server, &first}, [&] { return server.received.size() == 1; }));
  Node second("server/1");
  ASSERT_TRUE(second.transport->Connect("server/0", server.transport->bound_address()).ok());
  ASSERT_TRUE(
      SaysUntil(second, [&] { return !second.received.empty(); }, {&server, &first, &second}));
  const wire::Header& refused = second.received[0].second.header;
  EXPECT_EQ(refused.type(), wire::REFUSED);
  EXPECT_EQ(refused.refusal().code(), static_cast<uint32_t>(StatusCode::kFailedPrecondition));
  EXPECT_THAT(refused.refusal().reason(), HasSubstr("uses the name server/1"));
  EXPECT_EQ(server.received.size(), 1u) << "the second says nothing under the name";
  ASSERT_TRUE(SendSoon(server, "server/1", MakeMessage(3), {&server, &first}));
  EXPECT_TRUE(RunUntil({&server, &first}, [&] { return first.received.size() == 1; }));
  EXPECT_EQ(first.received[0].second.header.chunk(), 3);
}

TEST_P(ZmqTransportTest, AProcessThatIsStartedAgainHasItsNameAtOnce) {
  Node server("server/0");
  auto first = std::make_unique<Node>("server/1");
  Start(server, {first.get()});
  ASSERT_TRUE(SendSoon(*first, "server/0", MakeMessage(1), {&server, first.get()}));
  ASSERT_TRUE(RunUntil({&server, first.get()}, [&] { return server.received.size() == 1; }));
  first.reset();
  Node second("server/1");  // long before the first would count as silent
  ASSERT_TRUE(second.transport->Connect("server/0", server.transport->bound_address()).ok());
  ASSERT_TRUE(SaysUntil(second, [&] { return server.received.size() >= 2; }, {&server, &second}));
  ASSERT_TRUE(SendSoon(server, "server/1", MakeMessage(3), {&server, &second}));
  EXPECT_TRUE(RunUntil({&server, &second}, [&] { return !second.received.empty(); }));
  EXPECT_EQ(second.received[0].second.header.chunk(), 3);
}

TEST_P(ZmqTransportTest, AFrozenProcessLosesItsNameAndHearsSoWhenItThaws) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.silent_holder_us = 50 * kMillisecond;
  Node server(options);
  Node first("server/1");
  Start(server, {&first});
  ASSERT_TRUE(SendSoon(first, "server/0", MakeMessage(1), {&server, &first}));
  ASSERT_TRUE(RunUntil({&server, &first}, [&] { return server.received.size() == 1; }));
  Node second("server/1");
  ASSERT_TRUE(second.transport->Connect("server/0", server.transport->bound_address()).ok());
  ASSERT_TRUE(SaysUntil(second, [&] { return server.received.size() >= 2; }, {&server, &second}));
  EXPECT_EQ(server.received.back().second.header.chunk(), 2);
  ASSERT_TRUE(
      SaysUntil(first, [&] { return !first.received.empty(); }, {&server, &first, &second}));
  EXPECT_EQ(first.received[0].second.header.type(), wire::REFUSED);
  EXPECT_EQ(std::ranges::count_if(
                second.received,
                [](const auto& one) { return one.second.header.type() == wire::REFUSED; }),
            0);
}

// Which process is the worker of a name is for one server to decide.
TEST_P(ZmqTransportTest, TwoIncarnationsOfAWorkerAreTwoWhereNobodySaysOtherwise) {
  for (const bool one_worker_per_name : {false, true}) {
    ZmqTransportOptions options = TestOptions("server/0");
    options.one_worker_per_name = one_worker_per_name;
    Node server(options);
    Node first("worker/a/1"), second("worker/a/2");
    Start(server, {&first});
    ASSERT_TRUE(SendSoon(first, "server/0", MakeMessage(1), {&server, &first}));
    ASSERT_TRUE(RunUntil({&server, &first}, [&] { return server.received.size() == 1; }));
    ASSERT_TRUE(second.transport->Connect("server/0", server.transport->bound_address()).ok());
    ASSERT_TRUE(SaysUntil(second,
                          [&] { return server.received.size() > 1 || !second.received.empty(); },
                          {&server, &first, &second}));
    EXPECT_EQ(server.received.size() > 1, !one_worker_per_name);
    server.transport.reset();
  }
}

TEST_P(ZmqTransportTest, ABusyAddressIsRefusedByName) {
  Node server("server/0");
  Start(server, {});
  Node other("server/1");
  const Status status = other.transport->Bind(server.transport->bound_address());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(server.transport->bound_address() + " is in use"));
  // And the first one still listens.
  Node worker("worker/a/1");
  ASSERT_TRUE(worker.transport->Connect("server/0", server.transport->bound_address()).ok());
  EXPECT_TRUE(SendSoon(worker, "server/0", MakeMessage(1), {&server, &worker}));
}

TEST_P(ZmqTransportTest, ManyWorkersComeAndGo) {
  Node server("server/0");
  Start(server, {});
  for (int i = 0; i < 200; ++i) {
    Node worker("worker/w/" + std::to_string(i));
    ASSERT_TRUE(worker.transport->Connect("server/0", server.transport->bound_address()).ok());
    ASSERT_TRUE(
        SendSoon(worker, "server/0", MakeMessage(i, std::string(5000, 'x')), {&server, &worker}));
    ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return server.received.size() == i + 1u; }));
    ASSERT_TRUE(SendSoon(server, "worker/w/" + std::to_string(i),
                         MakeMessage(i, std::string(5000, 'y')), {&server, &worker}));
  }
}

TEST(ZmqTransportSettingsTest, BadNamesAndAddressesAreRefused) {
  EXPECT_FALSE(ZmqTransport::Make(TestOptions("")).ok());
  EXPECT_FALSE(ZmqTransport::Make(TestOptions("a b")).ok());
  EXPECT_FALSE(ZmqTransport::Make(TestOptions(std::string(239, 'x'))).ok());
  Node node("server/0");
  EXPECT_EQ(node.transport->Bind("7700").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(node.transport->Bind("tcp://0.0.0.0:0").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(node.transport->Bind("ipc:///no/such/folder/x").code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(node.transport->Connect("server/1", "tcp://127.0.0.1:0").code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(node.transport->Connect("server/1", "tcp://*:7700").code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(node.transport->Bind("tcp://127.0.0.1:0").ok());
  EXPECT_EQ(node.transport->Bind("tcp://127.0.0.1:0").code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(node.transport->Connect("server/1", "tcp://127.0.0.1:1").ok());
  EXPECT_EQ(node.transport->Connect("server/1", "tcp://127.0.0.1:1").code(),
            StatusCode::kFailedPrecondition);
}

TEST(ZmqTransportSettingsTest, ChecksumsTravelWhenAskedFor) {
  for (const Checksums checksums : {Checksums::kNetwork, Checksums::kAlways}) {
    Node server("server/0");
    ASSERT_TRUE(server.transport->Bind("tcp://127.0.0.1:0").ok());
    ZmqTransportOptions options = TestOptions("worker/a/1");
    options.checksums = checksums;
    Node worker(options);
    ASSERT_TRUE(worker.transport->Connect("server/0", server.transport->bound_address()).ok());
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1, "abc"), {&server, &worker}));
    ASSERT_TRUE(RunUntil({&server, &worker}, [&] { return !server.received.empty(); }));
    const uint32_t expected =
        checksums == Checksums::kAlways ? PayloadChecksum(MakePayload("abc").bytes) : 0;
    EXPECT_EQ(server.received[0].second.header.payload_crc32c(), expected);
  }
}

TEST(ZmqTransportLoopTest, EveryWakeFromAnotherThreadEndsAPoll) {
  Node node("server/0");
  constexpr int kTurns = 5000;
  std::atomic<int> wanted{0};
  std::atomic<int> seen{0};
  std::thread other([&] {
    for (int turn = 1; turn <= kTurns; ++turn) {
      wanted = turn;
      node.transport->Wake();
      while (seen < turn) std::this_thread::yield();
    }
  });
  const SteadyClock clock;
  const TimeUs start = clock.NowUs();
  while (seen < kTurns && clock.NowUs() < start + kPatience) {
    node.Poll(kPatience);  // a lost wake would be waited for this long
    seen = wanted.load();
  }
  EXPECT_EQ(seen, kTurns);
  EXPECT_LT(clock.NowUs() - start, kPatience);
  seen = kTurns;
  other.join();
}

TEST(ZmqTransportLoopTest, AWakeBeforeThePollCounts) {
  Node node("server/0");
  node.transport->Wake();
  node.transport->Wake();
  const SteadyClock clock;
  const TimeUs start = clock.NowUs();
  node.Poll(kPatience);
  EXPECT_LT(clock.NowUs() - start, kPatience);
}

TEST(ZmqTransportLoopTest, OtherDescriptorsAreServed) {
  Node node("server/0");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int calls = 0;
  node.transport->AddFd(ends[0], [&] {
    char c;
    ASSERT_EQ(read(ends[0], &c, 1), 1);
    ++calls;
  });
  node.Poll(0);
  EXPECT_EQ(calls, 0);
  ASSERT_EQ(write(ends[1], "ab", 2), 2);
  node.Poll(kPatience);
  node.Poll(kPatience);
  node.Poll(0);
  EXPECT_EQ(calls, 2);
  close(ends[0]);
  close(ends[1]);
}

TEST(ZmqTransportLoopTest, ABatchIsBounded) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.batch = 7;
  Node server(options);
  ASSERT_TRUE(server.transport->Bind("tcp://127.0.0.1:0").ok());
  Node worker("worker/a/1");
  ASSERT_TRUE(worker.transport->Connect("server/0", server.transport->bound_address()).ok());
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(0), {&worker}));
  for (int i = 1; i < 50; ++i) {
    ASSERT_TRUE(worker.transport->Send("server/0", MakeMessage(i)).ok());
  }
  ASSERT_TRUE(RunUntil({&worker}, [&] {
    const int handled = server.Poll(kMillisecond);
    EXPECT_LE(handled, 7);
    return server.received.size() == 50;
  }));
}

}  // namespace
}  // namespace kumo
