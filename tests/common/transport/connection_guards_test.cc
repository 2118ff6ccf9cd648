
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "common/transport/connection_guards.h"

namespace kumo {

namespace {

constexpr int64_t kLimit = 10'000;
constexpr size_t kOverhead = 33;

// A connection that was accepted here, and its other end.
class BacklogGuardTest : public testing::Test {
 protected:
  BacklogGuardTest() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, raw, length), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, raw, &length), 0);
    port_ = ntohs(address.sin_port);
    peer_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(peer_, raw, length), 0);
    accepted_ = accept(listener_, nullptr, nullptr);
  }
  ~BacklogGuardTest() override {
    for (const int fd : {listener_, peer_, accepted_}) close(fd);
  }
  // So many bytes arrive, and are taken from the socket.
  void Arrive(size_t bytes) {
    std::string buffer(bytes, 'x');
    ASSERT_EQ(send(peer_, buffer.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    ASSERT_EQ(recv(accepted_, buffer.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
  }

  int listener_ = -1, peer_ = -1, accepted_ = -1, port_ = 0;
};

TEST_F(BacklogGuardTest, WhoSendsMoreThanWasDeliveredIsCutOff) {
  BacklogGuard guard(port_, {kLimit, kLimit}, 0);
  guard.Accepted(accepted_);
  Arrive(kLimit);
  EXPECT_EQ(guard.Check(1), 0);
  Arrive(1);
  EXPECT_EQ(guard.Check(2), 0) << "too early for another look";
  EXPECT_EQ(guard.Check(1 + BacklogGuard::kInterval), 1);
  char byte = 0;
  EXPECT_LE(recv(peer_, &byte, 1, 0), 0);
  EXPECT_TRUE(guard.idle());
}

// Only if the loop had taken all complete messages, and nothing was delivered since the last check.
TEST_F(BacklogGuardTest, AnIncompleteMessageHasALimitOfItsOwn) {
  constexpr int64_t kMessage = 500;
  TimeUs now = 1;
  const auto check = [&now](BacklogGuard* guard) {
    return guard->Check(now += BacklogGuard::kInterval);
  };
  BacklogGuard guard(port_, {kLimit, kMessage}, 0);
  guard.Accepted(accepted_);
  Arrive(kMessage);
  for (int i = 0; i < 3; ++i) {
    guard.Drained();
    EXPECT_EQ(check(&guard), 0) << "a message may be as long";
  }
  Arrive(1000);
  guard.Drained();
  EXPECT_EQ(check(&guard), 0) << "some may have come after the loop had looked";
  EXPECT_EQ(check(&guard), 0) << "the loop has not looked since";
  guard.Delivered(accepted_, 10);
  guard.Drained();
  EXPECT_EQ(check(&guard), 0) << "the messages are being taken";
  guard.Drained();
  EXPECT_EQ(check(&guard), 1);
}

// They may have been delivered before the connection was reported.
TEST_F(BacklogGuardTest, BytesBeforeTheFirstCheckAreNoMessage) {
  BacklogGuard guard(port_, {kLimit, 500}, 0);
  guard.Accepted(accepted_);
  Arrive(1000);
  for (int i = 1; i < 4; ++i) {
    guard.Drained();
    EXPECT_EQ(guard.Check(i * BacklogGuard::kInterval), 0);
  }
}

// They are the kernel's, whose buffers have a limit.
TEST_F(BacklogGuardTest, BytesThatZeroMqHasNotReadAreNoMessage) {
  BacklogGuard guard(port_, {kLimit, 500}, 0);
  guard.Accepted(accepted_);
  const std::string bytes(1000, 'x');
  ASSERT_EQ(send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t{1000});
  char first = 0;
  ASSERT_EQ(recv(accepted_, &first, 1, MSG_PEEK), 1);
  for (int i = 1; i < 4; ++i) {
    guard.Drained();
    EXPECT_EQ(guard.Check(i * BacklogGuard::kInterval), 0);
  }
}

// An honest peer's small messages, for as long as they come.
TEST_F(BacklogGuardTest, WhatEncryptionAddsIsNoBacklog) {
  for (const size_t overhead : {kOverhead, size_t{0}}) {
    BacklogGuard guard(port_, {kLimit, kLimit}, overhead);
    guard.Accepted(accepted_);
    int cut = 0;
    for (int i = 0; i < 1000; ++i) {
      Arrive(2 + 10 + kOverhead);
      guard.Delivered(accepted_, 10);
    }
    cut += guard.Check(1);
    EXPECT_EQ(cut, overhead == kOverhead ? 0 : 1);
  }
}

TEST_F(BacklogGuardTest, ADescriptorOfSomebodyElseIsLeftAlone) {
  const BacklogGuard guard(port_ == 1 ? 2 : 1, {kLimit, kLimit}, 0);
  guard.Cut(accepted_);
  Arrive(1);
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kMost = PendingConnections::kMost;

TEST(PendingConnectionsTest, OneTooManyEndsTheOneThatHasBeenSilentLongest) {
  std::vector<int> ended;
  PendingConnections pending([&](int fd) { ended.push_back(fd); });
  for (int fd = 0; fd < kMost; ++fd) pending.Accepted(fd);
  EXPECT_THAT(ended, IsEmpty());
  pending.Spoke(0);
  pending.Accepted(kMost);
  EXPECT_THAT(ended, IsEmpty());
  pending.Accepted(kMost + 1);
  pending.Accepted(kMost + 2);
  EXPECT_THAT(ended, ElementsAre(1, 2));
  EXPECT_EQ(pending.left(), 2u);
  // That they are closed is said later, and counts once.
  pending.Closed(1);
  EXPECT_EQ(pending.left(), 2u);
}

TEST(PendingConnectionsTest, WhoHasSpokenIsNoneAnyMore) {
  std::vector<int> ended;
  PendingConnections pending([&](int fd) { ended.push_back(fd); });
  for (int round = 0; round < 5 * kMost; ++round) {
    pending.Accepted(round);
    pending.Spoke(round);
    pending.Spoke(round);
  }
  for (int fd = 0; fd < 5 * kMost; ++fd) pending.Closed(fd);
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_EQ(pending.left(), 0u);
}

TEST(PendingConnectionsTest, ADescriptorThatIsUsedAgainIsAnotherConnection) {
  PendingConnections pending([](int) {});
  pending.Accepted(7);
  pending.Accepted(7);
  EXPECT_EQ(pending.left(), 1u);
  pending.Spoke(7);
  pending.Closed(7);
  EXPECT_EQ(pending.left(), 1u);
}

}  // namespace

}  // namespace kumo
