#include "worker/transferred_weights.h"

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/checkpoint/checkpoint.h"
#include "common/job/checkpoint/tensor_list.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParameterLayout Source() {
  return ParameterLayout::Make({{"conv.weight", {4, 3}, Segment::kDecayed},
                                {"head.weight", {10, 4}, Segment::kDecayed},
                                {"conv.bias", {4}, Segment::kUndecayed},
                                {"head.bias", {10}, Segment::kUndecayed},
                                {"norm.mean", {4}, Segment::kStatistics}})
      .value();
}

// 12 classes, the tensors in another order, and one that is new.
ParameterLayout NewHead() {
  return ParameterLayout::Make({{"head.weight", {12, 4}, Segment::kDecayed},
                                {"extra.weight", {5}, Segment::kDecayed},
                                {"conv.weight", {4, 3}, Segment::kDecayed},
                                {"norm.mean", {4}, Segment::kDecayed},
                                {"conv.bias", {4}, Segment::kUndecayed}})
      .value();
}

class TransferTest : public testing::Test {
 protected:
  // A job's output with one checkpoint: start weights 1000 + position, evaluated ones 2000 +
  // position where the rule keeps them apart, in the first segment.
  std::string SaveSource(bool with_tensors = true) {
    const ParameterLayout layout = Source();
    std::vector<float> start(layout.size()), apart(layout.segment(Segment::kDecayed).size());
    std::iota(start.begin(), start.end(), 1000.0f);
    std::iota(apart.begin(), apart.end(), 2000.0f);
    const ShardFileHeader header = {.fingerprint = layout.fingerprint(),
                                    .version = 5,
                                    .generation = 1,
                                    .shard = 0,
                                    .shards = 1};
    const std::string folder = directory_ / "out/checkpoints";
    const auto saved = SaveShard(files_, folder, header,
                                 {5,
                                  {{StateKind::kStart, 0, 0, 0, nullptr, start},
                                   {StateKind::kWeights, 0, 0, 0, nullptr, apart}}});
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    checkpoint::Manifest manifest;
    manifest.set_generation(1);
    manifest.set_version(5);
    manifest.set_fingerprint(layout.fingerprint());
    if (with_tensors) SetTensors(layout, &manifest);
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(0, 1, 1));
    file->set_bytes(saved->bytes);
    file->set_crc32c(saved->crc32c);
    EXPECT_TRUE(WriteManifest(files_, folder, manifest).ok());
    return directory_ / "out";
  }
  static std::vector<float> Tensor(const ParameterLayout& layout, const std::vector<float>& weights,
                                   int i) {
    return {weights.begin() + layout.tensor(i).begin, weights.begin() + layout.tensor(i).end};
  }
  static std::vector<float> From(float first, size_t n) {
    std::vector<float> numbers(n);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }

  test::ScratchDirectory directory_;
  PosixFileSystem files_;
};

TEST_F(TransferTest, TensorsOfTheSameNameAndShapeAreTakenBitForBitAndTheOthersLeft) {
  const std::string out = SaveSource();
  const ParameterLayout layout = NewHead();
  std::vector<float> weights(layout.size(), -1.0f);
  const auto origin = TransferWeights(out, layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->checkpoint(), out + "/checkpoints/" + CheckpointName(5));
  EXPECT_THAT(origin->taken(), ElementsAre("conv.weight", "conv.bias"));
  EXPECT_THAT(origin->left(), ElementsAre("head.weight: [10, 4] there, [12, 4] here",
                                          "extra.weight: the checkpoint has no such tensor",
                                          "norm.mean: a statistic there, trained here"));
  EXPECT_EQ(origin->tensors(), 5);
  EXPECT_EQ(origin->tensors_taken(), 2);
  // What was evaluated, where that is kept apart.
  EXPECT_EQ(Tensor(layout, weights, 2), From(2000, 12));
  EXPECT_EQ(Tensor(layout, weights, 4),
            From(1000 + static_cast<float>(Source().tensor(2).begin), 4));
  for (const int i : {0, 1, 3}) {
    EXPECT_THAT(Tensor(layout, weights, i), testing::Each(-1.0f)) << i;
  }
}

TEST_F(TransferTest, WhereNothingFitsItIsRefusedWithBothSidesNames) {
  const std::string out = SaveSource();
  const ParameterLayout layout =
      ParameterLayout::Make({{"fc.weight", {4, 3}, Segment::kDecayed}}).value();
  std::vector<float> weights(layout.size());
  const Status status = TransferWeights(out, layout, weights).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("conv.weight [4, 3], head.weight [10, 4]"));
  EXPECT_THAT(status.message(), HasSubstr("the network has fc.weight [4, 3]"));
}

TEST_F(TransferTest, ACheckpointOfAnOlderReleaseStartsTheSameNetworkOnly) {
  const std::string out = SaveSource(/*with_tensors=*/false);
  std::vector<float> weights(Source().size());
  const auto origin = TransferWeights(out, Source(), weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->tensors_taken(), 5);
  std::vector<float> others(NewHead().size());
  EXPECT_THAT(TransferWeights(out, NewHead(), others).status().message(), HasSubstr("release 0.1"));
}

TEST_F(TransferTest, ADamagedOneIsRefused) {
  const std::string out = SaveSource();
  const std::string folder = out + "/checkpoints/" + CheckpointName(5);
  const std::string file = folder + "/" + ShardFileName(0, 1, 1);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  std::vector<float> weights(Source().size());
  for (const std::string& path : {out, folder}) {
    EXPECT_THAT(TransferWeights(path, Source(), weights).status().message(),
                HasSubstr(ShardFileName(0, 1, 1)));
  }
}

}  // namespace
}  // namespace kumo
