// Connections with keys: who is let in, under which names, and what those cost who are not.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "common/job/protocol.h"
#include "common/transport/curve.h"
#include "tests/common/transport/intruder.h"
#include "tests/common/transport/key_folder.h"
#include "tests/common/transport/loop.h"
#include "tests/common/transport/recording_proxy.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

size_t OpenDescriptors() {
  const auto folder = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(folder), end(folder)));
}

// Bytes on the wire (ZeroMQ RFC 23 and 26), with the two in front of a command.
constexpr size_t kGreeting = 64, kHello = 2 + 200, kWelcome = 2 + 168;

std::string HeaderFrame(wire::Type type) {
  wire::Header header;
  header.set_type(type);
  header.set_protocol(kProtocolVersion);
  header.set_job(kTestJob);
  return header.SerializeAsString();
}

// A connection that says again what was tapped, in the steps of a handshake: so many bytes, and
// then so many are awaited. All of the rest follows. The caller closes it.
int Replay(int port, const std::string& tapped,
           const std::vector<std::pair<size_t, size_t>>& steps) {
  const int fd = ConnectToPort(port);
  size_t at = 0;
  for (const auto& [bytes, answer] : steps) {
    EXPECT_EQ(send(fd, tapped.data() + at, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    std::string answered(answer, '\0');
    EXPECT_EQ(recv(fd, answered.data(), answer, MSG_WAITALL), static_cast<ssize_t>(answer));
    at += bytes;
  }
  EXPECT_EQ(send(fd, tapped.data() + at, tapped.size() - at, MSG_NOSIGNAL),
            static_cast<ssize_t>(tapped.size() - at));
  return fd;
}

class KeyedTransportTest : public testing::Test {
 protected:
  KeyedTransportTest() : server_(Options("server/0", ServerKey(0))) {
    EXPECT_TRUE(server_.transport->Bind("tcp://127.0.0.1:0").ok());
    address_ = server_.transport->bound_address();
  }

  ZmqTransportOptions Options(const std::string& name, const KeyHolder& holder) const {
    ZmqTransportOptions options = TestOptions(name);
    options.keys = folder_.Of(holder);
    // Longer than any test: no test waits for what a timer ends anyway.
    options.handshake_ms = 300'000;
    return options;
  }
  // A process with this key says something under this name. True: it was heard.
  bool IsHeard(const std::string& name, const KeyHolder& holder) {
    Node node(Options(name, holder));
    EXPECT_TRUE(node.transport->Connect("server/0", address_).ok());
    const uint64_t refused = counters().messages_refused;
    server_.received.clear();
    EXPECT_TRUE(SendSoon(node, "server/0", MakeMessage(1), {&node, &server_}));
    EXPECT_TRUE(RunUntil({&node, &server_}, [&] {
      return !server_.received.empty() || counters().messages_refused > refused;
    }));
    return !server_.received.empty() && server_.received[0].first == name;
  }
  // An honest process is served both ways.
  void ExpectService() {
    Node worker(Options("worker/worker-3/1", WorkerKey(3)));
    ASSERT_TRUE(worker.transport->Connect("server/0", address_).ok());
    server_.received.clear();
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(5, "there"), {&worker, &server_}));
    const auto heard = [&] {
      return std::ranges::any_of(server_.received, [](const auto& one) {
        return one.first == "worker/worker-3/1" && Text(one.second.payload) == "there";
      });
    };
    ASSERT_TRUE(RunUntil({&worker, &server_}, heard));
    ASSERT_TRUE(
        SendSoon(server_, "worker/worker-3/1", MakeMessage(6, "back"), {&worker, &server_}));
    ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return !worker.received.empty(); }));
    EXPECT_EQ(Text(worker.received[0].second.payload), "back");
  }
  const TransportCounters& counters() const { return server_.transport->counters(); }

  KeyFolder folder_;
  Node server_;
  std::string address_;
};

TEST_F(KeyedTransportTest, WhoHasAKeyIsHeardUnderTheNamesThatItAllowsAndNoOthers) {
  const struct {
    const char* name;
    KeyHolder key;
  } heard[] = {
      {"server/1", ServerKey(1)},           {"worker/worker-3/1", WorkerKey(3)},
      {"worker/worker-3/2", WorkerKey(3)},  {"worker/worker-9/1", kSharedWorkerKey},
      {"worker/gpu-a/1", kSharedWorkerKey}, {"client/1", kClientKey},
  };
  for (const auto& [name, key] : heard) {
    EXPECT_TRUE(IsHeard(name, key)) << name << " with the key of " << key.ToString();
  }
  const struct {
    const char* name;
    KeyHolder key;
  } refused[] = {
      {"server/1", WorkerKey(3)},
      {"server/1", kSharedWorkerKey},
      {"server/1", kClientKey},
      {"server/2", ServerKey(1)},
      {"server/0", ServerKey(1)},
      {"server/11", ServerKey(1)},
      {"worker/worker-0/1", WorkerKey(3)},
      {"worker/worker-33/1", WorkerKey(3)},
      {"worker/gpu-a/1", WorkerKey(3)},
      {"worker/worker-3/1", ServerKey(1)},
      {"worker/worker-3/1", kClientKey},
      {"client/1", WorkerKey(3)},
      {"client/1", ServerKey(1)},
  };
  uint64_t count = counters().messages_refused;
  for (const auto& [name, key] : refused) {
    EXPECT_FALSE(IsHeard(name, key)) << name << " with the key of " << key.ToString();
    EXPECT_EQ(counters().messages_refused, ++count) << name;
  }
  ExpectService();
}

TEST_F(KeyedTransportTest, ThePayloadsOfTheGreatestLengthGoThroughBothWays) {
  Node worker(Options("worker/worker-3/1", WorkerKey(3)));
  ASSERT_TRUE(worker.transport->Connect("server/0", address_).ok());
  const std::string payload(TestOptions("x").framing.max_payload_bytes, 'p');
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1, payload), {&worker, &server_}));
  ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return !server_.received.empty(); }));
  EXPECT_EQ(Text(server_.received[0].second.payload), payload);
  ASSERT_TRUE(SendSoon(server_, "worker/worker-3/1", MakeMessage(1, payload), {&worker, &server_}));
  ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return !worker.received.empty(); }));
  EXPECT_EQ(Text(worker.received[0].second.payload), payload);
}

TEST_F(KeyedTransportTest, APeerWithoutAKeyIsRefusedAndTold) {
  const uint64_t before = counters().connections_refused;
  Intruder intruder(address_, IdOf("worker/worker-3/1"), 10);
  Node worker(TestOptions("worker/worker-3/1"));
  ASSERT_TRUE(worker.transport->Connect("server/0", address_).ok());
  ASSERT_TRUE(RunUntil({&server_, &worker}, [&] {
    intruder.Try(HeaderFrame(wire::PUSH));
    return counters().connections_refused >= before + 2;
  }));
  EXPECT_TRUE(server_.received.empty());
  EXPECT_TRUE(worker.connected.empty());
  ExpectService();
}

TEST_F(KeyedTransportTest, AServerWithoutKeysIsNotTalkedTo) {
  Node open(TestOptions("server/0"));
  ASSERT_TRUE(open.transport->Bind("tcp://127.0.0.1:0").ok());
  Node worker(Options("worker/worker-3/1", WorkerKey(3)));
  ASSERT_TRUE(worker.transport->Connect("server/0", open.transport->bound_address()).ok());
  for (int i = 0; i < 200; ++i) {
    open.Poll(kMillisecond);
    worker.Poll(kMillisecond);
    EXPECT_EQ(worker.transport->Send("server/0", MakeMessage(1)).code(), StatusCode::kUnavailable);
  }
  EXPECT_TRUE(worker.connected.empty());
  EXPECT_TRUE(open.received.empty());
}

TEST_F(KeyedTransportTest, AnUnknownKeyIsRefusedUntilTheAllowListHasIt) {
  // Its folder has the same servers, and a worker that the server's folder does not have yet.
  const KeyFolder other(std::vector<KeyHolder>{});
  const auto over = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy(folder_.path(), other.path(),
                        over | std::filesystem::copy_options::recursive);
  other.Add({WorkerKey(7)});
  ZmqTransportOptions options = TestOptions("worker/worker-7/1");
  options.keys = other.Of(WorkerKey(7));
  Node worker(options);
  ASSERT_TRUE(worker.transport->Connect("server/0", address_).ok());
  ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return counters().connections_refused >= 2; }));
  EXPECT_TRUE(worker.connected.empty());
  EXPECT_TRUE(server_.received.empty());
  ExpectService();
  std::filesystem::copy_file(other.File("allow-list"), folder_.File("allow-list"),
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1), {&worker, &server_}));
  ASSERT_TRUE(RunUntil({&worker, &server_}, [&] {
    return std::ranges::any_of(server_.received,
                               [](const auto& one) { return one.first == "worker/worker-7/1"; });
  }));
}

TEST_F(KeyedTransportTest, AnAllowListThatWentWrongLeavesTheOneThatWasRead) {
  const auto known = folder_.Of(ServerKey(0)), honest = folder_.Of(WorkerKey(3));
  std::ofstream(folder_.File("allow-list")) << "nonsense\n";
  const KeyFolder stranger;
  ZmqTransportOptions options = TestOptions("worker/worker-0/1");
  auto keys = std::make_shared<ConnectionKeys>(*stranger.Of(WorkerKey(0)));
  // It knows whom to talk to.
  keys->allowed = known->allowed;
  options.keys = keys;
  Node worker(options);
  ASSERT_TRUE(worker.transport->Connect("server/0", address_).ok());
  ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return counters().connections_refused > 0; }));
  options = TestOptions("worker/worker-3/1");
  options.keys = honest;
  Node other(options);
  ASSERT_TRUE(other.transport->Connect("server/0", address_).ok());
  ASSERT_TRUE(SendSoon(other, "server/0", MakeMessage(1), {&other, &server_}));
  EXPECT_TRUE(RunUntil({&other, &server_}, [&] { return !server_.received.empty(); }));
}

TEST_F(KeyedTransportTest, OnlyTheServerThatIsMeantCanAnswer) {
  // A thief of server 1's key, at server 0's address.
  ZmqTransportOptions options = Options("server/0", ServerKey(1));
  Node thief(options);
  ASSERT_TRUE(thief.transport->Bind("tcp://127.0.0.1:0").ok());
  Node worker(Options("worker/worker-3/1", WorkerKey(3)));
  ASSERT_TRUE(worker.transport->Connect("server/0", thief.transport->bound_address()).ok());
  ASSERT_TRUE(RunUntil({&worker, &thief},
                       [&] { return thief.transport->counters().connections_refused >= 3; }));
  EXPECT_TRUE(worker.connected.empty());
  EXPECT_TRUE(thief.received.empty());
  const Status unknown = worker.transport->Connect("server/5", address_);
  EXPECT_EQ(unknown.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(unknown.message(), AllOf(HasSubstr("server/5"), HasSubstr("kumo keys")));
}

// Everything that an honest process has sent, its handshake and its message, once more.
TEST_F(KeyedTransportTest, WhatWasTappedCannotBeReadNorReplayed) {
  const std::string secret = "nobody else is to read this, nor to send it again";
  RecordingProxy proxy(PortIn(address_));
  {
    Node worker(Options("worker/worker-3/1", WorkerKey(3)));
    ASSERT_TRUE(worker.transport->Connect("server/0", proxy.address()).ok());
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1, secret), {&worker, &server_}));
    ASSERT_TRUE(RunUntil({&worker, &server_}, [&] { return !server_.received.empty(); }));
  }
  const std::string tapped = proxy.sent();
  EXPECT_THAT(tapped, AllOf(HasSubstr("CURVE"), HasSubstr("HELLO"), HasSubstr("INITIATE"),
                            Not(HasSubstr(secret.substr(0, 12)))));
  server_.received.clear();
  const TransportCounters before = counters();
  for (int i = 0; i < 3; ++i) {
    const int fd = Replay(PortIn(address_), tapped, {{kGreeting, kGreeting}, {kHello, kWelcome}});
    ASSERT_TRUE(RunUntil({&server_}, [&] {
      return counters().connections_refused ==
             before.connections_refused + static_cast<size_t>(i) + 1;
    }));
    close(fd);
  }
  EXPECT_EQ(counters().messages_received, before.messages_received);
  EXPECT_EQ(counters().messages_refused, before.messages_refused);
  ExpectService();
}

// That the test above sees what it should: without keys the same bytes are a message again.
TEST(UnkeyedTransportTest, WhatWasTappedCanBeReadAndReplayed) {
  Node server("server/0");
  ASSERT_TRUE(server.transport->Bind("tcp://127.0.0.1:0").ok());
  const int port = PortIn(server.transport->bound_address());
  RecordingProxy proxy(port);
  {
    Node worker("worker/worker-3/1");
    ASSERT_TRUE(worker.transport->Connect("server/0", proxy.address()).ok());
    ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(1, "a secret"), {&worker, &server}));
    ASSERT_TRUE(RunUntil({&worker, &server}, [&] { return !server.received.empty(); }));
  }
  const std::string tapped = proxy.sent();
  EXPECT_THAT(tapped, HasSubstr("a secret"));
  server.received.clear();
  const int fd = Replay(port, tapped, {{kGreeting, kGreeting}});
  EXPECT_TRUE(RunUntil({&server}, [&] { return !server.received.empty(); }));
  close(fd);
}

TEST_F(KeyedTransportTest, AFloodWithoutKeysHoldsFewDescriptors) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ExpectService();
  const size_t descriptors = OpenDescriptors();
  constexpr size_t kFlood = 3000;
  const int port = PortIn(address_);
  // They stay and say nothing, or begin a handshake that they do not end.
  std::vector<int> open;
  while (open.size() < kFlood) {
    open.push_back(ConnectToPort(port));
    if (open.size() % 2 == 0)
      (void)send(open.back(), "\xff\0\0\0\0\0\0\0\1\x7f\3", 11, MSG_NOSIGNAL);
    server_.Poll(0);
  }
  const auto held = [&] { return OpenDescriptors() - open.size() - descriptors; };
  ASSERT_TRUE(RunUntil({&server_}, [&] {
    return counters().connections_refused >= kFlood - PendingConnections::kMost &&
           held() <= PendingConnections::kMost;
  }));
  // Honest processes are served while they are there.
  ExpectService();
  for (const int one : open) close(one);
}

TEST_F(KeyedTransportTest, KeysOpenAddressesThatOthersReach) {
  Node open(Options("server/1", ServerKey(1)));
  EXPECT_TRUE(open.transport->Bind("tcp://0.0.0.0:0").ok());
  Node closed(TestOptions("server/1"));
  const Status status = closed.transport->Bind("tcp://0.0.0.0:0");
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cluster.keys"), HasSubstr("cluster.insecure")));
}

TEST_F(KeyedTransportTest, ASocketFileStaysAsItIs) {
  const std::string address = "ipc://@keyed_transport_test-" + std::to_string(getpid());
  Node server(Options("server/1", ServerKey(1)));
  ASSERT_TRUE(server.transport->Bind(address).ok());
  for (Node* worker : {std::make_unique<Node>(Options("worker/worker-3/1", WorkerKey(3))).release(),
                       std::make_unique<Node>("worker/a/1").release()}) {
    const std::unique_ptr<Node> owned(worker);
    ASSERT_TRUE(worker->transport->Connect("server/1", address).ok());
    server.received.clear();
    ASSERT_TRUE(SendSoon(*worker, "server/1", MakeMessage(1), {worker, &server}));
    ASSERT_TRUE(RunUntil({worker, &server}, [&] { return !server.received.empty(); }));
  }
}

TEST(CurveTest, WhyAHandshakeFailedSaysWhatToLookAt) {
  const ConnectionKeys keys{WorkerKey(3), {"P", "S"}, {}, "the/folder"};
  const int mismatch = ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH;
  EXPECT_THAT(WhyHandshakeFailed(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 400, &keys),
              AllOf(HasSubstr("the key of worker 3"), HasSubstr("the/folder")));
  EXPECT_THAT(WhyHandshakeFailed(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, mismatch, nullptr),
              HasSubstr("set cluster.keys"));
  EXPECT_THAT(WhyHandshakeFailed(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, mismatch, &keys),
              HasSubstr("has no keys"));
  EXPECT_THAT(WhyHandshakeFailed(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, 0, &keys),
              HasSubstr("its key differs from the one"));
}

}  // namespace
}  // namespace kumo
