// Whatever comes in at the port: the process lives on, serves its real peers, and does not grow.
#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "common/base/rng.h"
#include "common/job/protocol.h"
#include "tests/common/transport/intruder.h"
#include "tests/common/transport/loop.h"

namespace kumo {
namespace {

std::string RandomBytes(Rng& rng, size_t n) {
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.NextUint32());
  return bytes;
}

// ZMTP 3.1's greeting with the NULL mechanism.
std::string Greeting() {
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL", 16);
  greeting.resize(64, '\0');
  return greeting;
}

// A READY command of a DEALER with that routing id.
std::string Ready(const std::string& id) {
  const auto property = [](const std::string& key, const std::string& value) {
    const auto n = static_cast<uint32_t>(value.size());
    std::string text(1, static_cast<char>(key.size()));
    text += key;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(n >> shift);
    return text + value;
  };
  const std::string body =
      std::string("\x05READY") + property("Socket-Type", "DEALER") + property("Identity", id);
  return std::string(1, '\x04') + static_cast<char>(body.size()) + body;
}

class HostilePeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.transport->Bind("tcp://127.0.0.1:0").ok());
    address_ = server_.transport->bound_address();
    ASSERT_TRUE(worker_.transport->Connect("server/0", address_).ok());
    ExpectService();
  }

  // A real peer is served. Nobody else's messages arrive, but questions of `asker`.
  void ExpectService(const PeerName& asker = "") {
    server_.received.clear();
    ASSERT_TRUE(SendSoon(worker_, "server/0", MakeMessage(1, "honest"), {&server_, &worker_}));
    const auto served = [&] {
      std::erase_if(server_.received, [&](const auto& one) {
        return one.first == asker && one.second.header.type() == wire::STATUS;
      });
      return !server_.received.empty();
    };
    ASSERT_TRUE(RunUntil({&server_, &worker_}, served));
    EXPECT_EQ(server_.received.size(), 1u) << "only the honest peer's message may arrive";
    EXPECT_EQ(Text(server_.received[0].second.payload), "honest");
  }

  int ConnectRaw() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(ParseAddress(address_)->port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }

  // A raw connection past the handshake of ZMTP: what follows are frames.
  int ConnectZmtp(const std::string& name) {
    const int fd = ConnectRaw();
    SendRaw(fd, Greeting() + Ready(IdOf(name)));
    // The other side is ready when it has said so: a greeting of 64 bytes, a command of 43.
    char answer[64 + 43];
    EXPECT_EQ(recv(fd, answer, sizeof answer, MSG_WAITALL), ssize_t{sizeof answer});
    return fd;
  }

  static void SendRaw(int fd, const std::string& bytes) {
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // True once the server has closed the connection.
  bool IsClosed(int fd) {
    return RunUntil({&server_}, [&] {
      char buffer[4096];
      const ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      return n == 0 || (n < 0 && errno != EAGAIN);
    });
  }

  Node server_{"server/0"};
  Node worker_{"worker/honest/1"};
  std::string address_;
};

TEST_F(HostilePeerTest, RandomBytesOverTcpChangeNothing) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, RngPurpose::kTest, 10);
    const int fd = ConnectRaw();
    const uint64_t writes = 1 + rng.NextBelow(4);
    for (uint64_t i = 0; i < writes; ++i) SendRaw(fd, RandomBytes(rng, rng.NextBelow(3000)));
    server_.Poll(0);
    close(fd);
  }
  ExpectService();
}

// libzmq takes bytes without a greeting for ZMTP 1. The names of such peers could end the process.
TEST_F(HostilePeerTest, PeersOfOlderProtocolsAreRefused) {
  const std::string signature = std::string("\xff\0\0\0\0\0\0\0\1", 9) + '\x7f';
  const std::string name("\0\5older", 7);     // ZMTP 2: flags, size
  const std::string v1_name("\6\0older", 7);  // ZMTP 1: size with the flags, flags
  for (const std::string& bytes :
       {v1_name, signature + '\0' + '\5' + v1_name, signature + '\1' + '\5' + name}) {
    const int fd = ConnectRaw();
    SendRaw(fd, bytes);
    EXPECT_TRUE(IsClosed(fd)) << bytes.size() << " bytes";
    close(fd);
  }
  ExpectService();
}

// ZeroMQ stops to read where we do not keep up. Should the connection be lost then, the next ping
// of ZeroMQ's own heartbeat would end the process; when it was on there was one every 2 s.
TEST_F(HostilePeerTest, AConnectionThatIsLostWhileItsMessagesWaitEndsNobody) {
  const int fd = ConnectZmtp("worker/flood/1");
  const std::string frame = std::string("\0\1x", 3);
  for (int full = 0; full < 50;) {
    if (send(fd, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) continue;
    ++full;
    usleep(1000);
  }
  const linger reset{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
  usleep(2500 * 1000);
  ExpectService();
}

TEST_F(HostilePeerTest, GreetingsThatStopOrGoWrongChangeNothing) {
  std::vector<int> open;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, RngPurpose::kTest, 11);
    std::string bytes = Greeting() + Ready("worker/odd/" + std::to_string(seed));
    const uint64_t flips = rng.NextBelow(4);
    for (uint64_t i = 0; i < flips; ++i) {
      bytes[rng.NextBelow(bytes.size())] = static_cast<char>(rng.NextUint32());
    }
    bytes.resize(rng.NextBelow(bytes.size() + 1));
    if (rng.NextBelow(2) == 0) bytes += RandomBytes(rng, rng.NextBelow(300));
    const int fd = ConnectRaw();
    SendRaw(fd, bytes);
    server_.Poll(0);
    // Some leave, some stay and say nothing more.
    if (rng.NextBelow(2) == 0) {
      close(fd);
    } else {
      open.push_back(fd);
    }
  }
  ExpectService();
  for (const int fd : open) close(fd);
}

TEST_F(HostilePeerTest, ASilentConnectionIsClosedWhenItsTimeIsUp) {
  ZmqTransportOptions options = TestOptions("server/0");
  options.handshake_ms = 100;
  Node server(options);
  ASSERT_TRUE(server.transport->Bind("tcp://127.0.0.1:0").ok());
  address_ = server.transport->bound_address();
  const int fd = ConnectRaw();
  EXPECT_TRUE(IsClosed(fd));
  close(fd);
}

// What the tests below break on purpose is right otherwise.
TEST_F(HostilePeerTest, HandMadeBytesThatAreRightAreReceived) {
  wire::Header header;
  header.set_type(wire::PULL);
  header.set_protocol(kProtocolVersion);
  header.set_job(kTestJob);
  const std::string frame = header.SerializeAsString();
  const int fd = ConnectZmtp("worker/raw/1");
  SendRaw(fd, std::string(1, '\0') + static_cast<char>(frame.size()) + frame);
  server_.received.clear();
  ASSERT_TRUE(RunUntil({&server_}, [&] { return !server_.received.empty(); }));
  EXPECT_EQ(server_.received[0].first, "worker/raw/1");
  close(fd);
}

TEST_F(HostilePeerTest, AFrameLongerThanTheLimitEndsTheConnection) {
  const int fd = ConnectZmtp("worker/big/1");
  // A long frame that announces 2^40 bytes.
  SendRaw(fd, std::string("\x02\0\0\x01\0\0\0\0\0", 9));
  EXPECT_TRUE(IsClosed(fd));
  close(fd);
  ExpectService();
}

TEST_F(HostilePeerTest, AFrameOneByteLongerThanTheLimitIsNotReceived) {
  Intruder intruder(address_, IdOf("worker/big/1"));
  wire::Header header;
  header.set_type(wire::PUSH);
  header.set_protocol(kProtocolVersion);
  header.set_job(kTestJob);
  header.set_payload_bytes((1 << 20) + 1);
  intruder.Send({header.SerializeAsString(), std::string((1 << 20) + 1, 'x')});
  ExpectService();
  // The same a byte shorter is fine: it was the length.
  header.set_payload_bytes(1 << 20);
  Intruder welcome(address_, IdOf("worker/big/2"));
  welcome.Send({header.SerializeAsString(), std::string(1 << 20, 'x')});
  server_.received.clear();
  EXPECT_TRUE(RunUntil({&server_}, [&] { return !server_.received.empty(); }));
}

TEST_F(HostilePeerTest, AMessageOfAMillionFramesEndsItsConnection) {
  const int fd = ConnectZmtp("worker/many/1");
  std::string empty;
  for (int i = 0; i < 1'000'000; ++i) empty += std::string("\1\0", 2);
  SendRaw(fd, empty);
  SendRaw(fd, std::string(2, '\0'));
  EXPECT_TRUE(IsClosed(fd));
  close(fd);
  ExpectService();
  EXPECT_EQ(server_.transport->counters().messages_refused, 1u);
}

TEST_F(HostilePeerTest, FramesThatAreNotOursAreCountedAndDropped) {
  Intruder intruder(address_, IdOf("worker/odd/1"));
  Rng rng(1, RngPurpose::kTest, 12);
  uint64_t sent = 0;
  for (int i = 0; i < 500; ++i, ++sent) {
    std::vector<std::string> frames(1 + rng.NextBelow(5));
    for (std::string& frame : frames) frame = RandomBytes(rng, rng.NextBelow(500));
    intruder.Send(frames);
  }
  ASSERT_TRUE(
      RunUntil({&server_}, [&] { return server_.transport->counters().messages_refused == sent; }));
  EXPECT_EQ(server_.transport->counters().messages_received, 1u);
  ExpectService();
}

TEST_F(HostilePeerTest, WrongJobProtocolLengthAndChecksumAreCountedAndDropped) {
  Intruder intruder(address_, IdOf("worker/odd/1"));
  wire::Header good;
  good.set_type(wire::PUSH);
  good.set_protocol(kProtocolVersion);
  good.set_job(kTestJob);
  good.set_payload_bytes(3);
  good.set_payload_crc32c(PayloadChecksum(MakePayload("abc").bytes));
  wire::Header job = good;
  job.set_job(kTestJob + 1);
  wire::Header protocol = good;
  protocol.set_protocol(kProtocolVersion + 1);
  wire::Header length = good;
  length.set_payload_bytes(4);
  wire::Header huge = good;
  huge.set_payload_bytes(uint64_t{1} << 60);
  wire::Header checksum = good;
  checksum.set_payload_crc32c(1);
  uint64_t sent = 0;
  for (const wire::Header& header : {job, protocol, length, huge, checksum}) {
    intruder.Send({header.SerializeAsString(), "abc"});
    ++sent;
  }
  ASSERT_TRUE(
      RunUntil({&server_}, [&] { return server_.transport->counters().messages_refused == sent; }));
  ExpectService();
  server_.received.clear();
  intruder.Send({good.SerializeAsString(), "abc"});
  EXPECT_TRUE(RunUntil({&server_}, [&] { return !server_.received.empty(); }));
}

TEST_F(HostilePeerTest, NamelessAndBorrowedNamesAreRefused) {
  // server_ is itself connected to a server/1, whose name a stranger uses.
  ASSERT_TRUE(server_.transport->Connect("server/1", "tcp://127.0.0.1:1").ok());
  wire::Header good;
  good.set_type(wire::PULL);
  good.set_protocol(kProtocolVersion);
  good.set_job(kTestJob);
  uint64_t sent = 0;
  for (const std::string& name :
       {std::string(), std::string("server/1"), std::string("server/0"), std::string("a\nb")}) {
    Intruder intruder(address_, IdOf(name));
    intruder.Send({good.SerializeAsString()});
    ++sent;
    EXPECT_TRUE(RunUntil({&server_}, [&] {
      return server_.transport->counters().messages_refused == sent;
    })) << name;
  }
  ExpectService();
}

TEST_F(HostilePeerTest, NamesWithoutATokenAreRefused) {
  wire::Header status;
  status.set_type(wire::STATUS);
  uint64_t sent = 0;
  for (const std::string& id : {std::string("client/x"), std::string("client/x#12"),
                                std::string("worker/honest/1#000000000000000g")}) {
    Intruder intruder(address_, id);
    intruder.Send({status.SerializeAsString()});
    ++sent;
    EXPECT_TRUE(RunUntil({&server_}, [&] {
      return server_.transport->counters().messages_refused == sent;
    })) << id;
  }
  ExpectService();
}

// A connection may be lost for one end long before the other end knows.
TEST_F(HostilePeerTest, AProcessThatComesBackOnAnotherConnectionIsHeardAtOnce) {
  wire::Header header;
  header.set_type(wire::STATUS);
  const std::string frame = header.SerializeAsString();
  const std::string bytes = std::string(1, '\0') + static_cast<char>(frame.size()) + frame;
  std::vector<int> open;
  for (size_t i = 1; i <= 3; ++i) {
    open.push_back(ConnectZmtp("server/1"));
    SendRaw(open.back(), bytes);
    if (i == 1) server_.received.clear();
    ASSERT_TRUE(RunUntil({&server_}, [&] { return server_.received.size() == i; })) << i;
  }
  for (const int fd : open) close(fd);
  ExpectService();
}

// Two sockets that take one routing id away from each other, as fast as ZeroMQ can.
TEST_F(HostilePeerTest, TwoConnectionsThatFightOverOneRoutingIdEndNobody) {
  wire::Header header;
  header.set_type(wire::STATUS);
  const std::string frame = header.SerializeAsString();
  for (const std::string& id : {std::string("client/x"), RoutingId("client/x", 1)}) {
    for (int turn = 0; turn < 5; ++turn) {
      Intruder one(address_, id, 1), other(address_, id, 1);
      for (int i = 0; i < 60; ++i) {
        one.Try(frame);
        other.Try(frame);
        server_.Poll(kMillisecond);
      }
    }
  }
  ExpectService("client/x");  // whose last questions may still be on their way
}

TEST_F(HostilePeerTest, AFloodOfRefusedMessagesDoesNotHoldUpOthers) {
  Intruder intruder(address_, IdOf("worker/odd/1"));
  for (int i = 0; i < 900; ++i) intruder.Send({"noise"});
  ExpectService();
}

TEST_F(HostilePeerTest, AMessageWithoutEndIsCutOff) {
  const int fd = ConnectZmtp("worker/endless/1");
  // Frames of 1 MiB, each promising another.
  std::string frame("\x03\0\0\0\0\0\x10\0\0", 9);
  frame += std::string(1 << 20, 'x');
  constexpr int kMostMebibytes = 2048;  // the guard looks every 100 ms
  int sent = 0;
  for (; sent < kMostMebibytes; ++sent) {
    if (send(fd, frame.data(), frame.size(), MSG_NOSIGNAL) < 0) break;
    server_.Poll(0);
  }
  EXPECT_LT(sent, kMostMebibytes) << "MiB were taken";
  close(fd);
  ExpectService();
}

// Each frame is 2 bytes here and 64 in ZeroMQ: the limit is that of one message.
TEST_F(HostilePeerTest, AMessageOfEmptyFramesWithoutEndIsCutOffWhenItIsLongerThanAMessage) {
  const int fd = ConnectZmtp("worker/empty/1");
  std::string frames;
  for (int i = 0; i < 1 << 19; ++i) frames += std::string("\x01\0", 2);
  constexpr int kMostMebibytes = 16;
  int sent = 0;
  for (; sent < kMostMebibytes; ++sent) {
    if (send(fd, frames.data(), frames.size(), MSG_NOSIGNAL) < 0) break;
    for (int i = 0; i < 10; ++i) server_.Poll(20 * kMillisecond);
  }
  EXPECT_LT(sent, kMostMebibytes) << "MiB were taken";
  close(fd);
  ExpectService();
}

}  // namespace
}  // namespace kumo
