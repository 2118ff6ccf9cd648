#include "server/shard/shard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/job/loss_and_accuracy.h"
#include "tests/server/shard/shard_harness.h"

namespace kumo {
namespace {

using test::InitialiseMessage;
using test::Job;
using test::NesterovJob;
using test::PackFloats;
using test::PullMessage;
using test::PushMessage;
using test::Shards;
using test::SmallJob;
using test::UnpackFloats;
using testing::HasSubstr;

int CountSent(const Shards& shards, wire::Type type) {
  return static_cast<int>(
      std::count_if(shards.sent.begin(), shards.sent.end(),
                    [&](const SendAction& s) { return s.message.header.type() == type; }));
}

// --- Contributions.

TEST(Shard, ContributionsInAnyOrderGiveTheSameBits) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kInt8, CodecId::kOneBit}) {
    for (const int partitions : {1, 3, 9}) {
      Job job = NesterovJob(codec);
      job.experiment.sync.partitions = partitions;
      job.experiment.sync.warmup_samples = 20;
      Shards reference(job, 1);
      reference.Initialise();
      constexpr int64_t kRounds = 3;
      for (int64_t r = 0; r < kRounds; ++r) reference.RunRound(r);

      for (uint64_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(std::string(WordOf(codec)) + ", seed " + std::to_string(seed));
        Rng rng(seed, RngPurpose::kTest);
        Shards shards(job, 1 + static_cast<int>(rng.NextBelow(3)));
        shards.Initialise();
        for (int64_t r = 0; r < kRounds; ++r) {
          std::vector<Message> pushes;
          for (const Chunk& chunk : shards.map().chunks()) {
            for (int p = 0; p < partitions; ++p) {
              pushes.push_back(PushMessage(job, chunk, r, p));
              if (rng.NextBelow(3) == 0) pushes.push_back(pushes.back());  // arrives twice
            }
          }
          for (size_t i = pushes.size(); i > 1; --i) {
            std::swap(pushes[i - 1], pushes[rng.NextBelow(i)]);
          }
          for (const Message& push : pushes) {
            ASSERT_TRUE(shards.Send(push).ok());
            if (rng.NextBelow(4) == 0) shards.Compute(&rng);
          }
          shards.Compute(&rng);
        }
        for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
          ASSERT_EQ(shards.Pull(kRounds, vector), reference.Pull(kRounds, vector));
        }
      }
    }
  }
}

TEST(Shard, ContributionsAreAveragedByTheirSamples) {
  Job job = SmallJob();
  job.experiment.block.rule = BlockRule::kAverage;
  Shards shards(job, 2);
  shards.Initialise();
  const int64_t last = 3;  // 8 samples: slices of 3, 3 and 2
  for (int64_t r = 0; r < last; ++r) shards.RunRound(r);
  const std::vector<float> before = shards.Pull(last, wire::START);
  shards.RunRound(last);
  const std::vector<float> after = shards.Pull(last + 1, wire::START);
  std::vector<double> sum(before.size());
  for (int p = 0; p < 3; ++p) {
    for (const Chunk& chunk : shards.map().chunks()) {
      const Message push = PushMessage(job, chunk, last, p);
      ASSERT_EQ(push.header.samples(), p < 2 ? 3 : 2);
      const std::vector<float> numbers = UnpackFloats(push.payload);
      for (size_t i = 0; i < numbers.size(); ++i) {
        sum[chunk.range.begin + i] += static_cast<double>(push.header.samples()) * numbers[i];
      }
    }
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(after[i], before[i] - sum[i] / 8, 1e-6) << i;
}

TEST(Shard, ASecondContributionIsAcknowledgedAndDroppedWhateverItHolds) {
  const Job job = SmallJob();
  Shards reference(job, 1);
  reference.Initialise();
  reference.RunRound(0);
  Shards shards(job, 1);
  shards.Initialise();
  shards.sent.clear();
  for (int p = 0; p < 3; ++p) {
    for (const Chunk& chunk : shards.map().chunks()) {
      const Message push = PushMessage(job, chunk, 0, p);
      Message other = PushMessage(job, chunk, 0, (p + 1) % 3);  // other numbers
      other.header.set_partition(p);
      ASSERT_TRUE(shards.Send(push).ok());
      ASSERT_TRUE(shards.Send(other).ok());
    }
  }
  shards.Compute();
  for (const Chunk& chunk : shards.map().chunks()) {  // of a round that is over
    ASSERT_TRUE(shards.Send(PushMessage(job, chunk, 0, 1)).ok());
  }
  const int chunks = static_cast<int>(shards.map().chunks().size());
  EXPECT_EQ(CountSent(shards, wire::ACK), 7 * chunks);
  EXPECT_EQ(shards.Pull(1, wire::START), reference.Pull(1, wire::START));
}

TEST(Shard, AnAcknowledgementNamesWhatItAcknowledges) {
  const Job job = NesterovJob(CodecId::kOneBit);
  Shards shards(job, 1);
  shards.Initialise();
  shards.sent.clear();
  const Chunk& chunk = shards.map().chunks()[1];
  Message push = PushMessage(job, chunk, 0, 2);
  push.header.set_request(UINT64_MAX);  // whatever it is, it is only repeated
  ASSERT_TRUE(shards.Send(push, "worker/x/7").ok());
  ASSERT_EQ(shards.sent.size(), 1u);
  EXPECT_EQ(shards.sent[0].to, "worker/x/7");
  const wire::Header& ack = shards.sent[0].message.header;
  EXPECT_EQ(ack.type(), wire::ACK);
  EXPECT_EQ(ack.acknowledges(), wire::PUSH);
  EXPECT_EQ(ack.request(), UINT64_MAX);
  EXPECT_EQ(ack.round(), 0);
  EXPECT_EQ(ack.partition(), 2);
  EXPECT_EQ(ack.chunk(), 1);
}

TEST(Shard, WrongContributionsAreRefusedAndChangeNothing) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kInt8, CodecId::kOneBit, CodecId::kBf16}) {
    SCOPED_TRACE(WordOf(codec));
    const Job job = NesterovJob(codec);
    Shards reference(job, 2);
    reference.Initialise();
    reference.RunRound(0);

    Shards shards(job, 2);
    shards.Initialise();
    const auto refused = [&](StatusCode code, const Chunk& chunk, auto change) {
      Message push = PushMessage(job, chunk, 0, 1, true);
      change(&push);
      shards.sent.clear();
      const Status status = shards.Send(push, "worker/bad/1", chunk.server);
      EXPECT_EQ(status.code(), code) << status.message();
      EXPECT_TRUE(shards.sent.empty());
    };
    for (const Chunk& chunk : shards.map().chunks()) {
      constexpr StatusCode kBad = StatusCode::kInvalidArgument;
      for (const int64_t round :
           {int64_t{1}, int64_t{7}, int64_t{8}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
        refused(StatusCode::kAborted, chunk, [&](Message* m) { m->header.set_round(round); });
      }
      for (const int partition : {-1, 3, INT32_MAX, INT32_MIN}) {
        refused(kBad, chunk, [&](Message* m) { m->header.set_partition(partition); });
      }
      const int elsewhere = chunk.server == 0 ? shards.map().FirstChunk(1) : 0;
      for (const int index : {-1, elsewhere, 1000, INT32_MAX}) {
        refused(kBad, chunk, [&](Message* m) { m->header.set_chunk(index); });
      }
      for (const uint32_t other : {0u, 2u, 77u, UINT32_MAX}) {
        refused(kBad, chunk, [&](Message* m) { m->header.set_codec(other); });
      }
      for (const int64_t samples : {int64_t{0}, int64_t{7}, int64_t{-8}, INT64_MAX}) {
        refused(kBad, chunk, [&](Message* m) { m->header.set_samples(samples); });
      }
      for (const int64_t weight : {int64_t{-1}, (int64_t{1} << 40) + 1, INT64_MAX, INT64_MIN}) {
        refused(kBad, chunk, [&](Message* m) { m->header.set_weight(weight); });
      }
      refused(kBad, chunk, [](Message* m) { m->payload = {}; });
      refused(kBad, chunk, [](Message* m) {
        m->payload.bytes = m->payload.bytes.first(m->payload.bytes.size() - 1);
      });
      refused(kBad, chunk, [](Message* m) {
        const std::vector<float> zeros(5000);
        m->payload = PackFloats(zeros);
      });
      refused(kBad, chunk, [](Message* m) {  // all ones are no numbers, or infinite scales
        auto ones =
            std::make_shared<std::vector<std::byte>>(m->payload.bytes.size(), std::byte{0xFF});
        m->payload = {ones, std::span<const std::byte>(*ones)};
      });
    }
    EXPECT_FALSE(shards.HasWork());
    shards.RunRound(0);
    EXPECT_EQ(shards.Pull(1, wire::START), reference.Pull(1, wire::START));
    EXPECT_TRUE(shards.saved.empty());  // the refused ones asked for it
  }
}

TEST(Shard, APartitionWithoutSamplesContributesNothing) {
  Job job = SmallJob();
  job.spec.train_samples = 2;  // one sample for partitions 0 and 1, none for 2
  Shards shards(job, 1);
  shards.Initialise();
  for (int p : {2, 1, 0}) {
    for (const Chunk& chunk : shards.map().chunks()) {
      const Message push = PushMessage(job, chunk, 0, p);
      ASSERT_EQ(push.payload.empty(), p == 2);
      ASSERT_TRUE(shards.Send(push).ok());
    }
  }
  shards.Compute();
  EXPECT_EQ(shards.Report(0).version(), 1);
}

TEST(Shard, SaysWhomARoundWaitsFor) {
  const Job job = SmallJob();
  Shards shards(job, 1);
  EXPECT_THAT(shards.Report(0).waits_for(), HasSubstr("initial"));
  EXPECT_EQ(shards.Report(0).version(), -1);
  shards.Initialise();
  shards.RunRound(0);
  for (const Chunk& chunk : shards.map().chunks()) {
    ASSERT_TRUE(shards.Send(PushMessage(job, chunk, 1, 1)).ok());
  }
  shards.Compute();
  EXPECT_THAT(shards.Report(0).waits_for(), HasSubstr("partition 0, 2 of round 1"));
  for (int64_t r = 1; r < job.plan().rounds(); ++r) shards.RunRound(r);
  EXPECT_EQ(shards.Report(0).waits_for(), "");
}

TEST(Shard, AServerWithoutChunksHoldsNobodyUp) {
  Job job = SmallJob();
  Shards shards(job, 12);  // 5 chunks
  const int idle = 11;
  int empty = 0;
  for (int s = 0; s < 12; ++s) {
    if (shards.map().FirstChunk(s) != shards.map().FirstChunk(s + 1)) continue;
    ++empty;
    EXPECT_EQ(shards.Report(s).version(), job.plan().rounds());
    EXPECT_EQ(shards.Report(s).waits_for(), "");
    EXPECT_TRUE(shards.Restore({3, {}}).code() == StatusCode::kDataLoss);
  }
  ASSERT_GE(empty, 1);
  EXPECT_FALSE(shards.Send(PullMessage(0, 0), "worker/w/1", idle).ok());
}

// --- Initial weights.

TEST(Shard, TheFirstInitialWeightsCountAndAreChecked) {
  const Job job = SmallJob();
  Shards shards(job, 1);
  const Chunk& chunk = shards.map().chunks()[1];
  Message message = InitialiseMessage(chunk, 1);
  message.payload.bytes = message.payload.bytes.first(message.payload.bytes.size() - 4);
  EXPECT_EQ(shards.Send(message).code(), StatusCode::kInvalidArgument);
  message.payload = {};
  EXPECT_EQ(shards.Send(message).code(), StatusCode::kInvalidArgument);
  std::vector<float> numbers(chunk.range.size());
  numbers[100] = std::numeric_limits<float>::quiet_NaN();
  message.payload = PackFloats(numbers);
  EXPECT_EQ(shards.Send(message).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(shards.Report(0).version(), -1);

  shards.Initialise(1);
  const std::vector<float> first = shards.Pull(0, wire::START);
  shards.sent.clear();
  shards.Initialise(2);
  EXPECT_EQ(CountSent(shards, wire::ACK), static_cast<int>(shards.map().chunks().size()));
  EXPECT_EQ(shards.Pull(0, wire::START), first);
}

// --- Pulls.

TEST(Shard, AParkedPullIsAnsweredOnceWhenItsVersionExists) {
  const Job job = SmallJob();
  Shards shards(job, 1);
  ASSERT_TRUE(shards.Send(PullMessage(0, 0), "worker/a/1").ok());  // before there are weights
  EXPECT_TRUE(shards.sent.empty());
  shards.Initialise();
  EXPECT_EQ(CountSent(shards, wire::CHUNK), 1);
  shards.sent.clear();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(shards.Send(PullMessage(0, 1), "worker/a/1").ok());
    ASSERT_TRUE(shards.Send(PullMessage(0, 1), "worker/b/1").ok());
    ASSERT_TRUE(shards.Send(PullMessage(0, 1, wire::WEIGHTS), "worker/b/1").ok());
    ASSERT_TRUE(shards.Send(PullMessage(0, 1), "worker/gone/1").ok());
  }
  EXPECT_TRUE(shards.sent.empty());
  shards.shard(0).Forget("worker/gone/1");
  shards.RunRound(0);
  std::vector<PeerName> answered;
  for (const SendAction& s : shards.sent) {
    if (s.message.header.type() == wire::CHUNK) answered.push_back(s.to);
  }
  EXPECT_THAT(answered, testing::UnorderedElementsAre("worker/a/1", "worker/b/1", "worker/b/1"));
  shards.sent.clear();
  shards.RunRound(1);
  EXPECT_EQ(CountSent(shards, wire::CHUNK), 0);
}

TEST(Shard, EveryAnswerRepeatsTheNumberOfWhatItAnswers) {
  const Job job = NesterovJob();
  Shards shards(job, 1);
  shards.Initialise();
  shards.sent.clear();
  const auto pull = [&](int64_t version, wire::Vector vector, uint64_t request) {
    Message message = PullMessage(2, version, vector);
    message.header.set_request(request);
    ASSERT_TRUE(shards.Send(message, "worker/a/1").ok());
  };
  using Answer = std::tuple<wire::Type, wire::Vector, uint64_t>;
  const auto answers = [&] {
    std::vector<Answer> all;
    for (const SendAction& s : std::exchange(shards.sent, {})) {
      const wire::Header& header = s.message.header;
      if (header.type() != wire::ACK) {
        all.emplace_back(header.type(), header.vector(), header.request());
      }
    }
    return all;
  };
  pull(0, wire::START, 5);
  EXPECT_THAT(answers(), testing::ElementsAre(Answer(wire::CHUNK, wire::START, 5)));
  pull(1, wire::START, 6);
  pull(1, wire::WEIGHTS, 7);
  pull(1, wire::START, 6);  // repeated
  pull(1, wire::WEIGHTS, 9);
  EXPECT_TRUE(answers().empty());
  shards.RunRound(0);
  EXPECT_THAT(answers(), testing::UnorderedElementsAre(Answer(wire::CHUNK, wire::START, 6),
                                                       Answer(wire::CHUNK, wire::WEIGHTS, 9)));
  shards.RunRound(1);
  shards.RunRound(2);
  pull(0, wire::WEIGHTS, 10);
  EXPECT_THAT(answers(), testing::ElementsAre(Answer(wire::GONE, wire::WEIGHTS, 10)));
}

TEST(Shard, APeerParksNoMoreThanAPullOfEachVector) {
  // The field of the vector is open: a peer can send any number in it.
  const Job job = SmallJob();
  Shards shards(job, 1);
  shards.Initialise();
  for (int vector = 0; vector < 1000; ++vector) {
    (void)shards.Send(PullMessage(0, 1, static_cast<wire::Vector>(vector)), "worker/bad/1");
  }
  shards.sent.clear();
  shards.RunRound(0);
  EXPECT_LE(CountSent(shards, wire::CHUNK), 2);
}

TEST(Shard, TheVersionBeforeIsStillThereOlderOnesAreGoneLaterOnesAbort) {
  const Job job = NesterovJob();
  Shards shards(job, 1);
  shards.Initialise();
  shards.RunRound(0);
  shards.RunRound(1);
  const std::vector<float> start = shards.Pull(2, wire::START);
  const std::vector<float> weights = shards.Pull(2, wire::WEIGHTS);
  shards.RunRound(2);
  EXPECT_EQ(shards.Pull(2, wire::START), start);
  EXPECT_EQ(shards.Pull(2, wire::WEIGHTS), weights);
  for (const int64_t version : {int64_t{0}, int64_t{1}}) {
    shards.sent.clear();
    ASSERT_TRUE(shards.Send(PullMessage(3, version)).ok());
    ASSERT_EQ(shards.sent.size(), 1u);
    EXPECT_EQ(shards.sent[0].message.header.type(), wire::GONE);
    EXPECT_EQ(shards.sent[0].message.header.round(), 2);  // the oldest that there is
    EXPECT_EQ(shards.sent[0].message.header.chunk(), 3);
  }
  for (const int64_t version : {int64_t{5}, int64_t{1000}, INT64_MAX, int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(shards.Send(PullMessage(3, version)).code(), StatusCode::kAborted) << version;
  }
}

TEST(Shard, TheLastVersionIsTheEnd) {
  const Job job = SmallJob();
  Shards shards(job, 1);
  shards.Initialise();
  const int64_t rounds = job.plan().rounds();
  for (int64_t r = 0; r < rounds; ++r) shards.RunRound(r);
  EXPECT_EQ(shards.Report(0).version(), rounds);
  EXPECT_EQ(shards.Pull(rounds, wire::START).size(), static_cast<size_t>(job.spec.layout.size()));
  EXPECT_EQ(shards.Send(PullMessage(0, rounds + 1)).code(), StatusCode::kAborted);
  Message push = PushMessage(job, shards.map().chunks()[0], rounds - 1, 0);
  push.header.set_round(rounds);
  EXPECT_EQ(shards.Send(push).code(), StatusCode::kAborted);
}

TEST(Shard, AnAnswerIsNotWrittenToByLaterRounds) {
  // Arrays are used again for later versions, but not while a message holds them.
  const Job job = NesterovJob();
  Shards shards(job, 1);
  shards.Initialise();
  std::vector<std::pair<Payload, std::vector<float>>> answers;
  for (int64_t r = 0; r < 5; ++r) {
    // Also of the version before, while the round's work waits to run.
    for (int p = 0; p < 3; ++p) {
      for (const Chunk& chunk : shards.map().chunks()) {
        ASSERT_TRUE(shards.Send(PushMessage(job, chunk, r, p)).ok());
      }
    }
    ASSERT_TRUE(shards.HasWork());
    shards.sent.clear();
    for (const int64_t version : {r - 1, r}) {
      if (version < 0) continue;
      for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
        for (const Chunk& chunk : shards.map().chunks()) {
          ASSERT_TRUE(shards.Send(PullMessage(chunk.index, version, vector)).ok());
        }
      }
    }
    for (const SendAction& s : shards.sent) {
      if (s.message.header.type() != wire::CHUNK) continue;
      answers.emplace_back(s.message.payload, UnpackFloats(s.message.payload));
    }
    shards.sent.clear();
    shards.Compute();
    for (const auto& [payload, numbers] : answers) {
      ASSERT_EQ(UnpackFloats(payload), numbers) << "after round " << r;
    }
    if (r % 2 == 1) answers.clear();  // now and then the arrays are free again
  }
}

// --- Chunk 0 and the coordinator.

TEST(Shard, EachVersionIsObservedOnceWithItsSumsAndItsDirectiveTravelsWithChunk0) {
  const Job job = SmallJob();
  Shards shards(job, 2);
  shards.directive = [](int64_t version) { return Directive{version % 2 == 1, version == 3}; };
  shards.Initialise();
  ASSERT_EQ(shards.observed.size(), 1u);
  EXPECT_EQ(shards.observed[0].second.samples, 0);
  for (int64_t r = 0; r < 4; ++r) {
    shards.RunRound(r);
    ASSERT_EQ(shards.observed.size(), static_cast<size_t>(r + 2));
    const auto& [version, metrics] = shards.observed.back();
    EXPECT_EQ(version, r + 1);
    EXPECT_EQ(metrics.samples, job.plan().Round(r).samples.size());
    EXPECT_EQ(test::LossSum(metrics), 0.1 * 1 + 0.1 * 2 + 0.1 * 3);  // in partition order
    EXPECT_EQ(test::Correct(metrics), 3);
    for (const Chunk& chunk : shards.map().chunks()) {
      shards.sent.clear();
      ASSERT_TRUE(shards.Send(PullMessage(chunk.index, r + 1)).ok());
      const wire::Header& header = shards.sent.at(0).message.header;
      EXPECT_EQ(header.save(), chunk.index == 0 && (r + 1) % 2 == 1);
      EXPECT_EQ(header.stop(), chunk.index == 0 && r + 1 == 3);
    }
  }
}

// --- Hostile peers.

Message RandomMessage(const Job& job, const ShardMap& map, Rng* rng) {
  const auto wild = [&](int64_t sensible) -> int64_t {
    const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 1 << 20};
    if (rng->NextBelow(4) == 0) return extremes[rng->NextBelow(6)];
    return static_cast<int64_t>(rng->NextBelow(sensible));
  };
  const Chunk& chunk = map.chunks()[rng->NextBelow(map.chunks().size())];
  const int64_t round = static_cast<int64_t>(rng->NextBelow(job.plan().rounds()));
  const int partition = static_cast<int>(rng->NextBelow(3));
  Message message = PushMessage(job, chunk, round, partition, rng->NextBelow(8) == 0);
  const wire::Type types[] = {wire::PUSH, wire::PULL, wire::PUT_STATE, wire::GET_STATE,
                              wire::INITIALISE};
  message.header.set_type(rng->NextBelow(2) ? wire::PUSH : types[rng->NextBelow(5)]);
  if (rng->NextBelow(20) == 0) message.header.set_type(static_cast<wire::Type>(wild(40)));
  if (message.header.type() == wire::PUT_STATE) {
    message.payload = PackFloats(std::vector<float>(chunk.range.size()));
  }
  for (int i = static_cast<int>(rng->NextBelow(3)); i > 0; --i) {
    wire::Header& header = message.header;
    switch (rng->NextBelow(8)) {
      case 0:
        header.set_round(wild(10));
        break;
      case 1:
        header.set_partition(static_cast<int32_t>(wild(4)));
        break;
      case 2:
        header.set_chunk(static_cast<int32_t>(wild(6)));
        break;
      case 3:
        header.set_codec(static_cast<uint32_t>(wild(7)));
        break;
      case 4:
        header.set_samples(wild(9));
        header.set_weight(wild(9));
        break;
      case 5:
        header.set_carried_array(static_cast<int32_t>(wild(2)));
        break;
      case 6:
        header.set_vector(static_cast<wire::Vector>(wild(3)));
        break;
      default:
        message.payload = PackFloats(std::vector<float>(rng->NextBelow(600)));
    }
  }
  return message;
}

// Each partition's statistics are a running mean of those of its minibatch, begun at the version
// that it trains from. With a delay that is an older one; what is made of them must be a mean
// still.
TEST(Shard, StatisticsStayBetweenTheirStartAndWhatTheyAreOf) {
  constexpr float kOfMinibatches = 0.01f, kMomentum = 0.5f;
  for (const double average_samples : {0.0, 12.0}) {
    for (const int delay : {0, 1, 3, 8}) {
      Job job = test::DelayedJob(delay);
      job.experiment.job.epochs = 8;
      job.experiment.evaluation.average_samples = average_samples;
      Shards shards(job, 1);
      const Range range = job.spec.layout.segment(Segment::kStatistics);
      for (const Chunk& chunk : shards.map().chunks()) {
        Message message = InitialiseMessage(chunk, 1);
        message.payload = PackFloats(std::vector<float>(chunk.range.size(), 1.0f));
        ASSERT_TRUE(shards.Send(message).ok());
      }
      const JobPlan plan = job.plan();
      for (int64_t round = 0; round < plan.rounds(); ++round) {
        const std::vector<float> base = shards.Pull(plan.BaseOf(round), wire::START);
        for (int p = 0; p < job.experiment.sync.partitions; ++p) {
          for (const Chunk& chunk : shards.map().chunks()) {
            Message push = PushMessage(job, chunk, round, p);
            if (chunk.segment == Segment::kStatistics && !push.payload.bytes.empty()) {
              std::vector<float> way;
              for (int64_t i = range.begin; i < range.end; ++i) {
                way.push_back(kMomentum * (base[i] - kOfMinibatches));
              }
              push.payload = PackFloats(way);
            }
            ASSERT_TRUE(shards.Send(push).ok());
          }
        }
        shards.Compute();
        for (const wire::Vector vector : {wire::START, wire::WEIGHTS}) {
          const std::vector<float> all = shards.Pull(round + 1, vector);
          for (int64_t i = range.begin; i < range.end; ++i) {
            ASSERT_GE(all[i], 0.99f * kOfMinibatches) << delay << " at version " << round + 1;
            ASSERT_LE(all[i], 1.0f) << delay << " at version " << round + 1;
          }
        }
      }
      EXPECT_LT(shards.Pull(plan.rounds(), wire::WEIGHTS)[range.begin], 0.5f);
    }
  }
}

TEST(Shard, RandomMessagesNeitherCrashItNorStopTheRounds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, RngPurpose::kTest);
    const Job job = NesterovJob(seed % 2 ? CodecId::kOneBit : CodecId::kFp32);
    Shards shards(job, 1 + static_cast<int>(seed % 3));
    if (seed % 4) shards.Initialise();
    for (int i = 0; i < 2000; ++i) {
      const Message message = RandomMessage(job, shards.map(), &rng);
      shards.sent.clear();
      (void)shards.Send(message, "worker/" + std::to_string(rng.NextBelow(3)) + "/1",
                        static_cast<int>(rng.NextBelow(shards.servers())));
      ASSERT_LE(shards.sent.size(), 10u);
      if (rng.NextBelow(10) == 0) shards.Compute(&rng);
    }
    shards.Compute();
    // A well-behaved worker can still finish the job.
    shards.Initialise();
    for (int64_t r = 0; r < job.plan().rounds(); ++r) shards.RunRound(r);
    for (int s = 0; s < shards.servers(); ++s) {
      EXPECT_EQ(shards.Report(s).version(), job.plan().rounds());
    }
  }
}

}  // namespace
}  // namespace kumo
