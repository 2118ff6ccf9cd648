#include "server/node/server_node.h"

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
  const Peers roster;
  EXPECT_TRUE(roster.Check("worker/a/1", WorkerNamed("a")).ok());
  EXPECT_TRUE(roster.Check(ServerPeer(2), ServerOf(2)).ok());
  for (const PeerName& name : {ServerPeer(0), ServerPeer(1), WorkerPeer("b", 1), WorkerPeer("a", 2),
                               PeerName("client/a"), PeerName()}) {
    EXPECT_EQ(roster.Check(name, WorkerNamed("a")).code(), StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(roster.Check(name, ServerOf(2)).code(), StatusCode::kFailedPrecondition) << name;
  }
  EXPECT_FALSE(roster.Check(ServerPeer(0), ServerOf(0)).ok()) << "server 0 says no hello";
}

TEST(Peers, WhoIsNotKnownAnyMoreIsRemovedAndNamed) {
  Peers roster;
  roster.Saw("worker/a/1", 10);
  roster.Saw("worker/b/1", 20);
  roster.Saw("worker/a/1", 30);  // heard again
  const auto since = [](TimeUs limit) {
    return [limit](const PeerName&, TimeUs seen) { return seen >= limit; };
  };
  EXPECT_THAT(roster.RemoveUnless(since(20)), IsEmpty());
  EXPECT_THAT(roster.RemoveUnless(since(25)), ElementsAre("worker/b/1"));
  EXPECT_TRUE(roster.Has("worker/a/1"));
  EXPECT_FALSE(roster.Has("worker/b/1"));
}

TEST(Peers, WhoWaitsIsAMemberWhenItIsTakenAndOutlivesAGeneration) {
  Peers roster;
  roster.LetWait("worker/a/1", true);
  roster.LetWait(ServerPeer(1), false);
  EXPECT_FALSE(roster.Has("worker/a/1"));
  roster.Clear();
  EXPECT_THAT(roster.TakeWaiting(/*workers=*/false, 5), ElementsAre(ServerPeer(1)));
  EXPECT_TRUE(roster.Has(ServerPeer(1)));
  EXPECT_FALSE(roster.Has("worker/a/1"));
  EXPECT_THAT(roster.TakeWaiting(/*workers=*/true, 6), ElementsAre("worker/a/1"));
  EXPECT_THAT(roster.TakeWaiting(/*workers=*/true, 7), IsEmpty());
  roster.Clear();
  EXPECT_FALSE(roster.Has("worker/a/1"));
}

TEST(Peers, IsBounded) {
  Peers roster;
  for (int i = 0; i < 5000; ++i) roster.LetWait("worker/w" + std::to_string(i) + "/1", true);
  EXPECT_EQ(roster.TakeWaiting(true, 1).size(), 4096u);
  EXPECT_EQ(roster.Check("worker/new/1", WorkerNamed("new")).code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(roster.Check("worker/w7/1", WorkerNamed("w7")).ok()) << "it is known already";
}

}  // namespace
}  // namespace kumo
