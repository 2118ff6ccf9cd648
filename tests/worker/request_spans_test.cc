#include "worker/request_spans.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace kumo {
namespace {

wire::Header Request(wire::Type type, uint64_t number) {
  wire::Header header;
  header.set_type(type);
  header.set_request(number);
  header.set_round(7);
  header.set_partition(2);
  header.set_chunk(3);
  return header;
}

wire::Header AnswerTo(uint64_t number) {
  wire::Header header;
  header.set_type(wire::ACK);
  header.set_request(number);
  return header;
}

class RequestSpansTest : public testing::Test {
 protected:
  SteadyClock clock_;
  Tracer tracer_{&clock_};
  RequestSpans spans_{&tracer_};
};

TEST_F(RequestSpansTest, ARequestIsASpanFromItsFirstSendingToItsAnswer) {
  tracer_.Start();
  spans_.OnSent(0, Request(wire::PUSH, 1), 100);
  spans_.OnSent(0, Request(wire::PUSH, 1), 130);  // repeated
  spans_.OnSent(0, Request(wire::PULL, 2), 140);
  EXPECT_TRUE(tracer_.Take().empty()) << "none is over";
  spans_.OnArrived(0, AnswerTo(2), 150);
  spans_.OnArrived(0, AnswerTo(1), 160);
  const auto spans = tracer_.Take();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].kind(), trace::PULL);
  EXPECT_EQ(spans[0].begin_us(), 140);
  EXPECT_EQ(spans[0].duration_us(), 10);
  EXPECT_EQ(spans[0].round(), 7);
  EXPECT_EQ(spans[0].chunk(), 3);
  EXPECT_FALSE(spans[0].has_partition()) << "all of a worker's partitions begin with one";
  EXPECT_EQ(spans[1].kind(), trace::PUSH);
  EXPECT_EQ(spans[1].begin_us(), 100);
  EXPECT_EQ(spans[1].duration_us(), 60);
  EXPECT_EQ(spans[1].partition(), 2);
}

TEST_F(RequestSpansTest, NumbersAreOfOneServerAndAnAnswerCountsOnce) {
  tracer_.Start();
  spans_.OnSent(0, Request(wire::PUSH, 1), 100);
  spans_.OnSent(1, Request(wire::PUSH, 1), 110);
  spans_.OnArrived(1, AnswerTo(1), 120);
  spans_.OnArrived(1, AnswerTo(1), 130);
  spans_.OnArrived(2, AnswerTo(1), 130);
  const auto spans = tracer_.Take();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].begin_us(), 110);
}

TEST_F(RequestSpansTest, OtherMessagesAreNoSpans) {
  tracer_.Start();
  spans_.OnSent(0, Request(wire::HELLO, 1), 100);
  spans_.OnSent(0, Request(wire::HEARTBEAT, 2), 100);
  spans_.OnArrived(0, AnswerTo(1), 120);
  spans_.OnArrived(0, AnswerTo(2), 120);
  EXPECT_TRUE(tracer_.Take().empty());
}

// Else the first trace's open requests would be spans of the next one, as long as the time between.
TEST_F(RequestSpansTest, WhatWasOpenWhenATraceEndedIsForgotten) {
  tracer_.Start();
  spans_.OnSent(0, Request(wire::PULL, 1), 100);
  tracer_.Stop();
  spans_.OnSent(0, Request(wire::PULL, 2), 200);
  tracer_.Start();
  spans_.OnArrived(0, AnswerTo(1), 900);
  spans_.OnArrived(0, AnswerTo(2), 900);
  EXPECT_TRUE(tracer_.Take().empty());
}

// A server that never answers must not cost more and more.
TEST_F(RequestSpansTest, RequestsThatAreNeverAnsweredAreNotKeptWithoutEnd) {
  tracer_.Start();
  constexpr uint64_t kMany = 100'000;
  for (uint64_t request = 1; request <= kMany; ++request) {
    spans_.OnSent(0, Request(wire::PUSH, request), 100);
  }
  size_t kept = 0;
  for (uint64_t request = 1; request <= kMany; ++request) {
    spans_.OnArrived(0, AnswerTo(request), 200);
    kept += tracer_.Take().size();
  }
  EXPECT_GT(kept, 1000u);
  EXPECT_LT(kept, kMany / 2);
}

}  // namespace
}  // namespace kumo
