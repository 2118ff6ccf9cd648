// A server's name is looked up again at each attempt to connect: a pod that comes back has another
// address. This program answers ZeroMQ's lookups itself.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/common/transport/loop.h"

namespace {
std::atomic<uint32_t> moving_host{0x7f000001};  // 127.0.0.1
std::atomic<int> lookups{0};
}  // namespace

// Takes the C library's place in this program. One block holds the result and its address.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo*,
                           addrinfo** result) {
  struct Answer {
    addrinfo info;
    sockaddr_in address;
  };
  auto* answer = static_cast<Answer*>(std::calloc(1, sizeof(Answer)));
  const bool moving = std::strcmp(node, "moving-host") == 0;
  if (moving) ++lookups;
  answer->address.sin_family = AF_INET;
  answer->address.sin_port =
      htons(static_cast<uint16_t>(service == nullptr ? 0 : std::atoi(service)));
  answer->address.sin_addr.s_addr = moving ? htonl(moving_host) : inet_addr(node);
  answer->info.ai_family = AF_INET;
  answer->info.ai_socktype = SOCK_STREAM;
  answer->info.ai_addr = reinterpret_cast<sockaddr*>(&answer->address);
  answer->info.ai_addrlen = sizeof answer->address;
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

}  // namespace
}  // namespace kumo
