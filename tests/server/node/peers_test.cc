#include "server/node/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

wire::Hello WorkerNamed(const std::string& name) {
  wire::Hello hello;
  hello.set_incarnation(1);
  hello.set_role(wire::Hello::WORKER);
  hello.set_name(name);
  return hello;
}

wire::Hello ServerOf(int index) {
  wire::Hello hello;
  hello.set_role(wire::Hello::SERVER);
  hello.set_server_index(index);
  return hello;
}

TEST(Peers, AHelloCountsUnderTheSendersOwnNameAlone) {
  const Peers peers;
  EXPECT_TRUE(peers.Check("worker/a/1", WorkerNamed("a")).ok());
  EXPECT_TRUE(peers.Check(ServerPeer(2), ServerOf(2)).ok());
  for (const PeerName& name : {ServerPeer(0), ServerPeer(1), WorkerPeer("b", 1), WorkerPeer("a", 2),
                               PeerName("client/a"), PeerName()}) {
    EXPECT_EQ(peers.Check(name, WorkerNamed("a")).code(), StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(peers.Check(name, ServerOf(2)).code(), StatusCode::kFailedPrecondition) << name;
  }
  EXPECT_FALSE(peers.Check(ServerPeer(0), ServerOf(0)).ok()) << "server 0 says no hello";
}

TEST(Peers, WhoIsNotKnownAnyMoreIsRemovedAndNamed) {
  Peers peers;
  peers.Saw("worker/a/1", 10);
  peers.Saw("worker/b/1", 20);
  peers.Saw("worker/a/1", 30);  // heard again
  const auto since = [](TimeUs limit) {
    return [limit](const PeerName&, TimeUs seen) { return seen >= limit; };
  };
  EXPECT_THAT(peers.RemoveUnless(since(20)), IsEmpty());
  EXPECT_THAT(peers.RemoveUnless(since(25)), ElementsAre("worker/b/1"));
  EXPECT_TRUE(peers.Has("worker/a/1"));
  EXPECT_FALSE(peers.Has("worker/b/1"));
}

TEST(Peers, WhoWaitsIsAMemberWhenItIsTakenAndOutlivesAGeneration) {
  Peers peers;
  peers.LetWait("worker/a/1", true);
  peers.LetWait(ServerPeer(1), false);
  EXPECT_FALSE(peers.Has("worker/a/1"));
  peers.Clear();
  EXPECT_THAT(peers.TakeWaiting(/*workers=*/false, 5), ElementsAre(ServerPeer(1)));
  EXPECT_TRUE(peers.Has(ServerPeer(1)));
  EXPECT_FALSE(peers.Has("worker/a/1"));
  EXPECT_THAT(peers.TakeWaiting(/*workers=*/true, 6), ElementsAre("worker/a/1"));
  EXPECT_THAT(peers.TakeWaiting(/*workers=*/true, 7), IsEmpty());
  peers.Clear();
  EXPECT_FALSE(peers.Has("worker/a/1"));
}

TEST(Peers, IsBounded) {
  Peers peers;
  for (int i = 0; i < 5000; ++i) peers.LetWait("worker/w" + std::to_string(i) + "/1", true);
  EXPECT_EQ(peers.TakeWaiting(true, 1).size(), 4096u);
  EXPECT_EQ(peers.Check("worker/new/1", WorkerNamed("new")).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(peers.Check("worker/w7/1", WorkerNamed("w7")).ok()) << "it is known already";
}

}  // namespace
}  // namespace kumo
