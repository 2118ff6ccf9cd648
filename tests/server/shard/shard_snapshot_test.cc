#include "server/shard/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::Job;
using test::NesterovJob;
using test::PackFloats;
using test::Shards;
using test::StateMessage;
using test::UnpackFloats;
using testing::HasSubstr;

// --- What partitions carry.

void PutStates(Shards* shards, int64_t version, int skip_partition = -1) {
  for (const Chunk& chunk : shards->map().chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    for (int p = 0; p < 3; ++p) {
      if (p == skip_partition) continue;
      const std::vector<float> numbers(chunk.range.size(),
                                       static_cast<float>(100 * p + chunk.index));
      const Status status =
          shards->Send(StateMessage(wire::PUT_STATE, chunk, version, p, 0, PackFloats(numbers)));
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
}

// The payload of the answer to a GET_STATE.
Payload GetState(Shards* shards, const Chunk& chunk, int64_t version, int partition) {
  shards->sent.clear();
  const Status status = shards->Send(StateMessage(wire::GET_STATE, chunk, version, partition, 0));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(shards->sent.size(), 1u);
  if (shards->sent.empty()) return {};
  EXPECT_EQ(shards->sent[0].message.header.type(), wire::STATE);
  EXPECT_EQ(shards->sent[0].message.header.round(), version);
  EXPECT_EQ(shards->sent[0].message.header.partition(), partition);
  return shards->sent[0].message.payload;
}

TEST(Shard, AStateIsGivenBackAtExactlyItsVersion) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  const Chunk& chunk = shards.map().chunks()[2];
  EXPECT_TRUE(GetState(&shards, chunk, 0, 1).empty());
  shards.RunRound(0);
  PutStates(&shards, 1);
  EXPECT_EQ(UnpackFloats(GetState(&shards, chunk, 1, 1)),
            std::vector<float>(chunk.range.size(), 102.0f));
  EXPECT_TRUE(GetState(&shards, chunk, 0, 1).empty());
  EXPECT_TRUE(GetState(&shards, chunk, 2, 1).empty());
  EXPECT_EQ(UnpackFloats(GetState(&shards, chunk, 1, 2)),
            std::vector<float>(chunk.range.size(), 202.0f));
  shards.RunRound(1);
  EXPECT_TRUE(GetState(&shards, chunk, 1, 1).empty());  // of a past that nobody resumes
}

TEST(Shard, ImpossibleStatesAreRefused) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  const Chunk& chunk = shards.map().chunks()[0];
  const Chunk& statistics = shards.map().chunks().back();
  const Payload good = PackFloats(std::vector<float>(chunk.range.size()));
  for (const wire::Type type : {wire::PUT_STATE, wire::GET_STATE}) {
    for (const int bad : {-1, 3, INT32_MAX, INT32_MIN}) {
      EXPECT_FALSE(shards.Send(StateMessage(type, chunk, 0, bad, 0, good)).ok());
      EXPECT_FALSE(shards.Send(StateMessage(type, chunk, 0, 0, bad, good)).ok());
    }
    EXPECT_FALSE(shards.Send(StateMessage(type, chunk, 0, 0, 1, good)).ok());
    const Payload fits = PackFloats(std::vector<float>(statistics.range.size()));
    EXPECT_FALSE(shards.Send(StateMessage(type, statistics, 0, 0, 0, fits)).ok());
  }
  Payload half = good;
  half.bytes = half.bytes.first(half.bytes.size() / 2);
  EXPECT_FALSE(shards.Send(StateMessage(wire::PUT_STATE, chunk, 0, 0, 0, half)).ok());
}

TEST(Shard, ASnapshotWaitsForTheStatesOfAllPartitions) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  shards.RunRound(0, /*save=*/true);
  EXPECT_TRUE(shards.saved.empty());
  PutStates(&shards, 1, /*skip_partition=*/2);
  EXPECT_TRUE(shards.saved.empty());
  PutStates(&shards, 1);
  ASSERT_EQ(shards.saved.size(), 1u);
  EXPECT_EQ(shards.saved[0].snapshot.version, 1);
  int states = 0;
  for (const StateArray& array : shards.saved[0].snapshot.arrays) {
    states += array.kind == StateKind::kPartitionState;
  }
  EXPECT_EQ(states, 3 * 4);  // partitions, chunks that are trained
  PutStates(&shards, 1);     // repeated: no second snapshot
  EXPECT_EQ(shards.saved.size(), 1u);
}

TEST(Shard, StatesMayComeBeforeTheirRoundHasClosed) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  PutStates(&shards, 1);
  EXPECT_TRUE(shards.saved.empty());
  shards.RunRound(0, true);
  ASSERT_EQ(shards.saved.size(), 1u);
  const Chunk& chunk = shards.map().chunks()[0];
  EXPECT_FALSE(GetState(&shards, chunk, 1, 0).empty());
}

TEST(Shard, AStateThatIsAheadOfItsChunkSurvivesALateQuestion) {
  // A lease began at round 0: its GET_STATE was sent twice, and the second one comes when the block
  // is trained and its state is on the shard, but another partition has not pushed yet.
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  PutStates(&shards, 1);
  for (const Chunk& chunk : shards.map().chunks()) {
    if (chunk.segment == Segment::kStatistics) continue;
    EXPECT_TRUE(GetState(&shards, chunk, 0, 0).empty());
  }
  shards.RunRound(0, true);
  ASSERT_EQ(shards.saved.size(), 1u) << "the snapshot waits for a state that was acknowledged";
  EXPECT_FALSE(GetState(&shards, shards.map().chunks()[0], 1, 0).empty());
}

TEST(Shard, ALostStateHoldsNoSnapshotUp) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  shards.RunRound(0, true);
  PutStates(&shards, 1, /*skip_partition=*/2);
  for (const Chunk& chunk : shards.map().chunks()) {
    if (chunk.segment != Segment::kStatistics) GetState(&shards, chunk, 1, 2);  // its new owner
  }
  ASSERT_EQ(shards.saved.size(), 1u);
}

// --- Snapshots and restoring.

TEST(Shard, WithoutAnythingToCarryASnapshotComesWithTheRound) {
  const Job job = NesterovJob();
  Shards shards(job, 2);
  shards.Initialise();
  shards.RunRound(0);
  EXPECT_TRUE(shards.saved.empty());
  shards.RunRound(1, true);
  EXPECT_EQ(shards.saved.size(), 2u);
}

TEST(Shard, ASnapshotIsNotWrittenToByLaterRounds) {
  const Job job = NesterovJob();
  Shards shards(job, 1);
  shards.Initialise();
  shards.RunRound(0, true);
  ASSERT_EQ(shards.saved.size(), 1u);
  std::vector<std::vector<float>> before;
  for (const StateArray& array : shards.saved[0].snapshot.arrays) {
    before.emplace_back(array.numbers.begin(), array.numbers.end());
  }
  for (int64_t r = 1; r < 6; ++r) shards.RunRound(r);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& numbers = shards.saved[0].snapshot.arrays[i].numbers;
    ASSERT_EQ(std::vector<float>(numbers.begin(), numbers.end()), before[i]) << i;
  }
}

TEST(Shard, RestoredOnAnyNumberOfServersItGoesOnWithTheSameBits) {
  for (const char* mode : {"block", "gradient"}) {
    for (const CodecId codec : {CodecId::kFp32, CodecId::kOneBit}) {
      SCOPED_TRACE(std::string(mode) + " " + std::string(WordOf(codec)));
      Job job = NesterovJob(codec);
      job.experiment.sync.pull_codec = codec;
      if (mode[0] == 'g') job.experiment.sync.mode = SyncMode::kGradient;
      job.experiment.optimiser.type = OptimiserType::kAdam;
      Shards reference(job, 2);
      reference.Initialise();
      for (int64_t r = 0; r < 3; ++r) reference.RunRound(r, r == 2);
      if (codec == CodecId::kOneBit) PutStates(&reference, 3);
      ASSERT_EQ(reference.saved.size(), 2u);
      const ShardSnapshot snapshot = reference.TakeSaved();
      const std::vector<float> start3 = reference.Pull(3, wire::START);
      const std::vector<float> weights3 = reference.Pull(3, wire::WEIGHTS);
      for (int64_t r = 3; r < 6; ++r) reference.RunRound(r);

      for (const int servers : {1, 2, 3, 5}) {
        SCOPED_TRACE(servers);
        Shards shards(job, servers);
        const Status status = shards.Restore(snapshot);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(shards.Pull(3, wire::START) == start3);
        EXPECT_TRUE(shards.Pull(3, wire::WEIGHTS) == weights3);
        if (codec == CodecId::kOneBit) {
          const Chunk& chunk = shards.map().chunks()[0];
          EXPECT_EQ(UnpackFloats(GetState(&shards, chunk, 3, 2)).at(0), 200.0f);
        }
        for (int64_t r = 3; r < 6; ++r) shards.RunRound(r);
        EXPECT_TRUE(shards.Pull(6, wire::START) == reference.Pull(6, wire::START));
        EXPECT_TRUE(shards.Pull(6, wire::WEIGHTS) == reference.Pull(6, wire::WEIGHTS));
      }
    }
  }
}

TEST(Shard, ASnapshotThatIsNotWholeOrNotOfThisJobIsRefused) {
  const Job job = NesterovJob();
  Shards shards(job, 2);
  shards.Initialise();
  shards.RunRound(0, true);
  ShardSnapshot snapshot = shards.TakeSaved();
  const auto restore = [&](const ShardSnapshot& s) { return Shards(job, 3).Restore(s); };
  ASSERT_TRUE(restore(snapshot).ok());
  for (const int64_t version : {int64_t{-1}, int64_t{9}, INT64_MAX, INT64_MIN}) {
    ShardSnapshot other = snapshot;
    other.version = version;
    EXPECT_EQ(restore(other).code(), StatusCode::kDataLoss) << version;
  }
  for (size_t i = 0; i < snapshot.arrays.size(); ++i) {
    if (snapshot.arrays[i].kind != StateKind::kStart) continue;
    ShardSnapshot other = snapshot;
    other.arrays.erase(other.arrays.begin() + static_cast<ptrdiff_t>(i));
    const Status status = restore(other);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("weights of chunk"));
  }
}

}  // namespace
}  // namespace kumo
