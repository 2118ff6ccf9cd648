#include "common/transport/send_queues.h"

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

Payload PayloadOf(std::shared_ptr<std::string> text) {
  const auto bytes = std::as_bytes(std::span(*text));
  return {std::move(text), bytes};
}

std::string Text(ZmqFrame* frame) {
  return {reinterpret_cast<const char*>(frame->bytes().data()), frame->bytes().size()};
}

TEST(SendQueuesTest, AFrameHasTheBytesThatItWasFilledWithWhereTheyLie) {
  SendQueues queues;
  ZmqFrame header, payload;
  queues.Of("a").Fill("a header", &header);
  EXPECT_EQ(Text(&header), "a header");
  auto text = std::make_shared<std::string>("a payload");
  const auto* const where = reinterpret_cast<const std::byte*>(text->data());
  queues.Of("a").Fill(PayloadOf(text), &payload);
  EXPECT_EQ(payload.bytes().data(), where);
  EXPECT_EQ(payload.bytes().size(), text->size());
}

TEST(SendQueuesTest, WhatWaitsIsWhatIsNotClosedWithItsCostWhateverTheOrder) {
  Rng rng(1, RngPurpose::kTest);
  SendQueues queues;
  const std::string peers[] = {"a", "b", "c"};
  struct Open {
    int peer;
    int64_t cost;
    std::shared_ptr<std::string> owner;
    std::unique_ptr<ZmqFrame> frame;
  };
  std::vector<Open> open;
  for (int i = 0; i < 3000; ++i) {
    if (open.empty() || rng.NextBelow(2)) {
      const int peer = static_cast<int>(rng.NextBelow(3));
      auto text = std::make_shared<std::string>(rng.NextBelow(3000), 'x');
      const auto cost = static_cast<int64_t>(text->size()) + SendQueue::kFrameCost;
      auto frame = std::make_unique<ZmqFrame>();
      if (rng.NextBelow(2)) {
        queues.Of(peers[peer]).Fill(*text, frame.get());
        text.reset();
      } else {
        queues.Of(peers[peer]).Fill(PayloadOf(text), frame.get());
      }
      open.push_back({peer, cost, std::move(text), std::move(frame)});
    } else {
      std::swap(open[rng.NextBelow(open.size())], open.back());
      const std::shared_ptr<std::string> owner = open.back().owner;
      open.pop_back();
      EXPECT_LE(owner.use_count(), 1) << "let go with the frame";
    }
    int64_t expected[3] = {};
    for (const Open& one : open) expected[one.peer] += one.cost;
    for (int p = 0; p < 3; ++p) ASSERT_EQ(queues.Of(peers[p]).waiting(), expected[p]);
  }
}

TEST(SendQueuesTest, AQueueTakesItsBytesOrOneLongerMessageAlone) {
  SendQueues queues;
  const SendQueue queue = queues.Of("a");
  EXPECT_TRUE(queue.Takes(10'000, 1000));
  ZmqFrame frame;
  queue.Fill(std::string(100, 'x'), &frame);
  const int64_t left = 1000 - 100 - SendQueue::kFrameCost;
  EXPECT_TRUE(queue.Takes(left, 1000));
  EXPECT_FALSE(queue.Takes(left + 1, 1000));
  EXPECT_TRUE(queues.Of("b").Takes(10'000, 1000)) << "each peer has its own";
}

TEST(SendQueuesTest, AnyThreadClosesFramesAlsoWhenTheQueuesAreGone) {
  auto queues = std::make_unique<SendQueues>();
  const SendQueue queue = queues->Of("a");
  std::vector<std::unique_ptr<ZmqFrame>> frames;
  for (int i = 0; i < 1000; ++i) {
    frames.push_back(std::make_unique<ZmqFrame>());
    queue.Fill(std::string(100, 'x'), frames.back().get());
  }
  std::thread closes([&] { frames.resize(500); });
  for (int i = 0; i < 500; ++i) {
    ZmqFrame frame;
    queue.Fill(std::string(100, 'x'), &frame);
  }
  closes.join();
  EXPECT_EQ(queue.waiting(), 500 * (100 + SendQueue::kFrameCost));
  queues.reset();
  frames.clear();
  EXPECT_EQ(queue.waiting(), 0);
}

TEST(SendQueuesTest, PeersThatNothingWaitsForAreForgottenAndNoOthers) {
  SendQueues queues;
  std::vector<std::unique_ptr<ZmqFrame>> frames;
  for (int i = 0; i < 10'000; ++i) {
    const std::string peer = "worker/w/" + std::to_string(i);
    const bool waits = i % 1000 == 0;
    auto frame = std::make_unique<ZmqFrame>();
    queues.Of(peer).Fill("header", frame.get());
    if (waits) frames.push_back(std::move(frame));
    ASSERT_LE(queues.size(), 200u);
  }
  for (int i = 0; i < 10'000; i += 1000) {
    EXPECT_GT(queues.Of("worker/w/" + std::to_string(i)).waiting(), 0) << i;
  }
}

}  // namespace
}  // namespace kumo
