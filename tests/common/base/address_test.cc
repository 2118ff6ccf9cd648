#include "common/base/address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using ::testing::HasSubstr;

Address Tcp(const std::string& host, int port) { return {Address::Kind::kTcp, host, port, ""}; }

TEST(AddressTest, GoodAddressesAreReadAndWrittenBack) {
  for (const std::string text :
       {"tcp://127.0.0.1:7700", "tcp://server-0.kumo:1", "tcp://*:65535", "tcp://[::1]:7700",
        "tcp://localhost:0", "ipc:///run/kumo/a", "ipc://@kumo"}) {
    const Result<Address> address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(ParseAddress("tcp://localhost:*")->port, 0);
}

TEST(AddressTest, BadAddressesAreRefusedAndShownHowToBeWritten) {
  for (const std::string& text :
       {std::string(""), std::string("localhost:7700"), std::string("udp://a:1"),
        std::string("tcp://"), std::string("tcp://host"), std::string("tcp://:7700"),
        std::string("tcp://host:"), std::string("tcp://host:x"), std::string("tcp://host:65536"),
        std::string("tcp://host:-1"), std::string("tcp://host:7 "), std::string("tcp://::1:7700"),
        std::string("tcp://a/b:1"), std::string("tcp://eth0;host:1"), std::string("ipc://"),
        std::string("ipc://@"), "ipc:///" + std::string(200, 'x'),
        std::string("tcp://a\0b:1", 11)}) {
    const Result<Address> address = ParseAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(address.status().message(), HasSubstr("tcp://HOST:PORT"));
  }
}

TEST(AddressTest, LoopbackHostsAreKnown) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"128.0.0.1", "0.0.0.0", "*", "::", "example.org", "localhost.org"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(AddressTest, AnyFreePortIsReported) {
  const Result<Listener> listener = ListenTcp(Tcp("localhost", 0), false);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_TRUE(listener->local);
  EXPECT_EQ(listener->address.host, "127.0.0.1");
  EXPECT_GT(listener->address.port, 0);
  close(listener->fd);
}

TEST(AddressTest, ABusyPortIsUnavailableAndNamed) {
  const Result<Listener> first = ListenTcp(Tcp("127.0.0.1", 0), false);
  ASSERT_TRUE(first.ok());
  const Result<Listener> second = ListenTcp(first->address, false);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(first->address.ToString() + " is in use"));
  EXPECT_THAT(second.status().message(), HasSubstr("choose another port"));
  close(first->fd);
  const Result<Listener> third = ListenTcp(first->address, false);
  ASSERT_TRUE(third.ok()) << "a port is free once nobody listens: " << third.status().message();
  close(third->fd);
}

TEST(AddressTest, OpenAddressesNeedTheExperimentsWord) {
  const Result<Listener> refused = ListenTcp(Tcp("*", 0), false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("insecure=true"));
  const Result<Listener> open = ListenTcp(Tcp("*", 0), true);
  ASSERT_TRUE(open.ok()) << open.status().message();
  EXPECT_FALSE(open->local);
  close(open->fd);
}

TEST(AddressTest, ForeignAndUnknownHostsAreNamed) {
  EXPECT_THAT(ListenTcp(Tcp("192.0.2.1", 0), true).status().message(),
              HasSubstr("'192.0.2.1' is not an address of this machine"));
  EXPECT_THAT(ListenTcp(Tcp("no-such-host.invalid", 0), true).status().message(),
              HasSubstr("'no-such-host.invalid' is unknown on this machine"));
}

TEST(AddressTest, IpcPathsAreFreeBusyOrNotSockets) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("kumo_address_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const Address address{Address::Kind::kIpc, "", 0, folder / "socket"};
  EXPECT_TRUE(CheckIpcFree(address).ok());

  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  address.path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  const Status busy = CheckIpcFree(address);
  EXPECT_EQ(busy.code(), StatusCode::kUnavailable);
  EXPECT_THAT(busy.message(), HasSubstr("is in use"));

  close(fd);
  EXPECT_TRUE(CheckIpcFree(address).ok()) << "a dead process's socket is no obstacle";

  const Address file{Address::Kind::kIpc, "", 0, folder / "notes.txt"};
  std::ofstream(file.path) << "keep me";
  EXPECT_THAT(CheckIpcFree(file).message(), HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::exists(file.path));
  std::filesystem::remove_all(folder);
}

// Whether a client of the family reaches the port on the loopback interface.
bool Reaches(int family, int port) {
  const int fd = socket(family, SOCK_STREAM, 0);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  six.sin6_addr = in6addr_loopback;
  const int rc = family == AF_INET
                     ? connect(fd, reinterpret_cast<const sockaddr*>(&four), sizeof four)
                     : connect(fd, reinterpret_cast<const sockaddr*>(&six), sizeof six);
  close(fd);
  return rc == 0;
}

TEST(ListenTcpTest, AllInterfacesAreThoseOfBothFamilies) {
  const Result<Listener> listener = ListenTcp(Tcp("*", 0), true);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_FALSE(listener->local);
  EXPECT_TRUE(Reaches(AF_INET, listener->address.port));
  if (listener->address.host == "0.0.0.0") GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_TRUE(Reaches(AF_INET6, listener->address.port));
  EXPECT_EQ(ListenTcp(Tcp("*", listener->address.port), true).status().code(),
            StatusCode::kUnavailable);
  close(listener->fd);
}

}  // namespace
}  // namespace kumo
