#include "common/transport/zmq_link.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/transport/peer_names.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr TimeUs kLinkPatience = 20 * kSecond;

std::string TextOf(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes.data()), payload.bytes.size()};
}

void Fill(ZmqFrame* frame, const std::string& text) {
  zmq_msg_init_size(frame->get(), text.size());
  std::copy(text.begin(), text.end(), static_cast<char*>(zmq_msg_data(frame->get())));
}

class ZmqLinkTest : public testing::TestWithParam<const char*> {
 protected:
  ZmqLinkTest() { options_.linger_ms = 0; }

  Address AnyAddress() const {
    const std::string ipc = "ipc://@zmq_link_test-" + std::to_string(getpid());
    return ParseAddress(GetParam() == std::string("tcp") ? "tcp://127.0.0.1:0" : ipc).value();
  }
  std::unique_ptr<ZmqLink> Listen(const Address& address) {
    return ZmqLink::Listen(context_.get(), options_, address).value();
  }
  std::unique_ptr<ZmqLink> Connect(const ZmqLink& server, const std::string& routing_id) {
    return ZmqLink::Connect(context_.get(), options_, routing_id, "server/0", server.address())
        .value();
  }
  // Both sides' events, until something holds.
  bool RunUntil(ZmqLink* server, ZmqLink* client, const std::function<bool()>& done) {
    const SteadyClock clock;
    for (const TimeUs limit = clock.NowUs() + kLinkPatience; clock.NowUs() < limit; usleep(100)) {
      server->HandleEvents(nullptr);
      client->HandleEvents([&](const PeerName& peer) { connected_.push_back(peer); });
      if (done()) return true;
    }
    return false;
  }
  static int Send(ZmqLink* from, const std::string* to, const std::string& header,
                  const std::string& payload = "") {
    ZmqFrame first, second;
    Fill(&first, header);
    Fill(&second, payload);
    return from->Send(to, &first, payload.empty() ? nullptr : &second);
  }

  ZmqContext context_{zmq_ctx_new()};
  ZmqTransportOptions options_;
  std::vector<PeerName> connected_;
};

INSTANTIATE_TEST_SUITE_P(Addresses, ZmqLinkTest, testing::Values("tcp", "ipc"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(ZmqLinkTest, FramesGoBothWaysWithTheRoutingIdOfWhoConnected) {
  const auto server = Listen(AnyAddress());
  EXPECT_TRUE(server->listens());
  EXPECT_EQ(server->guard() != nullptr, server->address().kind == Address::Kind::kTcp);
  const std::string id = RoutingId("worker/a/1", 7);
  const auto client = Connect(*server, id);
  EXPECT_FALSE(client->listens());
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return !connected_.empty(); }));
  EXPECT_EQ(connected_, std::vector<PeerName>{"server/0"});

  ASSERT_EQ(Send(client.get(), nullptr, "header", "payload"), 0);
  ZmqLink::Arrived there;
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return server->Receive(&there); }));
  EXPECT_EQ(there.routing_id, id);
  ASSERT_EQ(there.count, 2u);
  EXPECT_EQ(TextOf(there.frames[0]), "header");
  EXPECT_EQ(TextOf(there.frames[1]), "payload");
  EXPECT_EQ(there.bytes, 13u);

  const std::string other = RoutingId("worker/b/1", 7);
  EXPECT_EQ(Send(server.get(), &other, "nobody's"), EHOSTUNREACH);
  ASSERT_EQ(Send(server.get(), &id, "answer"), 0);
  ZmqLink::Arrived back;
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return client->Receive(&back); }));
  EXPECT_EQ(back.routing_id, "");
  ASSERT_EQ(back.count, 1u);
  EXPECT_EQ(TextOf(back.frames[0]), "answer");
}

TEST_P(ZmqLinkTest, NothingIsQueuedForWhoIsNotThere) {
  Address address;
  {
    const ZmqContext context(zmq_ctx_new());  // ends when its sockets are really closed
    const auto server = ZmqLink::Listen(context.get(), options_, AnyAddress());
    ASSERT_TRUE(server.ok());
    address = (*server)->address();
  }
  const auto client =
      ZmqLink::Connect(context_.get(), options_, RoutingId("worker/a/1", 7), "server/0", address);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(Send(client->get(), nullptr, "too early", "payload"), EAGAIN);
  ZmqLink::Arrived nothing;
  EXPECT_FALSE((*client)->Receive(&nothing));
}

TEST_P(ZmqLinkTest, AMessageOfManyFramesIsTakenWholeAndKnownByItsCount) {
  const auto server = Listen(AnyAddress());
  const auto client = Connect(*server, RoutingId("worker/a/1", 7));
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return !connected_.empty(); }));
  for (int i = 0; i < 9; ++i) {
    ASSERT_EQ(zmq_send(client->socket(), "xx", 2, i < 8 ? ZMQ_SNDMORE : 0), 2);
  }
  ASSERT_EQ(Send(client.get(), nullptr, "the next"), 0);
  ZmqLink::Arrived many, next;
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return server->Receive(&many); }));
  EXPECT_EQ(many.count, ZmqLink::Arrived::kFrames + 1);
  EXPECT_EQ(many.bytes, 18u);
  ASSERT_TRUE(RunUntil(server.get(), client.get(), [&] { return server->Receive(&next); }));
  ASSERT_EQ(next.count, 1u);
  EXPECT_EQ(TextOf(next.frames[0]), "the next");
}

TEST_P(ZmqLinkTest, ABusyAddressIsRefusedByName) {
  const auto server = Listen(AnyAddress());
  const auto second = ZmqLink::Listen(context_.get(), options_, server->address());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  const Address& busy = server->address();
  EXPECT_THAT(second.status().message(),
              HasSubstr(busy.kind == Address::Kind::kTcp ? std::to_string(busy.port) : busy.path));
}

TEST_P(ZmqLinkTest, ChecksumsAreForWhatLeavesTheMachine) {
  for (const Checksums checksums : {Checksums::kNetwork, Checksums::kAlways, Checksums::kNever}) {
    context_.reset(zmq_ctx_new());
    options_.checksums = checksums;
    const auto server = Listen(AnyAddress());
    const bool always = checksums == Checksums::kAlways;
    EXPECT_EQ(server->checksum(), always);
    EXPECT_EQ(Connect(*server, RoutingId("worker/a/1", 7))->checksum(), always);
    const Address other = ParseAddress("tcp://192.0.2.1:7700").value();
    const auto far =
        ZmqLink::Connect(context_.get(), options_, RoutingId("worker/a/1", 8), "server/1", other);
    EXPECT_EQ(far.value()->checksum(), checksums != Checksums::kNever);
  }
}

}  // namespace
}  // namespace kumo
