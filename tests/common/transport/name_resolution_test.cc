// A server's name is looked up again at each attempt to connect: a pod that comes back has another
// address. This program answers ZeroMQ's lookups itself.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/common/transport/loop.h"

namespace {
std::atomic<uint32_t> moving_host{0x7f000001};  // 127.0.0.1
std::atomic<int> lookups{0};
}  // namespace

// Takes the C library's place in this program. One block holds the result and its address.
// six-host has an IPv6 address only.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  struct Answer {
    addrinfo info;
    sockaddr_in6 address;
  };
  if (node != nullptr && std::strcmp(node, "later-host") == 0) return EAI_AGAIN;
  const bool moving = std::strcmp(node, "moving-host") == 0;
  const bool six = std::strcmp(node, "six-host") == 0;
  if (moving) ++lookups;
  const int family = hints == nullptr ? AF_UNSPEC : hints->ai_family;
  in_addr four{htonl(moving_host)};
  in6_addr address = in6addr_loopback;
  const bool is_six = six || inet_pton(AF_INET6, node, &address) == 1;
  if (is_six && family == AF_INET) return EAI_NONAME;
  if (!is_six && !moving && inet_pton(AF_INET, node, &four) != 1) return EAI_NONAME;
  auto* answer = static_cast<Answer*>(std::calloc(1, sizeof(Answer)));
  const in_port_t port = htons(static_cast<uint16_t>(service == nullptr ? 0 : std::atoi(service)));
  if (is_six || family == AF_INET6) {
    if (!is_six) {  // mapped
      address = {};
      address.s6_addr[10] = address.s6_addr[11] = 0xff;
      std::memcpy(&address.s6_addr[12], &four, sizeof four);
    }
    answer->address.sin6_family = AF_INET6;
    answer->address.sin6_port = port;
    answer->address.sin6_addr = address;
    answer->info.ai_addrlen = sizeof(sockaddr_in6);
  } else {
    auto* plain = reinterpret_cast<sockaddr_in*>(&answer->address);
    plain->sin_family = AF_INET;
    plain->sin_port = port;
    plain->sin_addr = four;
    answer->info.ai_addrlen = sizeof(sockaddr_in);
  }
  answer->info.ai_family = reinterpret_cast<sockaddr*>(&answer->address)->sa_family;
  answer->info.ai_socktype = SOCK_STREAM;
  answer->info.ai_addr = reinterpret_cast<sockaddr*>(&answer->address);
  *result = &answer->info;
  return 0;
}
extern "C" void freeaddrinfo(addrinfo* result) { std::free(result); }

namespace kumo {
namespace {

TEST(NameResolutionTest, AServerThatMovedToAnotherAddressIsFoundAgain) {
  auto first = std::make_unique<Node>("server/0");
  ASSERT_TRUE(first->transport->Bind("tcp://127.0.0.1:0").ok());
  const int port = ParseAddress(first->transport->bound_address())->port;
  Node worker("worker/a/1");
  ASSERT_TRUE(
      worker.transport->Connect("server/0", "tcp://moving-host:" + std::to_string(port)).ok());
  ASSERT_TRUE(RunUntil({&worker, first.get()}, [&] { return worker.connected.size() == 1; }));

  first.reset();
  moving_host = 0x7f000002;
  Node second("server/0");
  const std::string address = "tcp://127.0.0.2:" + std::to_string(port);
  const Status bound = second.transport->Bind(address);
  ASSERT_TRUE(bound.ok()) << bound.message();
  // What is sent into the old connection before its end is noticed is lost; so wait for the new
  // one.
  ASSERT_TRUE(RunUntil({&worker, &second}, [&] { return worker.connected.size() == 2; }));
  ASSERT_TRUE(SendSoon(worker, "server/0", MakeMessage(2), {&worker, &second}));
  ASSERT_TRUE(RunUntil({&worker, &second}, [&] { return !second.received.empty(); }));
  EXPECT_GE(lookups, 2);
}

// As while a machine starts: another attempt may succeed.
TEST(NameResolutionTest, ANameThatCannotBeLookedUpNowIsNoWrongName) {
  Node server("server/0");
  EXPECT_EQ(server.transport->Bind("tcp://later-host:0").code(), StatusCode::kUnavailable);
  EXPECT_EQ(server.transport->Bind("tcp://no-host:0").code(), StatusCode::kFailedPrecondition);
}

// As in a cluster of IPv6 alone: the name is what the server listens on and the worker connects to.
TEST(NameResolutionTest, ANameWithAnIpv6AddressAloneIsListenedOnAndFound) {
  for (const bool restarted : {false, true}) {
    auto server = std::make_unique<Node>("server/0");
    const Status bound = server->transport->Bind("tcp://six-host:0");
    if (bound.message().find("not an address of this machine") != std::string::npos) {
      GTEST_SKIP() << "this machine has no IPv6";
    }
    ASSERT_TRUE(bound.ok()) << bound.message();
    const Address address = ParseAddress(server->transport->bound_address()).value();
    EXPECT_EQ(address.host, "::1");
    const std::string name = "tcp://six-host:" + std::to_string(address.port);
    Node worker("worker/a/1");
    ASSERT_TRUE(worker.transport->Connect("server/0", name).ok());
    ASSERT_TRUE(RunUntil({&worker, server.get()}, [&] { return worker.connected.size() == 1; }));
    if (!restarted) continue;
    server.reset();
    server = std::make_unique<Node>("server/0");
    ASSERT_TRUE(server->transport->Bind(name).ok());
    ASSERT_TRUE(RunUntil({&worker, server.get()}, [&] { return worker.connected.size() == 2; }));
  }
}

}  // namespace
}  // namespace kumo
