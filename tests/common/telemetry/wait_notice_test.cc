#include "common/telemetry/wait_notice.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

constexpr TimeUs kStart = 1'750'638 * kSecond;  // a machine's uptime

TEST(WaitNotice, IsSaidWithinTheFirstSecondAndNotForAMoment) {
  WaitNotice notice;
  EXPECT_FALSE(notice.Update("server 1", kStart));
  EXPECT_FALSE(notice.Update("server 1", kStart + 400 * kMillisecond));
  EXPECT_EQ(notice.Update("server 1", kStart + 500 * kMillisecond), "waits for server 1");
  EXPECT_FALSE(notice.Update("server 1", kStart + 600 * kMillisecond));
}

TEST(WaitNotice, WhatIsOverIsForgotten) {
  WaitNotice notice;
  EXPECT_FALSE(notice.Update("server 1", kStart));
  EXPECT_FALSE(notice.Update("", kStart + kSecond));
  EXPECT_FALSE(notice.Update("server 1", kStart + 2 * kSecond));
  EXPECT_TRUE(notice.Update("server 1", kStart + 3 * kSecond));
}

TEST(WaitNotice, WhatChangesIsSaidSoonAndWhatLastsEverMoreRarely) {
  WaitNotice notice;
  std::vector<std::string> said;
  for (int second = 0; second <= 100; ++second) {
    const std::string who = second < 3 ? "2 of 2 workers" : "1 of 2 workers";
    if (const auto line = notice.Update(who, kStart + second * kSecond)) said.push_back(*line);
  }
  EXPECT_EQ(said, (std::vector<std::string>{"waits for 2 of 2 workers (1 s already)",
                                            "waits for 1 of 2 workers (3 s already)",
                                            "waits for 1 of 2 workers (13 s already)",
                                            "waits for 1 of 2 workers (33 s already)",
                                            "waits for 1 of 2 workers (73 s already)"}));
}

}  // namespace
}  // namespace kumo
