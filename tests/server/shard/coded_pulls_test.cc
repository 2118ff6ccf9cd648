// Coded pulls: weights in a codec, differences to a copy that all workers hold, and who gets which.
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/round_math.h"
#include "server/shard/shard.h"
#include "server/shard/shard_chunk.h"
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

TEST(CodedPulls, InFp16AreTheStartVectorRounded) {
  Job job = NesterovJob();
  job.experiment.sync.pull_codec = CodecId::kFp16;
  Shards coded(job, 2);
  Shards exact(NesterovJob(), 2);
  for (Shards* shards : {&coded, &exact}) {
    shards->Initialise();
    shards->RunRound(0);
    shards->RunRound(1);
  }
  const Codec& fp16 = CodecOf(CodecId::kFp16);
  const std::vector<float> start = exact.Pull(2, wire::START);
  const std::vector<float> got = coded.Pull(2, wire::START);
  const Range statistics = job.spec.layout.segment(Segment::kStatistics);
  for (size_t i = 0; i < start.size(); ++i) {
    std::byte bytes[2];
    float rounded = start[i];
    if (static_cast<int64_t>(i) < statistics.begin) {
      ASSERT_EQ(fp16.Encode({&start[i], 1}, {}, bytes), -1);
      fp16.Decode(bytes, 1, 0, {&rounded, 1});
    }
    ASSERT_EQ(got[i], rounded) << i;
  }
  EXPECT_EQ(coded.Pull(2, wire::WEIGHTS), exact.Pull(2, wire::WEIGHTS));
}

// A worker that follows the weights by pulls.
struct Reader {
  // Returns how many chunks came as differences; `same`: as nothing, since they have not changed.
  int Pull(Shards* shards, int64_t version) {
    int differences = 0;
    held.resize(shards->job().spec.layout.size());
    for (const Chunk& chunk : shards->map().chunks()) {
      Message pull = PullMessage(chunk.index, version);
      if (at >= 0) pull.header.set_base(at);
      shards->sent.clear();
      EXPECT_TRUE(shards->Send(pull, "worker/reader/1").ok());
      const Message& reply = shards->sent.at(0).message;
      const Codec& codec = **FindCodec(reply.header.codec());
      const std::span<float> to =
          std::span<float>(held).subspan(chunk.range.begin, chunk.range.size());
      if (reply.header.has_base() && reply.payload.empty()) {
        ++same;
        continue;
      }
      EXPECT_EQ(reply.header.has_base(), !codec.codes_weights());
      if (reply.header.has_base()) {
        EXPECT_EQ(reply.header.base(), at);
      }
      const RoundPolicy policy(shards->job().experiment, shards->job().spec.layout, shards->map());
      const auto relay = policy.RelayOf(shards->job().plan(), version, chunk);
      if (reply.header.has_base() && relay) {
        Step(*relay, reply.payload.bytes, to);
        ++differences;
      } else if (reply.header.has_base()) {
        codec.DecodeAdd(reply.payload.bytes, to.size(), 0, 1.0f, to);
        ++differences;
      } else {
        codec.Decode(reply.payload.bytes, to.size(), 0, to);
      }
    }
    at = version;
    return differences;
  }

  // w' = w - sum of samples * contribution / samples.
  static void Step(const Relay& relay, std::span<const std::byte> bytes, std::span<float> weights) {
    ASSERT_EQ(bytes.size(), relay.EncodedBytes(weights.size()));
    const size_t length = bytes.size() / relay.samples.size();
    std::vector<float> sum(weights.size());
    for (size_t i = 0; i < relay.samples.size(); ++i) {
      relay.codec->DecodeAdd(bytes.subspan(i * length, length), sum.size(), 0,
                             static_cast<float>(relay.samples[i]), sum);
    }
    const float scale = 1.0f / static_cast<float>(relay.round_samples);
    for (size_t i = 0; i < sum.size(); ++i) weights[i] -= scale * sum[i];
  }

  std::vector<float> held;
  int64_t at = -1;
  int same = 0;
};

// A job whose contributions are relayed: of 3 chunks with 3 groups of topk.
Job RelayingJob() {
  Job job = SmallJob();
  std::vector<TensorSpec> tensors = test::SmallTensors();
  tensors[0].shape = {300, 30};
  job.spec.layout = ParameterLayout::Make(tensors).value();
  Experiment& e = job.experiment;
  e.cluster.chunk_kib = 16;
  e.sync.push_codec = CodecId::kTopk;
  e.sync.pull_codec = CodecId::kFp16;
  e.block.rule = BlockRule::kAverage;
  return job;
}

TEST(CodedPulls, DifferencesLeadAWorkerToTheBitsThatOthersGetAsAWhole) {
  for (const CodecId codec : {CodecId::kOneBit, CodecId::kInt8, CodecId::kBf16}) {
    SCOPED_TRACE(std::string(WordOf(codec)));
    Job job = NesterovJob();
    job.experiment.sync.pull_codec = codec;
    Shards coded(job, 2);
    Shards exact(NesterovJob(), 2);
    coded.Initialise();
    exact.Initialise();
    Reader follower, late;
    EXPECT_EQ(follower.Pull(&coded, 0), 0);
    late.Pull(&coded, 0);
    for (int64_t version = 1; version <= 5; ++version) {
      coded.RunRound(version - 1);
      exact.RunRound(version - 1);
      EXPECT_GT(follower.Pull(&coded, version), 0);
      EXPECT_EQ(follower.held, coded.Pull(version, wire::START));
      if (version >= 4) {  // at 4 it is too far behind
        EXPECT_EQ(late.Pull(&coded, version) > 0, version == 5);
      }
      // The servers' own weights lose nothing, and are what is evaluated.
      EXPECT_EQ(coded.Pull(version, wire::WEIGHTS), exact.Pull(version, wire::WEIGHTS));
      EXPECT_NE(follower.held, exact.Pull(version, wire::START));
    }
    EXPECT_EQ(late.held, follower.held);
    // One that computes the round before again.
    Reader again;
    again.Pull(&coded, 4);
    EXPECT_GT(again.Pull(&coded, 5), 0);
    EXPECT_EQ(again.held, follower.held);
  }
}

// A version in which a chunk takes no part has its numbers, its difference and the copy of the
// version before.
TEST(CodedPulls, AChunkThatTookNoPartIsNotSentAgain) {
  for (const CodecId codec : {CodecId::kFp32, CodecId::kFp16, CodecId::kOneBit}) {
    SCOPED_TRACE(std::string(WordOf(codec)));
    Job job = NesterovJob();
    job.experiment.sync.pull_codec = codec;
    job.experiment.sync.block = 4;
    job.experiment.sync.fragments = 2;
    const JobPlan plan = job.plan();
    Shards coded(job, 2);
    coded.Initialise();
    Reader follower, slow;
    follower.Pull(&coded, 0);
    for (int64_t version = 1; version <= plan.rounds(); ++version) {
      int changed = 0;
      for (const Chunk& chunk : coded.map().chunks()) {
        if (JobPlan::TakesPart(plan.Round(version - 1), chunk)) ++changed;
      }
      const std::vector<float> before = coded.Pull(version - 1, wire::START);
      const std::vector<float> weights = coded.Pull(version - 1, wire::WEIGHTS);
      coded.RunRound(version - 1);
      for (const Chunk& chunk : coded.map().chunks()) {
        const bool takes_part = JobPlan::TakesPart(plan.Round(version - 1), chunk);
        const std::vector<float> now = coded.Pull(version, wire::START);
        const auto [at, size] = std::pair(chunk.range.begin, chunk.range.size());
        EXPECT_EQ(std::equal(&now[at], &now[at] + size, &before[at]), !takes_part);
        const std::vector<float> later = coded.Pull(version, wire::WEIGHTS);
        EXPECT_EQ(std::equal(&later[at], &later[at] + size, &weights[at]), !takes_part);
      }
      follower.same = 0;
      follower.Pull(&coded, version);
      EXPECT_EQ(follower.same, std::ssize(coded.map().chunks()) - changed) << version;
      EXPECT_EQ(follower.held, coded.Pull(version, wire::START)) << version;
      if (version % 2 == 0) continue;  // misses every other version
      slow.Pull(&coded, version);
      EXPECT_EQ(slow.held, follower.held) << version;
    }
  }
}

// The weights are the servers' own, to the bit: nothing is coded a second time.
TEST(CodedPulls, RelayedContributionsLeadAWorkerToTheServersBits) {
  Job job = RelayingJob();
  Shards relaying(job, 2);
  job.experiment.sync.relay = false;
  job.experiment.sync.pull_codec = CodecId::kFp32;
  Shards exact(job, 2);
  relaying.Initialise();
  exact.Initialise();
  Reader follower, late;
  EXPECT_EQ(follower.Pull(&relaying, 0), 0);
  late.Pull(&relaying, 0);
  for (int64_t version = 1; version <= relaying.job().plan().rounds(); ++version) {
    relaying.RunRound(version - 1);
    exact.RunRound(version - 1);
    const int64_t statistics = 1;
    EXPECT_EQ(follower.Pull(&relaying, version), std::ssize(relaying.map().chunks()) - statistics);
    EXPECT_EQ(follower.held, exact.Pull(version, wire::START));
    EXPECT_EQ(relaying.Pull(version, wire::START), follower.held);
    EXPECT_EQ(relaying.Pull(version, wire::WEIGHTS), follower.held);
    if (version % 3 != 0) continue;  // too far behind
    EXPECT_EQ(late.Pull(&relaying, version), 0);
    EXPECT_EQ(late.held, follower.held);
  }
}

// Passes over some of them would leave nothing to relay.
TEST(CodedPulls, ManyContributionsThatAreRelayedWaitForTheLastOne) {
  Job job = RelayingJob();
  job.experiment.sync.partitions = 13;
  job.experiment.sync.minibatch = 1;
  job.experiment.sync.block = 1;
  Shards shards(job, 1);
  shards.Initialise();
  Reader reader;
  reader.Pull(&shards, 0);
  for (int p = 0; p < 13; ++p) {
    for (const Chunk& chunk : shards.map().chunks()) {
      ASSERT_TRUE(shards.Send(PushMessage(job, chunk, 0, p)).ok());
    }
    shards.Compute();
  }
  EXPECT_GT(reader.Pull(&shards, 1), 0);
  EXPECT_EQ(reader.held, shards.Pull(1, wire::START));
}

// The bias has 30 numbers. Each of 20 partitions sends one of them: 160 bytes instead of 120.
TEST(CodedPulls, ContributionsOfMoreBytesThanTheWeightsAreNotRelayed) {
  Job job = RelayingJob();
  job.experiment.sync.partitions = 20;
  job.experiment.sync.minibatch = 1;
  job.experiment.sync.block = 1;
  Shards relaying(job, 2);
  job.experiment.sync.relay = false;
  job.experiment.sync.pull_codec = CodecId::kFp32;
  Shards exact(job, 2);
  relaying.Initialise();
  exact.Initialise();
  Reader follower;
  follower.Pull(&relaying, 0);
  for (int64_t version = 1; version <= 3; ++version) {
    relaying.RunRound(version - 1);
    exact.RunRound(version - 1);
    const int64_t statistics = 1, bias = 1;
    EXPECT_EQ(follower.Pull(&relaying, version),
              std::ssize(relaying.map().chunks()) - statistics - bias);
    EXPECT_EQ(follower.held, exact.Pull(version, wire::START));
  }
}

// What the readers got would be another number, or rubbish.
TEST(CodedPulls, WeightsThatACodedPullCannotHoldEndTheJobNamingTheTensor) {
  for (const float bad : {65505.0f, -1e9f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    Job job = SmallJob();
    job.experiment.block.rule = BlockRule::kAverage;
    job.experiment.sync.pull_codec = CodecId::kFp16;
    Shards shards(job, 2);
    shards.Initialise();
    shards.RunRound(0);
    const Chunk& chunk = shards.map().chunks()[1];  // of a.weight
    for (int p = 0; p < job.plan().settings().partitions; ++p) {
      Message push = PushMessage(job, chunk, 1, p);
      std::vector<float> numbers = UnpackFloats(push.payload);
      numbers[7] = std::isfinite(bad) ? -3 * bad : std::numeric_limits<float>::max();
      push.payload = PackFloats(numbers);
      ASSERT_TRUE(shards.Send(push).ok());
    }
    EXPECT_TRUE(shards.failures.empty());
    shards.Compute();
    ASSERT_EQ(shards.failures.size(), 1u);
    EXPECT_EQ(shards.failures[0].code(), StatusCode::kOutOfRange);
    EXPECT_THAT(shards.failures[0].message(),
                testing::AllOf(HasSubstr("2 rounds"), HasSubstr("tensor a.weight"),
                               HasSubstr("sync.pull_codec")));

    Shards never(job, 2);
    Message initialise = InitialiseMessage(chunk, 1);
    std::vector<float> numbers = UnpackFloats(initialise.payload);
    numbers[7] = bad;
    initialise.payload = PackFloats(numbers);
    EXPECT_FALSE(never.Send(initialise).ok());
    EXPECT_EQ(never.Send(initialise).code(),
              std::isfinite(bad) ? StatusCode::kOutOfRange : StatusCode::kInvalidArgument);
  }
}

// A partition that is computed again starts from what its first worker had pulled, also on a server
// that has taken both versions over.
TEST(CodedPulls, TheVersionBeforeIsCodedTooWhenVersionsAreTakenOver) {
  Job job = SmallJob();
  job.experiment.sync.pull_codec = CodecId::kFp16;
  const Shards shards(job, 1);
  const RoundMath math =
      RoundMath::Make(job.experiment, job.plan(), job.spec, shards.map(), 0).value();
  const Chunk& chunk = shards.map().chunks()[0];
  const auto filled = [&](float number) {
    Version version;
    version.start = version.weights = MakeArray(chunk.range.size());
    for (float& x : version.start->span()) x = number;
    return version;
  };
  ShardChunk taken_over(chunk, &math);
  ASSERT_TRUE(taken_over.Begin({{2, filled(0.3f)}, {3, filled(0.1f)}}).ok());
  for (const auto& [version, number] : {std::pair(2, 0.3f), std::pair(3, 0.1f)}) {
    StepContext context;
    const Message pull = PullMessage(chunk.index, version);
    ASSERT_TRUE(taken_over.OnPull("worker/w/1", pull.header, Directive(), &context).ok());
    const Message& reply = std::get<SendAction>(context.actions.at(0)).message;
    EXPECT_EQ(reply.header.codec(), static_cast<uint32_t>(CodecId::kFp16)) << version;
    float got = 0;
    CodecOf(CodecId::kFp16).Decode(reply.payload.bytes, chunk.range.size(), 0, {&got, 1});
    EXPECT_NEAR(got, number, 1e-3f);
  }
}

}  // namespace
}  // namespace kumo
