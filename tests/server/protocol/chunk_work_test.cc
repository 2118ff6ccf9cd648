#include "server/protocol/chunk_work.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr size_t kWorkNumbers = 1300;  // some buckets, some tiles, none of them whole

FloatArray RandomArray(uint64_t stream) {
  auto array = std::make_shared<Buffer<float>>(kWorkNumbers);
  Rng rng(1, RngPurpose::kTest, stream);
  for (float& x : array->span()) x = rng.NextNormal();
  return array;
}

std::vector<float> Copy(const FloatArray& array) {
  return {array->span().begin(), array->span().end()};
}

CodedContribution Contribution(const Codec& codec, int partition) {
  const FloatArray numbers = RandomArray(100 + partition);
  auto coded = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(kWorkNumbers));
  EXPECT_EQ(codec.Encode(numbers->span(), {}, coded->span()), -1);
  return {5 + partition, &codec, std::as_const(*coded).span(), coded};
}

ChunkWork Closing(const Rule& rule, const FloatArray& start, int samples) {
  ChunkWork work;
  work.elements = kWorkNumbers;
  work.rule = {std::shared_ptr<void>(), &rule};  // borrowed
  work.info.samples = samples;
  work.info.partitions = 6;
  work.current.start = work.current.weights = start;
  work.next.start = work.next.weights = MakeArray(kWorkNumbers);
  for (int i = 0; i < rule.slots(); ++i) work.next.slots.push_back(RandomArray(50 + i));
  return work;
}

std::unique_ptr<Rule> MomentumRule() {
  Result<std::unique_ptr<Rule>> rule = MakeBlockRule(BlockRuleSettings{}, 6, 60);
  CHECK(rule.ok()) << rule.status().message();
  return std::move(rule).value();
}

TEST(ChunkWork, AddingInPartsGivesTheBitsOfAddingAtOnce) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  const FloatArray start = RandomArray(1);
  for (const Codec* codec : AllCodecs()) {
    std::vector<CodedContribution> all;
    int samples = 0;
    for (int p = 0; p < 6; ++p) {
      all.push_back(Contribution(*codec, p));
      samples += static_cast<int>(all.back().weight);
    }
    ChunkWork whole = Closing(*rule, start, samples);
    whole.contributions = all;
    whole.Run();

    for (int cut = 1; cut < 6; ++cut) {
      ChunkWork first;
      first.elements = kWorkNumbers;
      first.sum = RandomArray(7);  // of an earlier round: to be overwritten
      first.contributions.assign(all.begin(), all.begin() + cut);
      ASSERT_FALSE(first.closes());
      first.Run();
      ChunkWork second = Closing(*rule, start, samples);
      second.sum = first.sum;
      second.sum_holds_contributions = true;
      second.contributions.assign(all.begin() + cut, all.end());
      second.Run();
      ASSERT_EQ(Copy(second.next.start), Copy(whole.next.start)) << codec->name() << " " << cut;
      ASSERT_EQ(Copy(second.next.slots[0]), Copy(whole.next.slots[0]));
    }
  }
}

TEST(ChunkWork, LeavesTheVersionThatIsReadAlone) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  const FloatArray start = RandomArray(1);
  ChunkWork work = Closing(*rule, start, 5);
  work.contributions = {Contribution(CodecOf(CodecId::kFp32), 0)};
  work.Run();
  EXPECT_EQ(Copy(start), Copy(RandomArray(1)));
  EXPECT_NE(Copy(work.next.start), Copy(start));
}

TEST(ChunkWork, ARoundWithoutSamplesChangesNothing) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  const FloatArray start = RandomArray(1);
  ChunkWork work = Closing(*rule, start, 0);
  work.Run();
  EXPECT_EQ(Copy(work.next.start), Copy(start));
  EXPECT_EQ(Copy(work.next.slots[0]), Copy(RandomArray(50)));
}

TEST(ChunkWork, CodesTheStartAndCopiesTheSlotsWhereItIsAskedTo) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  ChunkWork work = Closing(*rule, RandomArray(1), 5);
  work.contributions = {Contribution(CodecOf(CodecId::kFp32), 0)};
  work.pull_codec = &CodecOf(CodecId::kFp16);
  work.freeze = true;
  work.Run();
  ASSERT_EQ(work.frozen.slots.size(), 1u);
  EXPECT_NE(work.frozen.slots[0], work.next.slots[0]);
  EXPECT_EQ(Copy(work.frozen.slots[0]), Copy(work.next.slots[0]));
  ASSERT_TRUE(work.next.coded);
  EXPECT_EQ(work.first_bad, -1);
  std::vector<float> decoded(kWorkNumbers);
  work.pull_codec->Decode(std::as_const(*work.next.coded).span(), kWorkNumbers, 0, decoded);
  for (size_t i = 0; i < kWorkNumbers; ++i) {
    ASSERT_NEAR(decoded[i], (*work.next.start)[i], 1e-3f * (1 + std::abs(decoded[i])));
  }
}

TEST(ChunkWork, WhatADifferenceHasLostComesWithTheNext) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  for (const Codec* codec : AllCodecs()) {
    if (codec->codes_weights() || !codec->traits().codes_pulls) continue;
    // So much that 20 rounds send every number.
    if (codec->traits().selects) codec = &CodecOf(codec->id(), {.kept = 410});
    const std::vector<float> before = Copy(RandomArray(1));
    ChunkWork work = Closing(*rule, RandomArray(1), 5);
    work.contributions = {Contribution(CodecOf(CodecId::kFp32), 0)};
    work.pull_codec = codec;
    work.next.worker_copy = MakeArray(kWorkNumbers);
    work.Run();
    const std::vector<float> start = Copy(work.next.start);
    std::vector<float> expected = before;
    work.pull_codec->DecodeAdd(std::as_const(*work.next.coded).span(), kWorkNumbers, 0, 1.0f,
                               expected);
    EXPECT_EQ(Copy(work.next.worker_copy), expected);
    // A round that moves nothing more: differences go on until nothing is missing.
    double missing = 0, still_missing = 0;
    for (size_t i = 0; i < kWorkNumbers; ++i) {
      missing += std::abs(static_cast<double>(start[i] - expected[i]));
    }
    ASSERT_GT(missing, 0);
    for (int round = 0; round < 20; ++round) {
      ChunkWork rest = Closing(*rule, work.next.start, 0);
      rest.current.worker_copy = work.next.worker_copy;
      rest.pull_codec = work.pull_codec;
      rest.next.worker_copy = MakeArray(kWorkNumbers);
      rest.Run();
      ASSERT_EQ(Copy(rest.next.start), start);
      work = std::move(rest);
    }
    for (size_t i = 0; i < kWorkNumbers; ++i) {
      still_missing += std::abs(static_cast<double>(start[i] - (*work.next.worker_copy)[i]));
    }
    // Numbers below 4/3 sigma wait until others have shrunk sigma, if a step is 8/3 sigma.
    const double share = codec->id() == CodecId::kTwoBitCntk ? 0.9 : 0.5;
    EXPECT_LT(still_missing, share * missing) << codec->name();
  }
}

}  // namespace
}  // namespace kumo
