#include "common/trace/tracer.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace kumo {
namespace {

class TracerTest : public testing::Test {
 protected:
  class Still : public Clock {
   public:
    TimeUs NowUs() const override { return now; }
    TimeUs now = 100;
  };
  Still clock_;
  Tracer tracer_{&clock_};
};

TEST_F(TracerTest, KeepsNothingWhileItIsOff) {
  { const TraceScope scope(&tracer_, trace::COMPUTE, {}); }
  tracer_.Start();
  EXPECT_TRUE(tracer_.Take().empty());
  tracer_.Add(trace::PUSH, 1, 2, {});
  tracer_.Stop();
  EXPECT_TRUE(tracer_.Take().empty());
}

TEST_F(TracerTest, AScopeIsASpanOfItsThread) {
  tracer_.Start();
  {
    const TraceScope scope(&tracer_, trace::APPLY, {.round = 7, .chunk = 3});
    clock_.now += 25;
  }
  tracer_.Add(trace::PUSH, 1, 5, {.partition = 2}, /*threaded=*/false);
  const std::vector<trace::Span> spans = tracer_.Take();
  ASSERT_EQ(spans.size(), 2);
  EXPECT_EQ(spans[0].kind(), trace::APPLY);
  EXPECT_EQ(spans[0].begin_us(), 100);
  EXPECT_EQ(spans[0].duration_us(), 25);
  EXPECT_EQ(spans[0].round(), 7);
  EXPECT_EQ(spans[0].chunk(), 3);
  EXPECT_FALSE(spans[0].has_partition());
  EXPECT_EQ(spans[0].thread(), 1);
  EXPECT_EQ(spans[1].partition(), 2);
  EXPECT_EQ(spans[1].thread(), 0);
}

TEST_F(TracerTest, WhatNobodyTakesIsDroppedAndCounted) {
  tracer_.Start();
  for (size_t i = 0; i < Tracer::kMostSpans + 5; ++i) tracer_.Add(trace::WAIT, 0, 1, {});
  EXPECT_EQ(tracer_.Take().size(), Tracer::kMostSpans);
  EXPECT_EQ(tracer_.dropped(), 5);
  tracer_.Start();
  EXPECT_EQ(tracer_.dropped(), 0);
}

TEST_F(TracerTest, ThreadsHaveNumbersOfTheirOwnAndLoseNothing) {
  tracer_.Start();
  constexpr int kThreads = 4, kEach = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) const TraceScope scope(&tracer_, trace::COMPUTE, {});
    });
  }
  size_t taken = 0;
  std::set<uint32_t> numbers;
  const auto take = [&] {
    for (const trace::Span& span : tracer_.Take()) {
      ++taken;
      numbers.insert(span.thread());
    }
  };
  for (int i = 0; i < 100; ++i) take();
  for (std::thread& thread : threads) thread.join();
  take();
  EXPECT_EQ(taken, kThreads * kEach);
  EXPECT_EQ(numbers.size(), kThreads);
}

}  // namespace
}  // namespace kumo
