
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/launch/hosts.h"
#include "tests/scratch_directory.h"

namespace kumo {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostList, NamesUsersAndSlots) {
  const auto hosts = ParseHosts("alpha, me@beta:2,10.0.0.3");
  ASSERT_TRUE(hosts.ok());
  EXPECT_THAT(*hosts, ElementsAre(Host{"alpha", 1}, Host{"me@beta", 2}, Host{"10.0.0.3", 1}));
  EXPECT_EQ(AddressOf((*hosts)[1]), "beta");
}

TEST(HostList, RangesAsSlurmWritesThem) {
  const auto hosts = ParseHosts("node[01-03,07]:4,rack[9-10]-a,gpu3");
  ASSERT_TRUE(hosts.ok());
  EXPECT_THAT(*hosts, ElementsAre(Host{"node01", 4}, Host{"node02", 4}, Host{"node03", 4},
                                  Host{"node07", 4}, Host{"rack9-a", 1}, Host{"rack10-a", 1},
                                  Host{"gpu3", 1}));
}

TEST(HostList, NonsenseIsNamed) {
  const auto refusal = [](const std::string& text) { return ParseHosts(text).status().message(); };
  EXPECT_THAT(refusal(""), HasSubstr("a host is NAME or USER@NAME"));
  EXPECT_THAT(refusal("a,,b"), HasSubstr("a host is NAME or USER@NAME"));
  EXPECT_THAT(refusal("-oProxyCommand=x"), HasSubstr("a host is NAME"));
  EXPECT_THAT(refusal("me@-x"), HasSubstr("a host is NAME"));
  EXPECT_THAT(refusal("a;reboot"), HasSubstr("a host is NAME"));
  EXPECT_THAT(refusal("a:0"), HasSubstr("number of workers, 1 .. 1024"));
  EXPECT_THAT(refusal("a:x"), HasSubstr("number of workers"));
  EXPECT_THAT(refusal("a,me@a"), HasSubstr("occurs twice"));
  EXPECT_THAT(refusal("n[1-"), HasSubstr("']' is missing"));
  EXPECT_THAT(refusal("n[4-1]"), HasSubstr("two ascending numbers"));
  EXPECT_THAT(refusal("n[1-99999999]"), HasSubstr("more than 4096 hosts"));
  EXPECT_THAT(refusal(std::string(300, 'a')), HasSubstr("a host is NAME"));
}

TEST(HostList, MpirunsFile) {
  const test::ScratchDirectory folder;
  const std::string path = folder / "hosts";
  std::ofstream(path) << "# ours\nalpha slots=2\n\n  beta   # slow\nme@gamma slots=1\r\n";
  const auto hosts = ReadHostFile(path);
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(Host{"alpha", 2}, Host{"beta", 1}, Host{"me@gamma", 1}));

  std::ofstream(path) << "alpha\nbeta max-slots=2\n";
  EXPECT_THAT(ReadHostFile(path).status().message(),
              HasSubstr("hosts:2: \"max-slots=2\": only slots=N"));
  std::ofstream(path) << "# nobody\n";
  EXPECT_THAT(ReadHostFile(path).status().message(), HasSubstr("the list has no host"));
  EXPECT_THAT(ReadHostFile(folder / "none").status().message(), HasSubstr("none"));
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Host> kHosts = {{"a", 1}, {"me@b", 2}};

TEST(Placement, ServersGoAroundWithPortsOfTheirOwn) {
  EXPECT_THAT(ServerAddresses(kHosts, 3, 7700),
              ElementsAre("tcp://a:7700", "tcp://b:7700", "tcp://a:7701"));
}

TEST(Placement, WorkersAreDealtOutByFreeSlots) {
  const auto placed = Place(kHosts, ServerAddresses(kHosts, 2, 7700), 5);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->servers, ElementsAre("a", "me@b"));
  EXPECT_THAT(placed->binds, ElementsAre("tcp://*:7700", "tcp://*:7700"));
  EXPECT_THAT(placed->workers, ElementsAre("a", "me@b", "me@b", "a", "me@b"));
}

// Without keys a server may not listen on other interfaces, and each 127.x.y.z has all ports.
TEST(Placement, ServersOnLoopbackListenThereOnly) {
  const std::vector<Host> hosts = ParseHosts("me@localhost,127.0.0.2").value();
  const auto placed = Place(hosts, ServerAddresses(hosts, 2, 7700), 2);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_THAT(placed->binds, ElementsAre("tcp://localhost:7700", "tcp://127.0.0.2:7700"));
  EXPECT_THAT(placed->workers, ElementsAre("me@localhost", "127.0.0.2"));
}

TEST(Placement, OtherHostsCannotReachAServerOnLoopback) {
  const std::vector<Host> hosts = ParseHosts("localhost,b").value();
  EXPECT_THAT(Place(hosts, ServerAddresses(hosts, 1, 7700), 2).status().message(),
              HasSubstr("tcp://localhost:7700 cannot be reached from b: localhost is each host's "
                        "own address"));
  EXPECT_TRUE(Place(hosts, {"tcp://b:7700"}, 2).ok());
}

TEST(Placement, ServersThatTheExperimentNamesMustBeOnTheseHosts) {
  const auto placed = Place(kHosts, {"tcp://b:9000"}, 1);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(placed->servers, ElementsAre("me@b"));
  EXPECT_THAT(placed->binds, ElementsAre("tcp://*:9000"));
  EXPECT_THAT(Place(kHosts, {"tcp://c:9000"}, 1).status().message(),
              HasSubstr("tcp://c:9000, which is not among the hosts"));
  EXPECT_FALSE(Place(kHosts, {"ipc:///tmp/x"}, 1).ok());
}

}  // namespace

}  // namespace kumo
