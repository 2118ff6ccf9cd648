#include "server/service/trace_relay.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kumo {
namespace {

const PeerName kClient = "client/1", kOther = "client/2", kWorker = "worker/a/1";

class TraceRelayTest : public testing::Test {
 protected:
  bool Arrives(const PeerName& from, wire::Type type, TimeUs now, uint32_t trace = 1) {
    Message message;
    message.header.set_type(type);
    if (type == wire::TRACE_REPORT) message.header.mutable_trace_report()->set_trace(trace);
    return relay_.Takes(from, &message, now);
  }
  int Sent(const PeerName& to, wire::Type type) const {
    int count = 0;
    for (const auto& [peer, message] : sent_)
      count += peer == to && message.header.type() == type ? 1 : 0;
    return count;
  }

  SteadyClock clock_;
  Tracer tracer_{&clock_};
  std::vector<std::pair<PeerName, Message>> sent_;
  TraceRelay relay_{&tracer_, [this](const PeerName& to, Message message) {
                      sent_.emplace_back(to, std::move(message));
                      return OkStatus();
                    }};
};

TEST_F(TraceRelayTest, HeartbeatsPassAndTellWhoIsThere) {
  EXPECT_FALSE(Arrives(kWorker, wire::HEARTBEAT, 0));
  EXPECT_EQ(Sent(kWorker, wire::TRACE), 0);
  EXPECT_TRUE(Arrives(kClient, wire::TRACE, 1));
  EXPECT_FALSE(Arrives(kWorker, wire::HEARTBEAT, 2));
  EXPECT_FALSE(Arrives(kWorker, wire::HEARTBEAT, 3));
  EXPECT_EQ(Sent(kWorker, wire::TRACE), 1);
  relay_.Tick(relay_.NextDeadline());
  EXPECT_EQ(Sent(kWorker, wire::TRACE), 2);
  EXPECT_TRUE(tracer_.on());
}

TEST_F(TraceRelayTest, ReportsOfWhoWasToldGoToTheClientWithTheirName) {
  Arrives(kClient, wire::TRACE, 0);
  Arrives(kWorker, wire::HEARTBEAT, 0);
  EXPECT_TRUE(Arrives(kWorker, wire::TRACE_REPORT, 7));
  ASSERT_EQ(Sent(kClient, wire::TRACE_REPORT), 1);
  EXPECT_EQ(sent_.back().second.header.trace_report().peer(), kWorker);
  EXPECT_EQ(sent_.back().second.header.trace_report().received_us(), 7);
  // A stranger's, and one of another trace.
  EXPECT_TRUE(Arrives("worker/x/2", wire::TRACE_REPORT, 8));
  EXPECT_TRUE(Arrives(kWorker, wire::TRACE_REPORT, 8, 2));
  EXPECT_EQ(Sent(kClient, wire::TRACE_REPORT), 1);
}

TEST_F(TraceRelayTest, OneClientAtATimeUntilItIsSilent) {
  Arrives(kClient, wire::TRACE, 0);
  Arrives(kOther, wire::TRACE, 1);
  EXPECT_EQ(Sent(kOther, wire::REFUSED), 1);
  Arrives(kWorker, wire::TRACE, 1);  // no client
  EXPECT_EQ(Sent(kWorker, wire::REFUSED), 0);
  for (TimeUs now = 0; now < 60 * kSecond; now += 100 * kMillisecond) relay_.Tick(now);
  EXPECT_FALSE(tracer_.on());
  Arrives(kOther, wire::TRACE, 60 * kSecond);
  EXPECT_EQ(Sent(kOther, wire::REFUSED), 1);
  EXPECT_LE(relay_.NextDeadline(), 61 * kSecond);
}

TEST_F(TraceRelayTest, WhoSaysThatItIsDoneMakesRoomForTheNext) {
  const auto done = [&](const PeerName& from) {
    Message message;
    message.header.set_type(wire::TRACE);
    message.header.mutable_trace_order()->set_valid_us(0);
    relay_.Takes(from, &message, 2);
  };
  Arrives(kClient, wire::TRACE, 0);
  done(kOther);  // it is not its trace
  Arrives(kOther, wire::TRACE, 2);
  EXPECT_EQ(Sent(kOther, wire::REFUSED), 1);
  done(kClient);
  Arrives(kOther, wire::TRACE, 3);
  EXPECT_EQ(Sent(kOther, wire::REFUSED), 1);
  Arrives(kWorker, wire::HEARTBEAT, 3);
  EXPECT_TRUE(Arrives(kWorker, wire::TRACE_REPORT, 4, 2));
  EXPECT_EQ(Sent(kOther, wire::TRACE_REPORT), 1);
  EXPECT_EQ(Sent(kClient, wire::TRACE_REPORT), 0);
}

TEST_F(TraceRelayTest, StrangersWhoSayThatTheyLiveAreNotFollowedWithoutEnd) {
  Arrives(kClient, wire::TRACE, 0);
  for (int i = 0; i < 20'000; ++i) Arrives("worker/x/" + std::to_string(i), wire::HEARTBEAT, 0);
  EXPECT_LE(sent_.size(), 10'000);
}

}  // namespace
}  // namespace kumo
