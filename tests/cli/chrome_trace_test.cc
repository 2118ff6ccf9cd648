#include "cli/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace kumo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ChromeTraceTest : public testing::Test {
 protected:
  void Answer(const std::string& peer, TimeUs sent, TimeUs answered, TimeUs received) {
    wire::TraceReport report;
    report.set_peer(peer);
    report.set_order_sent_us(sent);
    report.set_answered_us(answered);
    report.set_received_us(received);
    trace_.Add(report, nullptr, 0);
  }
  void Did(const std::string& peer, trace::Kind kind, TimeUs begin, TimeUs duration,
           uint32_t thread) {
    wire::TraceReport report;
    report.set_peer(peer);
    trace::Spans spans;
    trace::Span& span = *spans.add_spans();
    span.set_kind(kind);
    span.set_begin_us(begin);
    span.set_duration_us(duration);
    span.set_thread(thread);
    span.set_round(3);
    const std::string bytes = spans.SerializeAsString();
    trace_.Add(report, bytes.data(), bytes.size());
  }

  ChromeTrace trace_;
};

TEST_F(ChromeTraceTest, AllTimesAreByServerZerosClockFromTheFirstSpanOn) {
  Answer("server/0", 1000, 1000, 1000);
  // Its clock is 500,000 ahead; the slow answer says 500,300, the quick one counts.
  Answer("worker/a/9", 1000, 501'600, 1600);
  Answer("worker/a/9", 2000, 502'010, 2020);
  Did("server/0", trace::APPLY, 1500, 40, 1);
  Did("worker/a/9", trace::COMPUTE, 501'100, 300, 2);
  const std::string json = trace_.Json();
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("name":"compute","cat":"compute","pid":2,"ts":0,"ph":"X","tid":2,"dur":300,"args":{"round":3})"));
  EXPECT_THAT(json, HasSubstr(R"("name":"apply","cat":"apply","pid":1,"ts":400,)"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"a"})"));
  EXPECT_THAT(json, HasSubstr(R"("args":{"name":"server-0"})"));
  EXPECT_EQ(trace_.uncertainty(), 10);
}

TEST_F(ChromeTraceTest, WhatOverlapsHasABeginAndAnEnd) {
  Answer("server/0", 0, 0, 0);
  Did("server/0", trace::PUSH, 10, 5, 0);
  const std::string json = trace_.Json();
  EXPECT_THAT(json, HasSubstr(R"("ts":0,"ph":"b","id":1)"));
  EXPECT_THAT(json, HasSubstr(R"("ts":5,"ph":"e","id":1)"));
}

TEST_F(ChromeTraceTest, AClockThatIsNotKnownIsLeftOutAndNonsenseCountsForNothing) {
  Did("worker/a/9", trace::PUSH, 10, 5, 0);
  EXPECT_THAT(trace_.Json(), Not(HasSubstr("push")));
  wire::TraceReport report;
  report.set_peer("worker/b/1");
  trace_.Add(report, "\377\377\377", 3);
  EXPECT_EQ(trace_.spans(), 0);
  EXPECT_EQ(trace_.processes(), 0);
  EXPECT_EQ(trace_.lost(), 1);
  // Nor does it move the others.
  Answer("server/0", 0, 0, 0);
  Did("server/0", trace::APPLY, 1'000'000, 40, 0);
  EXPECT_THAT(trace_.Json(), HasSubstr(R"("name":"apply","cat":"apply","pid":1,"ts":0,)"));
  EXPECT_EQ(trace_.spans(), 1);
  // Times that no clock has: sums of them would overflow.
  constexpr TimeUs kMost = std::numeric_limits<TimeUs>::max();
  Answer("worker/c/1", -kMost, kMost, kMost);
  Answer("worker/c/1", 0, 0, 0);
  Did("worker/c/1", trace::PULL, kMost, kMost, 0);
  Did("worker/c/1", trace::PULL, -kMost, 1, 1);
  EXPECT_THAT(trace_.Json(), Not(HasSubstr("pull")));
  EXPECT_EQ(ChromeTrace().Json(), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\n]}\n");
}

}  // namespace
}  // namespace kumo
