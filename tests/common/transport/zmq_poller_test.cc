#include "common/transport/zmq_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "common/transport/zmq_handles.h"

namespace kumo {
namespace {

std::unique_ptr<ZmqPoller> MakePoller() { return ZmqPoller::Make().value(); }

// A descriptor that is readable when it was written to.
struct Descriptor {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ~Descriptor() { close(fd); }
  void Write() const {
    const uint64_t one = 1;
    ASSERT_EQ(write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  void Read() const {
    uint64_t count = 0;
    ASSERT_EQ(read(fd, &count, sizeof count), static_cast<ssize_t>(sizeof count));
  }
};

TEST(ZmqPollerTest, AWakeEndsOneWaitBeforeOrDuringIt) {
  const auto poller = MakePoller();
  EXPECT_EQ(poller->Wait(0), 0);
  poller->Wake();
  poller->Wake();
  EXPECT_EQ(poller->Wait(-1), 1);
  poller->ServeDescriptors();
  EXPECT_EQ(poller->Wait(0), 0);
  std::thread other([&] { poller->Wake(); });
  EXPECT_EQ(poller->Wait(-1), 1);
  other.join();
}

TEST(ZmqPollerTest, NoWakeFromAnotherThreadIsLost) {
  const auto poller = MakePoller();
  std::atomic<int> asked{0}, seen{0};
  std::thread other([&] {
    for (int i = 1; i <= 1000; ++i) {
      asked = i;
      poller->Wake();
      while (seen < i) std::this_thread::yield();
    }
  });
  while (seen < 1000) {
    poller->Wait(-1);
    poller->ServeDescriptors();
    seen = asked.load();
  }
  other.join();
}

TEST(ZmqPollerTest, ReadableDescriptorsAreServedAndNoOthers) {
  const auto poller = MakePoller();
  const Descriptor a, b, late;
  std::string served;
  poller->AddFd(a.fd, [&] {
    a.Read();
    served += 'a';
  });
  poller->AddFd(b.fd, [&, before = std::string("b")] {
    b.Read();
    poller->AddFd(late.fd, [&] {
      late.Read();
      served += 'l';
    });
    served += before;  // what is called stays where it is
  });
  a.Write();
  EXPECT_EQ(poller->Wait(-1), 1);
  poller->ServeDescriptors();
  EXPECT_EQ(served, "a");
  a.Write();
  b.Write();
  late.Write();
  EXPECT_EQ(poller->Wait(-1), 2);
  poller->ServeDescriptors();
  EXPECT_EQ(served, "aab");
  EXPECT_EQ(poller->Wait(-1), 1);
  poller->ServeDescriptors();
  EXPECT_EQ(served, "aabl");
}

TEST(ZmqPollerTest, SocketsWithMessagesAreSeen) {
  const ZmqContext context(zmq_ctx_new());
  const ZmqSocket one(zmq_socket(context.get(), ZMQ_PAIR));
  const ZmqSocket other(zmq_socket(context.get(), ZMQ_PAIR));
  ASSERT_EQ(zmq_bind(one.get(), "inproc://pair"), 0);
  ASSERT_EQ(zmq_connect(other.get(), "inproc://pair"), 0);
  const auto poller = MakePoller();
  poller->AddSocket(one.get());
  poller->AddSocket(other.get());
  EXPECT_EQ(poller->Wait(0), 0);
  ASSERT_EQ(zmq_send(one.get(), "x", 1, 0), 1);
  EXPECT_EQ(poller->Wait(-1), 1);
}

}  // namespace
}  // namespace kumo
