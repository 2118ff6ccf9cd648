#include "cli/launch/server_addresses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/address.h"

namespace kumo {
namespace {

Address AddressOf(const ReservedPort& port) {
  return ParseAddress("tcp://" + port.host_and_port()).value();
}

// Whether somebody who does not know of the reservation is kept off.
bool IsTakenForOthers(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool taken = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0;
  close(fd);
  return taken;
}

TEST(ReservedPortTest, AProcessThatKnowsItListensThereAndItsSuccessorToo) {
  const ReservedPort port = ReservedPort::Take().value();
  for (int life = 0; life < 3; ++life) {
    const Result<Listener> listener = ListenTcp(AddressOf(port), false);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    EXPECT_FALSE(ListenTcp(AddressOf(port), false).ok()) << "one at a time";
    close(listener->fd);
  }
}

TEST(ReservedPortTest, NobodyElseHasItUntilItIsGivenUp) {
  int number = 0;
  {
    ReservedPort port = ReservedPort::Take().value();
    number = AddressOf(port).port;
    EXPECT_TRUE(IsTakenForOthers(number));
    const ReservedPort moved = std::move(port);
    EXPECT_EQ(AddressOf(moved).port, number);
    EXPECT_TRUE(IsTakenForOthers(number));
  }
  EXPECT_FALSE(IsTakenForOthers(number));
}

TEST(ReservedPortTest, AllAreDifferent) {
  std::vector<ReservedPort> ports;
  std::set<std::string> names;
  for (int i = 0; i < 200; ++i) {
    ports.push_back(ReservedPort::Take().value());
    names.insert(ports.back().host_and_port());
  }
  EXPECT_EQ(names.size(), ports.size());
}

}  // namespace
}  // namespace kumo
