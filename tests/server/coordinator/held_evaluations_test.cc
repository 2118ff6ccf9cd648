#include "server/coordinator/held_evaluations.h"

#include <vector>

#include <gtest/gtest.h>

namespace kumo {
namespace {

wire::Header Evaluation(int64_t version, int partition, uint64_t request) {
  wire::Header header;
  header.set_type(wire::EVALUATED);
  header.set_round(version);
  header.set_partition(partition);
  header.set_request(request);
  return header;
}

std::vector<SendAction> Sends(const StepContext& context) {
  std::vector<SendAction> sends;
  for (const ServerAction& action : context.actions) sends.push_back(std::get<SendAction>(action));
  return sends;
}

SendAction Answer(HeldEvaluations* held, const PeerName& from, const wire::Header& header) {
  StepContext context{0, {}};
  held->Answer(from, header, &context);
  EXPECT_EQ(context.actions.size(), 1u);
  return Sends(context).front();
}

std::vector<SendAction> Release(HeldEvaluations* held, int64_t version) {
  StepContext context{0, {}};
  held->Release(version, &context);
  return Sends(context);
}

TEST(HeldEvaluations, WhatIsNotHeldIsAcknowledgedForGood) {
  HeldEvaluations held;
  const SendAction ack = Answer(&held, "a", Evaluation(4, 1, 7));
  EXPECT_EQ(ack.to, "a");
  EXPECT_EQ(ack.message.header.request(), 7u);
  EXPECT_FALSE(ack.message.header.held());
  EXPECT_TRUE(Release(&held, 100).empty());
}

// It is in the state that goes with the next version, which is kept twice when the one after it is
// made.
TEST(HeldEvaluations, WhatIsHeldIsReleasedTwoVersionsLater) {
  HeldEvaluations held;
  held.Hold(4, 1, /*now=*/5);
  EXPECT_TRUE(Answer(&held, "a", Evaluation(4, 1, 7)).message.header.held());
  EXPECT_FALSE(Answer(&held, "a", Evaluation(4, 0, 8)).message.header.held())
      << "another partition";
  EXPECT_FALSE(Answer(&held, "a", Evaluation(3, 1, 9)).message.header.held()) << "another version";
  EXPECT_TRUE(Release(&held, 6).empty());
  const auto released = Release(&held, 7);
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].to, "a");
  EXPECT_EQ(released[0].message.header.type(), wire::ACK);
  EXPECT_EQ(released[0].message.header.request(), 7u);
  EXPECT_FALSE(released[0].message.header.held());
  EXPECT_TRUE(Release(&held, 8).empty()) << "once";
  EXPECT_FALSE(Answer(&held, "a", Evaluation(4, 1, 10)).message.header.held());
}

TEST(HeldEvaluations, EachSenderIsReleasedByItsLastRequest) {
  HeldEvaluations held;
  held.Hold(4, 1, 5);
  Answer(&held, "a", Evaluation(4, 1, 7));
  Answer(&held, "b", Evaluation(4, 1, 3));
  Answer(&held, "a", Evaluation(4, 1, 9));
  const auto released = Release(&held, 7);
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[0].to, "a");
  EXPECT_EQ(released[0].message.header.request(), 9u);
  EXPECT_EQ(released[1].to, "b");
  EXPECT_EQ(released[1].message.header.request(), 3u);
}

TEST(HeldEvaluations, AJobThatGoesBackReleasesNobody) {
  HeldEvaluations held;
  held.Hold(4, 1, 5);
  Answer(&held, "a", Evaluation(4, 1, 7));
  held.Forget();
  EXPECT_TRUE(Release(&held, 100).empty());
}

}  // namespace
}  // namespace kumo
