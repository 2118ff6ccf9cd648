#include "common/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/mutex.h"

namespace kumo {
namespace {

// Steps that threads tell each other of. (std::promise would do, but for its code in libstdc++ that
// thread sanitizer does not see.)
class Steps {
 public:
  void Reach(int step) {
    MutexLock lock(mutex_);
    reached_.insert(step);
    changed_.NotifyAll();
  }
  void WaitFor(int step) {
    MutexLock lock(mutex_);
    while (!reached_.contains(step)) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<int> reached_ KUMO_GUARDED_BY(mutex_);
};

// Threads that sleep at once, that are awake for some hand-overs and asleep for others, and that
// never sleep.
class ThreadPoolTest : public testing::TestWithParam<std::chrono::microseconds> {};

INSTANTIATE_TEST_SUITE_P(Awake, ThreadPoolTest,
                         testing::Values(std::chrono::microseconds(0),
                                         std::chrono::microseconds(20), std::chrono::minutes(10)),
                         [](const auto& tested) { return std::to_string(tested.param.count()); });

TEST_P(ThreadPoolTest, ParallelForVisitsEachIndexOnce) {
  for (const int threads : {0, 1, 3}) {
    ThreadPool pool(threads, GetParam());
    for (const int64_t n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(n);
      pool.ParallelFor(n, [&](int64_t i) { visits[i].fetch_add(1); });
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(visits[i], 1) << threads << " " << n << " " << i;
    }
  }
}

TEST_P(ThreadPoolTest, WhatTheBodyWroteIsSeenWhenParallelForReturns) {
  ThreadPool pool(3, GetParam());
  std::vector<int64_t> squares(500);
  for (int repeat = 0; repeat < 200; ++repeat) {
    pool.ParallelFor(500, [&](int64_t i) { squares[i] = i * i + repeat; });
    for (int64_t i = 0; i < 500; ++i) ASSERT_EQ(squares[i], i * i + repeat);
  }
}

TEST_P(ThreadPoolTest, ParallelForMayBeNestedDeeperThanThereAreThreads) {
  ThreadPool pool(2, GetParam());
  std::atomic<int> leaves{0};
  pool.ParallelFor(4, [&](int64_t) {
    pool.ParallelFor(4,
                     [&](int64_t) { pool.ParallelFor(4, [&](int64_t) { leaves.fetch_add(1); }); });
  });
  EXPECT_EQ(leaves, 64);
}

TEST_P(ThreadPoolTest, ParallelForEndsWhileEveryThreadIsBusy) {
  Steps steps;
  ThreadPool pool(2, GetParam());
  for (int i = 0; i < 2; ++i) pool.Submit([&steps] { steps.WaitFor(0); });
  int64_t sum = 0;
  // The caller alone does all of it, so `sum` needs no lock.
  pool.ParallelFor(10, [&](int64_t i) { sum += i; });
  EXPECT_EQ(sum, 45);
  steps.Reach(0);
}

TEST_P(ThreadPoolTest, ParallelForUsesTheThreads) {
  ThreadPool pool(2, GetParam());
  Mutex mutex;
  CondVar arrived;
  int here = 0;
  // Nobody goes on before three threads are in the loop: the caller and both of the pool's.
  pool.ParallelFor(3, [&](int64_t) {
    MutexLock lock(mutex);
    ++here;
    arrived.NotifyAll();
    while (here < 3) arrived.Wait(mutex);
  });
  EXPECT_EQ(here, 3);
}

TEST_P(ThreadPoolTest, OneThreadRunsTasksInTheOrderOfSubmission) {
  std::vector<int> order;
  {
    ThreadPool pool(1, GetParam());
    for (int i = 0; i < 100; ++i) pool.Submit([&order, i] { order.push_back(i); });
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(ThreadPoolTest, WithoutThreadsTasksRunInTheCaller) {
  ThreadPool pool(0, GetParam());
  std::thread::id ran_in;
  EXPECT_TRUE(pool.Submit([&] { ran_in = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_in, std::this_thread::get_id());
}

TEST_P(ThreadPoolTest, ShutdownRunsWhatWasSubmittedAndRefusesMore) {
  std::atomic<int> ran{0};
  ThreadPool pool(2, GetParam());
  for (int i = 0; i < 50; ++i) pool.Submit([&] { ran.fetch_add(1); });
  EXPECT_TRUE(pool.Shutdown(60'000).ok());
  EXPECT_EQ(ran, 50);
  EXPECT_FALSE(pool.Submit([&] { ran.fetch_add(1); }));
  EXPECT_EQ(ran, 50);
  int64_t sum = 0;
  pool.ParallelFor(5, [&](int64_t i) { sum += i; });
  EXPECT_EQ(sum, 10);
}

TEST_P(ThreadPoolTest, ShutdownDoesNotWaitForAStuckTaskLongerThanItsLimit) {
  enum { kStarted, kRelease, kThreadLeft };
  struct AtThreadExit {
    ~AtThreadExit() {
      if (steps) steps->Reach(kThreadLeft);
    }
    std::shared_ptr<Steps> steps;
  };
  auto steps = std::make_shared<Steps>();
  bool queued_ran = false;
  {
    ThreadPool pool(1, GetParam());
    pool.Submit([steps] {
      static thread_local AtThreadExit at_exit;
      at_exit.steps = steps;
      steps->Reach(kStarted);
      steps->WaitFor(kRelease);
    });
    pool.Submit([&queued_ran] { queued_ran = true; });
    steps->WaitFor(kStarted);
    const Status status = pool.Shutdown(1);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(),
                testing::HasSubstr("1 background task(s) are still running and 1 queued"));
  }
  // The abandoned thread outlives its pool without harm.
  steps->Reach(kRelease);
  steps->WaitFor(kThreadLeft);
  EXPECT_FALSE(queued_ran);
}

}  // namespace
}  // namespace kumo
