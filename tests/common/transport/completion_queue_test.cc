#include "common/transport/completion_queue.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/transport/loop.h"

namespace kumo {
namespace {

using testing::ElementsAre;

TEST(CompletionQueueTest, FunctionsRunOnceInTheirOrderAndLaterOnesNextTime) {
  Node node("queue");
  const SteadyClock clock;
  CompletionQueue<int> queue(node.transport.get(), &clock);
  std::vector<int> performed;
  const auto run = [&] { queue.Run([&](int actions) { performed.push_back(actions); }); };
  queue.Add([&](TimeUs) {
    queue.Add([](TimeUs) { return 3; });
    return 1;
  });
  queue.Add([](TimeUs) { return 2; });
  run();
  EXPECT_THAT(performed, ElementsAre(1, 2));
  run();
  run();
  EXPECT_THAT(performed, ElementsAre(1, 2, 3));
}

// Poll alone would wait for a minute, longer than the test does.
TEST(CompletionQueueTest, AnotherThreadsFunctionEndsThePoll) {
  Node node("queue");
  const SteadyClock clock;
  CompletionQueue<int> queue(node.transport.get(), &clock);
  std::vector<int> performed;
  std::thread other([&] { queue.Add([](TimeUs) { return 7; }); });
  const TimeUs begin = clock.NowUs();
  while (performed.empty() && clock.NowUs() - begin < kPatience) {
    node.Poll(60 * kSecond);
    queue.Run([&](int actions) { performed.push_back(actions); });
  }
  other.join();
  EXPECT_THAT(performed, ElementsAre(7));
  EXPECT_LT(clock.NowUs() - begin, kPatience);
}

}  // namespace
}  // namespace kumo
