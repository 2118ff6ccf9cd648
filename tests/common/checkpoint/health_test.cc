#include "common/checkpoint/health.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using testing::HasSubstr;

constexpr char kCheckpointFolder[] = "/out/checkpoints";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Progress after rounds of 10 samples with these mean losses.
checkpoint::Progress After(const std::vector<double>& losses) {
  checkpoint::Progress progress;
  for (const double loss : losses) {
    *progress.mutable_last() = test::SumsMessage(10, 10 * loss, 0);
    NoteLoss(test::LossAndAccuracy(), &progress);
  }
  return progress;
}

std::string Divergence(const std::vector<double>& losses) {
  checkpoint::Manifest manifest;
  *manifest.mutable_progress() = After(losses);
  return DivergenceOf(manifest, test::LossAndAccuracy());
}

TEST(DivergenceOf, ALossOfAThousandTimesTheLowestAndAboveTheFirst) {
  EXPECT_EQ(Divergence({}), "");
  EXPECT_EQ(Divergence({2, 1, 999}), "") << "not a thousand times the lowest";
  EXPECT_EQ(Divergence({2, 0.5, 7e27}), "the loss is 7e+27, but was 0.5");
  EXPECT_EQ(Divergence({2, 1e-6, 0.1}), "") << "overfitted, and back below the first";
  EXPECT_EQ(Divergence({2, kNan}), "the loss is not finite");
  EXPECT_EQ(Divergence({kNan}), "the loss is not finite");
  EXPECT_EQ(Divergence({2, kNan, 1}), "") << "one that came back";
  EXPECT_EQ(Divergence({-2, -1}), "") << "no thousand times of a negative loss";
}

TEST(DivergenceOf, AWeightThatIsNotFinite) {
  checkpoint::Manifest manifest;
  *manifest.mutable_progress() = After({2, 1});
  manifest.add_files();
  manifest.add_files()->set_not_finite(true);
  EXPECT_EQ(DivergenceOf(manifest, test::LossAndAccuracy()), "a weight is not finite");
}

std::string Trouble(int epoch, double loss, double accuracy, double validation, bool last = false) {
  const EpochSums sums{epoch, test::SumsOf(1000, 1000 * loss, 1000 * accuracy),
                       test::SumsOf(100, 100, 100 * validation)};
  return TroubleOf(sums, After({2, loss}), test::LossAndAccuracy(), 4, last);
}

TEST(TroubleOf, ALossThatHasGrown) {
  EXPECT_EQ(Trouble(1, 1.9, 0.5, 0.5), "");
  EXPECT_EQ(Trouble(1, 2.9, 0.5, 0.5), "");
  EXPECT_THAT(Trouble(1, 3.1, 0.5, 0.5),
              HasSubstr("the loss has grown from 2 in the first round to 3.1 in epoch 1; a "
                        "lower schedule.learning_rate"));
}

TEST(TroubleOf, AnAccuracyOfGuessesFromTheSecondEpochOn) {
  EXPECT_EQ(Trouble(1, 1.4, 0.25, 0.25), "");
  EXPECT_THAT(Trouble(1, 1.4, 0.25, 0.25, /*last=*/true), HasSubstr("has learned nothing"));
  EXPECT_THAT(Trouble(2, 1.4, 0.25, 0.3),
              HasSubstr("after epoch 2 the accuracy is 0.25, like random guesses among 4 classes"));
  EXPECT_EQ(Trouble(2, 1.4, 0.3, 0.25), "") << "more than three standard deviations above";
  EXPECT_EQ(Trouble(2, 1.4, 0.25, 0.5), "") << "an augmentation makes training harder";
  const EpochSums sums{2, test::SumsOf(100, 100, 0), {}};
  EXPECT_EQ(TroubleOf(sums, After({2, 1}), test::LossAndAccuracy(), 0, true), "");
}

TEST(TroubleOf, NotOfSoFewSamplesThatGuessesMayAllBeRight) {
  const auto trouble = [](int samples, double accuracy) {
    const EpochSums sums{2, test::SumsOf(samples, samples, samples * accuracy), {}};
    return TroubleOf(sums, After({2, 1}), test::LossAndAccuracy(), 2, true);
  };
  EXPECT_EQ(trouble(9, 1), "");
  EXPECT_EQ(trouble(9, 0.5), "");
  EXPECT_THAT(trouble(20, 0.5), HasSubstr("has learned nothing"));
}

// Saves a checkpoint of one weight.
void Save(FileSystem& files, int64_t version, float weight, const std::string& diverged) {
  const ShardFileHeader header = {.version = version, .generation = 1, .shard = 0, .shards = 1};
  const std::vector<float> numbers = {1, weight, 3};
  const ShardSnapshot snapshot{version, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}};
  const auto saved = SaveShard(files, kCheckpointFolder, header, snapshot);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->not_finite, !std::isfinite(weight));
  checkpoint::Manifest manifest;
  manifest.set_generation(1);
  manifest.set_version(version);
  manifest.set_diverged(diverged);
  checkpoint::File* file = manifest.add_files();
  file->set_name(ShardFileName(0, 1, 1));
  file->set_bytes(saved->bytes);
  file->set_crc32c(saved->crc32c);
  ASSERT_TRUE(WriteManifest(files, kCheckpointFolder, manifest).ok());
}

TEST(NewestSound, StaysWhateverIsSavedAfterIt) {
  MemoryFileSystem files;
  EXPECT_EQ(NewestSound(files, kCheckpointFolder).status().code(), StatusCode::kNotFound);
  for (int64_t version = 1; version <= 9; ++version) {
    const bool good = version <= 3;
    Save(files, version, good ? 1.0f : INFINITY, good ? "" : "a weight is not finite");
    ASSERT_TRUE(PruneCheckpoints(files, kCheckpointFolder, {2}).ok());
  }
  EXPECT_THAT(*ListCheckpoints(files, kCheckpointFolder),
              testing::ElementsAre(CheckpointName(9), CheckpointName(8), CheckpointName(3)));
  EXPECT_EQ(NewestSound(files, kCheckpointFolder)->version(), 3);
}

}  // namespace
}  // namespace kumo
