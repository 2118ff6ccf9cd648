#include "server/shard/replica_sender.h"

#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::NesterovJob;
using testing::ElementsAre;

// One chunk at version 3, of a rule that keeps every array there is.
class ReplicaSenderTest : public testing::Test {
 protected:
  ReplicaSenderTest()
      : map_(job_.spec.layout, 1, job_.experiment.cluster.chunk_kib * 1024),
        math_(Math(job_, map_)),
        chunk_(map_.chunks()[0], &math_),
        directives_([](int64_t, const MetricSums&, StepContext*) { return Directive(); },
                    &math_.plan()) {
    const size_t numbers = chunk_.chunk().range.size();
    const auto version = [&](int slots) {
      std::map<int, FloatArray> arrays;
      for (int i = 0; i < Version::kFirstSlot + slots; ++i) arrays[i] = MakeArray(numbers);
      return VersionOf(arrays);
    };
    EXPECT_TRUE(chunk_.Begin({{2, version(0)}, {3, version(1)}}).ok());
  }

  static RoundMath Math(const Job& job, const ShardMap& map) {
    const Experiment& e = job.experiment;
    return RoundMath::Make(e, job.plan(), job.spec, map, 0).value();
  }

  // Everybody contributes to round 3.
  std::shared_ptr<ChunkWork> CloseRound() {
    for (int p = 0; p < 3; ++p) {
      StepContext context;
      const Message push = test::PushMessage(job_, chunk_.chunk(), 3, p);
      EXPECT_TRUE(
          chunk_.OnPush("worker/w/1", push, /*leased=*/true, /*held=*/true, &context).value());
    }
    return chunk_.NextWork(/*freeze=*/true);
  }

  // The versions and arrays that are on their way in a turn; acknowledged, if asked for.
  std::vector<std::pair<int64_t, int>> Arrays(const StepContext& context,
                                              bool acknowledge = false) {
    std::vector<std::pair<int64_t, int>> arrays;
    StepContext then;
    for (const ServerAction& action : context.actions) {
      const wire::Header& header = std::get<SendAction>(action).message.header;
      EXPECT_EQ(header.type(), wire::REPLICATE);
      arrays.emplace_back(header.round(), header.version_array());
      if (acknowledge) copies_.OnAcknowledged(header, &then);
    }
    return arrays;
  }

  const Job job_ = NesterovJob();
  const ShardMap map_;
  const RoundMath math_;
  ShardChunk chunk_;
  Directives directives_;
  ReplicaSender copies_{/*index=*/0, /*servers=*/2, /*chunk_bytes=*/2048, job_.plan()};
};

TEST_F(ReplicaSenderTest, AVersionIsSentWholeWithSlotsThatNoRoundWritesTo) {
  StepContext context;
  copies_.Send(chunk_, directives_, &context);
  EXPECT_THAT(Arrays(context), ElementsAre(std::pair(3, 0), std::pair(3, 1), std::pair(3, 2)));
  const Message& slot = std::get<SendAction>(context.actions[2]).message;
  EXPECT_NE(slot.payload.owner, chunk_.Find(3)->slots[0]);
  const Message& start = std::get<SendAction>(context.actions[0]).message;
  EXPECT_EQ(start.payload.owner, chunk_.Find(3)->start);  // shared, not copied
}

TEST_F(ReplicaSenderTest, WhatIsMadeGoesFirstAndNothingWhileTheSlotsAreWritten) {
  const std::shared_ptr<ChunkWork> work = CloseRound();
  ASSERT_TRUE(work && work->closes());
  StepContext closing;
  copies_.Send(chunk_, directives_, &closing);
  EXPECT_TRUE(closing.actions.empty());
  EXPECT_FALSE(copies_.HasMade(chunk_));
  work->Run();
  ASSERT_TRUE(chunk_.OnComputed(*work).value());
  StepContext made;
  copies_.Send(chunk_, directives_, &made);
  EXPECT_FALSE(copies_.HasMade(chunk_));
  EXPECT_THAT(Arrays(made, /*acknowledge=*/true),
              ElementsAre(std::pair(4, 0), std::pair(4, 1), std::pair(4, 2)));
  EXPECT_TRUE(copies_.HasMade(chunk_));
  EXPECT_TRUE(copies_.idle());
}

// It may be computed again from the version before: what is made is nobody's until that is there
// too.
TEST_F(ReplicaSenderTest, WhatIsMadeWaitsForTheVersionBefore) {
  StepContext current, made;
  copies_.Send(chunk_, directives_, &current);
  const std::shared_ptr<ChunkWork> work = CloseRound();
  work->Run();
  ASSERT_TRUE(chunk_.OnComputed(*work).value());
  copies_.Send(chunk_, directives_, &made);
  Arrays(made, /*acknowledge=*/true);
  EXPECT_FALSE(copies_.HasMade(chunk_));
  Arrays(current, /*acknowledge=*/true);
  EXPECT_TRUE(copies_.HasMade(chunk_));
}

TEST_F(ReplicaSenderTest, AnotherHolderGetsTheVersionBeforeOnceAndWithoutSlots) {
  StepContext nobody_lacks_it;
  copies_.SendEarlier(chunk_, &nobody_lacks_it);
  EXPECT_TRUE(nobody_lacks_it.actions.empty());
  copies_.StartOver();
  StepContext again, previous, once_more;
  copies_.SendAll(chunk_, directives_, &again);
  EXPECT_EQ(Arrays(again).size(), 3u);
  copies_.SendEarlier(chunk_, &previous);
  EXPECT_THAT(Arrays(previous), ElementsAre(std::pair(2, 0), std::pair(2, 1)));
  copies_.SendEarlier(chunk_, &once_more);
  EXPECT_TRUE(once_more.actions.empty());
}

}  // namespace
}  // namespace kumo
