#include "server/shard/chunk_work.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace kumo {
namespace {

constexpr size_t kNumbers = 1300;  // some buckets, some tiles, none of them whole

FloatArray RandomArray(uint64_t stream) {
  auto array = std::make_shared<Buffer<float>>(kNumbers);
  Rng rng(1, RngPurpose::kTest, stream);
  for (float& x : array->span()) x = rng.NextNormal();
  return array;
}

std::vector<float> Copy(const FloatArray& array) {
  return {array->span().begin(), array->span().end()};
}

ArrivedContribution Contribution(const Codec& codec, int partition) {
  const FloatArray numbers = RandomArray(100 + partition);
  auto coded = std::make_shared<Buffer<std::byte>>(codec.EncodedBytes(kNumbers));
  EXPECT_EQ(codec.Encode(numbers->span(), {}, coded->span()), -1);
  return {5 + partition, &codec, {coded, std::as_const(*coded).span()}};
}

ChunkWork Closing(const Rule& rule, const FloatArray& start, int samples) {
  ChunkWork work;
  work.numbers = kNumbers;
  work.rule = {std::shared_ptr<void>(), &rule};  // borrowed
  work.info.samples = samples;
  work.info.partitions = 6;
  work.start = start;
  work.weights = start;
  work.next_start = work.next_weights = std::make_shared<Buffer<float>>(kNumbers);
  for (int i = 0; i < rule.slots(); ++i) work.slots.push_back(RandomArray(50 + i));
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
    std::vector<ArrivedContribution> all;
    int samples = 0;
    for (int p = 0; p < 6; ++p) {
      all.push_back(Contribution(*codec, p));
      samples += static_cast<int>(all.back().samples);
    }
    ChunkWork whole = Closing(*rule, start, samples);
    whole.contributions = all;
    whole.Run();

    for (int cut = 1; cut < 6; ++cut) {
      ChunkWork first;
      first.numbers = kNumbers;
      first.sum = RandomArray(7);  // of an earlier round: to be overwritten
      first.contributions.assign(all.begin(), all.begin() + cut);
      ASSERT_FALSE(first.closes());
      first.Run();
      ChunkWork second = Closing(*rule, start, samples);
      second.sum = first.sum;
      second.sum_holds_numbers = true;
      second.contributions.assign(all.begin() + cut, all.end());
      second.Run();
      ASSERT_EQ(Copy(second.next_start), Copy(whole.next_start)) << codec->name() << " " << cut;
      ASSERT_EQ(Copy(second.slots[0]), Copy(whole.slots[0]));
    }
  }
}

TEST(ChunkWork, LeavesTheVersionThatIsReadAlone) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  const FloatArray start = RandomArray(1);
  ChunkWork work = Closing(*rule, start, 5);
  work.contributions = {Contribution(**FindCodec("fp32"), 0)};
  work.Run();
  EXPECT_EQ(Copy(start), Copy(RandomArray(1)));
  EXPECT_NE(Copy(work.next_start), Copy(start));
}

TEST(ChunkWork, ARoundWithoutSamplesChangesNothing) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  ChunkWork work = Closing(*rule, RandomArray(1), 0);
  work.Run();
  EXPECT_EQ(Copy(work.next_start), Copy(work.start));
  EXPECT_EQ(Copy(work.slots[0]), Copy(RandomArray(50)));
}

TEST(ChunkWork, CodesTheStartAndCopiesTheSlotsWhereItIsAskedTo) {
  const std::unique_ptr<Rule> rule = MomentumRule();
  ChunkWork work = Closing(*rule, RandomArray(1), 5);
  work.contributions = {Contribution(**FindCodec("fp32"), 0)};
  work.pull_codec = *FindCodec("fp16");
  work.copy_slots = true;
  work.Run();
  ASSERT_EQ(work.slot_copies.size(), 1u);
  EXPECT_NE(work.slot_copies[0], work.slots[0]);
  EXPECT_EQ(Copy(work.slot_copies[0]), Copy(work.slots[0]));
  ASSERT_TRUE(work.coded_start.bytes);
  EXPECT_EQ(work.coded_start.first_bad, -1);
  std::vector<float> decoded(kNumbers);
  work.pull_codec->Decode(std::as_const(*work.coded_start.bytes).span(), kNumbers, 0, decoded);
  for (size_t i = 0; i < kNumbers; ++i) {
    ASSERT_NEAR(decoded[i], (*work.next_start)[i], 1e-3f * (1 + std::abs(decoded[i])));
  }
}

}  // namespace
}  // namespace kumo
