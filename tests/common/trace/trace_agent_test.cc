#include "common/trace/trace_agent.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace kumo {
namespace {

class TraceAgentTest : public testing::Test {
 protected:
  void Order(uint32_t trace, TimeUs now) {
    wire::TraceOrder order;
    order.set_trace(trace);
    order.set_valid_us(kSecond);
    order.set_sent_us(5);
    agent_.OnOrder(order, now);
  }
  // Spans of all reports so far.
  int Spans() const {
    int spans = 0;
    for (const Message& report : sent_) {
      trace::Spans some;
      EXPECT_TRUE(some.ParseFromArray(report.payload.bytes.data(),
                                      static_cast<int>(report.payload.bytes.size())));
      spans += some.spans_size();
    }
    return spans;
  }

  SteadyClock clock_;
  Tracer tracer_{&clock_};
  std::vector<Message> sent_;
  Status fate_;
  TraceAgent agent_{&tracer_, [this](Message report) {
                      if (fate_.ok()) sent_.push_back(std::move(report));
                      return fate_;
                    }};
};

TEST_F(TraceAgentTest, AnswersEachOrderWithItsTimes) {
  Order(3, 1000);
  EXPECT_TRUE(tracer_.on());
  ASSERT_EQ(sent_.size(), 1);
  const wire::TraceReport& report = sent_[0].header.trace_report();
  EXPECT_EQ(sent_[0].header.type(), wire::TRACE_REPORT);
  EXPECT_EQ(report.trace(), 3);
  EXPECT_EQ(report.order_sent_us(), 5);
  EXPECT_EQ(report.answered_us(), 1000);
  Order(3, 2000);
  EXPECT_EQ(sent_.size(), 2);
}

TEST_F(TraceAgentTest, ReportsWhatWasDoneInPiecesThatAnyJobsFramesTake) {
  Order(1, 0);
  constexpr int kSpans = 1000;
  for (int i = 0; i < kSpans; ++i) tracer_.Add(trace::PUSH, i, i + 1, {i, 3, 4}, false);
  EXPECT_LE(agent_.NextDeadline(), kSecond);
  agent_.Tick(agent_.NextDeadline());
  EXPECT_GT(sent_.size(), 5);
  for (const Message& report : sent_) EXPECT_LE(report.payload.bytes.size(), 4096);
  EXPECT_EQ(Spans(), kSpans);
}

TEST_F(TraceAgentTest, WithoutAnotherOrderItSwitchesOff) {
  Order(1, 0);
  tracer_.Add(trace::WAIT, 0, 1, {});
  agent_.Tick(kSecond);
  EXPECT_FALSE(tracer_.on());
  EXPECT_EQ(Spans(), 1);
  EXPECT_EQ(agent_.NextDeadline(), std::numeric_limits<TimeUs>::max());
  Order(2, 2 * kSecond);
  EXPECT_TRUE(tracer_.on());
}

TEST_F(TraceAgentTest, WhatCannotBeSentIsCounted) {
  Order(1, 0);
  tracer_.Add(trace::COMPUTE, 1'000'000'000, 1'000'100'000, {100, 3, {}});
  fate_ = Unavailable("full");
  agent_.Tick(500 * kMillisecond);
  fate_ = OkStatus();
  Order(1, 600 * kMillisecond);
  EXPECT_GT(sent_.back().header.trace_report().dropped(), 0);
}

TEST_F(TraceAgentTest, AnOrderOfNoTraceIsNone) {
  Order(0, 0);
  EXPECT_FALSE(tracer_.on());
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace kumo
