// The questions that no connection of ours makes libzmq ask; whole connections are in
// keyed_transport_test.cc.
#include "common/transport/curve.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/transport/key_folder.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string KeyBytes(const std::string& z85) {
  std::array<uint8_t, kKeyBytes> bytes;
  CHECK(zmq_z85_decode(bytes.data(), z85.c_str()) != nullptr);
  return {bytes.begin(), bytes.end()};
}

class ZapHandlerTest : public testing::Test {
 protected:
  ZapHandlerTest() {
    auto made = ZapHandler::Make(context_.get(), *folder_.Of(ServerKey(0)));
    CHECK(made.ok()) << made.status().message();
    handler_ = std::move(made).value();
    // DEALER, so that a question may come before the last one's answer.
    asker_.reset(zmq_socket(context_.get(), ZMQ_DEALER));
    const int linger = 0;
    zmq_setsockopt(asker_.get(), ZMQ_LINGER, &linger, sizeof linger);
    CHECK_EQ(zmq_connect(asker_.get(), "inproc://zeromq.zap.01"), 0);
  }

  static std::vector<std::string> Question(const std::string& mechanism,
                                           const std::vector<std::string>& credentials) {
    std::vector<std::string> frames = {"1.0", "7", "kumo", "10.0.0.9", "", mechanism};
    frames.insert(frames.end(), credentials.begin(), credentials.end());
    return frames;
  }
  void Ask(std::vector<std::string> frames) {
    frames.insert(frames.begin(), "");  // as a REQ socket does
    for (size_t i = 0; i < frames.size(); ++i) {
      const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      CHECK_GE(zmq_send(asker_.get(), frames[i].data(), frames[i].size(), flags), 0);
    }
  }
  // The next answer's frames; none where there is none.
  std::vector<std::string> Answer() {
    std::vector<std::string> frames;
    for (bool more = true; more;) {
      ZmqFrame frame;
      if (zmq_msg_recv(frame.get(), asker_.get(), ZMQ_DONTWAIT) < 0) break;
      more = frame.more();
      frames.emplace_back(reinterpret_cast<const char*>(frame.bytes().data()),
                          frame.bytes().size());
    }
    if (!frames.empty()) frames.erase(frames.begin());
    return frames;
  }
  std::vector<std::string> AnswerTo(const std::vector<std::string>& question, TimeUs now = 0) {
    Ask(question);
    handler_->Serve(now, &log_);
    return Answer();
  }
  bool IsAllowed(const std::vector<std::string>& question, TimeUs now = 0) {
    const std::vector<std::string> answer = AnswerTo(question, now);
    EXPECT_EQ(answer.size(), 6u);
    return answer.size() == 6 && answer[2] == "200";
  }

  KeyFolder folder_;
  ZmqContext context_{zmq_ctx_new()};
  std::unique_ptr<ZapHandler> handler_;
  ZmqSocket asker_;
  RefusalLog log_;
  const std::string known_ = KeyBytes(folder_.Of(WorkerKey(3))->own.public_key);
};

TEST_F(ZapHandlerTest, AKnownKeySpeaksAsItsHolderAndTheAnswerIsOfThisQuestion) {
  EXPECT_THAT(AnswerTo(Question("CURVE", {known_})),
              ElementsAre("1.0", "7", "200", "", "worker/worker-3/", ""));
}

TEST_F(ZapHandlerTest, WhatIsNotOneKeyOfCurveIsRefused) {
  EXPECT_FALSE(IsAllowed(Question("PLAIN", {known_})));
  EXPECT_FALSE(IsAllowed(Question("PLAIN", {"worker", "password"})));
  EXPECT_FALSE(IsAllowed(Question("CURVE", {})));
  EXPECT_FALSE(IsAllowed(Question("CURVE", {known_, known_})));
  EXPECT_FALSE(IsAllowed(Question("CURVE", {known_.substr(1)})));
  EXPECT_FALSE(IsAllowed(Question("CURVE", {known_ + "x"})));
  EXPECT_FALSE(IsAllowed(Question("", {})));
  EXPECT_FALSE(IsAllowed({"1.0"}));
  EXPECT_TRUE(IsAllowed(Question("CURVE", {known_}))) << "and nothing of those is left over";
}

TEST_F(ZapHandlerTest, WhoHasNoKeysIsNobody) {
  EXPECT_THAT(AnswerTo(Question("NULL", {})), ElementsAre("1.0", "7", "200", "", "nobody", ""));
}

TEST_F(ZapHandlerTest, StrangersHaveTheListReadAgainAtMostOnceInAWhile) {
  const std::string stranger = KeyBytes(MakeKeyPair()->public_key);
  EXPECT_FALSE(IsAllowed(Question("CURVE", {stranger}), /*now=*/5));
  folder_.Add({WorkerKey(9)});
  const auto added = Question("CURVE", {KeyBytes(folder_.Of(WorkerKey(9))->own.public_key)});
  EXPECT_FALSE(IsAllowed(added, 4 + ZapHandler::kLookAgain));
  EXPECT_TRUE(IsAllowed(added, 5 + ZapHandler::kLookAgain));
}

TEST_F(ZapHandlerTest, AFloodOfQuestionsIsAnsweredInSeveralTurns) {
  constexpr int kQuestions = 200;
  for (int i = 0; i < kQuestions; ++i) Ask(Question("CURVE", {known_}));
  int answers = 0, turns = 0;
  while (answers < kQuestions && turns < kQuestions) {
    handler_->Serve(0, &log_);
    ++turns;
    while (!Answer().empty()) ++answers;
  }
  EXPECT_EQ(answers, kQuestions);
  EXPECT_GT(turns, 1);
  EXPECT_LT(turns, kQuestions);
  EXPECT_THAT(Answer(), IsEmpty());
}

}  // namespace
}  // namespace kumo
