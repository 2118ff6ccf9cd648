#include "common/checkpoint/best.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFolder[] = "/out/checkpoints";

checkpoint::Evaluation Figures(int epoch, int64_t correct, double loss_sum) {
  checkpoint::Evaluation evaluation;
  evaluation.set_epoch(epoch);
  *evaluation.mutable_sums() = test::SumsMessage(100, loss_sum, static_cast<double>(correct));
  return evaluation;
}

checkpoint::Evaluation StillToCome(int epoch) {
  checkpoint::Evaluation evaluation;
  evaluation.set_epoch(epoch);
  return evaluation;
}

Status Save(FileSystem& files, int64_t version, const checkpoint::Evaluation& evaluation = {},
            uint32_t generation = 1, const MetricList& metrics = test::LossAndAccuracy()) {
  const ShardFileHeader header = {
      .version = version, .generation = generation, .shard = 0, .shards = 1};
  const std::vector<float> numbers = {1, 2, 3};
  const ShardSnapshot snapshot{version, {{StateKind::kStart, 0, 0, 0, nullptr, numbers}}};
  KUMO_ASSIGN_OR_RETURN(const SavedShardFile saved, SaveShard(files, kFolder, header, snapshot));
  checkpoint::Manifest manifest;
  manifest.set_generation(generation);
  manifest.set_version(version);
  checkpoint::File* file = manifest.add_files();
  file->set_name(ShardFileName(0, 1, generation));
  file->set_bytes(saved.bytes);
  file->set_crc32c(saved.crc32c);
  WriteMetrics(metrics, manifest.mutable_metrics());
  if (evaluation.epoch() > 0) *manifest.mutable_evaluation() = evaluation;
  return WriteManifest(files, kFolder, manifest);
}

std::string BestBy(FileSystem& files, const std::string& by) {
  const auto best = FindBest(files, kFolder, by);
  return best.ok() ? best->name() : best.status().message();
}

TEST(FindBest, OneThatCannotBeReadJustNowMayBeItAndIsNotPruned) {
  BusyFileSystem files;
  for (const int64_t version : {8, 16, 24}) {
    ASSERT_TRUE(Save(files, version, Figures(1, version == 8 ? 99 : 50, 1)).ok());
  }
  files.busy = CheckpointName(8) + "/MANIFEST";
  EXPECT_EQ(FindBest(files, kFolder, "accuracy").status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(PruneCheckpoints(files, kFolder, {1, "accuracy"}).ok());
  files.busy.clear();
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(8));
  EXPECT_TRUE(PruneCheckpoints(files, kFolder, {1, "accuracy"}).ok());
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(8));
}

TEST(Best, IsTheMostAccurateOrTheOneWithTheLeastLossAndOfEqualOnesTheFirst) {
  MemoryFileSystem files;
  ASSERT_TRUE(Save(files, 10, Figures(1, 91, 40)).ok());
  ASSERT_TRUE(Save(files, 20, Figures(2, 95, 30)).ok());
  ASSERT_TRUE(Save(files, 25).ok());
  ASSERT_TRUE(Save(files, 30, Figures(3, 95, 20)).ok());
  ASSERT_TRUE(Save(files, 40, Figures(4, 94, 25)).ok());
  ASSERT_TRUE(Save(files, 50, StillToCome(5)).ok());
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(20));
  EXPECT_EQ(BestBy(files, "loss"), CheckpointName(30));
  EXPECT_THAT(BestBy(files, ""), HasSubstr("no checkpoint in"));
}

TEST(Best, IsByAnyMetricThatTheJobHas) {
  MemoryFileSystem files;
  const MetricList metrics =
      MetricList::Make({{"top5_accuracy", 0, MetricFormula::kShare, true},
                        {"perplexity", 1, MetricFormula::kExponentialOfMean}})
          .value();
  const auto save = [&](int64_t version, double top5, double loss) {
    checkpoint::Evaluation evaluation = StillToCome(1);
    *evaluation.mutable_sums() = test::SumsMessage(100, top5, loss);
    ASSERT_TRUE(Save(files, version, evaluation, 1, metrics).ok());
  };
  save(10, 90, 100);
  save(20, 80, 50);
  EXPECT_EQ(BestBy(files, "top5_accuracy"), CheckpointName(10));
  EXPECT_EQ(DescribeEvaluation(*FindBest(files, kFolder, "top5_accuracy")),
            "epoch 1, validation top5_accuracy 0.9000, perplexity 2.7183");
  save(5, 80, 1e6);  // exp(10000) is no number that could be the best
  EXPECT_EQ(BestBy(files, "perplexity"), CheckpointName(20));
  EXPECT_EQ(BestBy(files, "accuracy"),
            "no checkpoint in /out/checkpoints has a validation figure 'accuracy': " +
                CheckpointName(20) + " has top5_accuracy, perplexity");
}

// Where the headline has no figure, as one of NaN, another metric may have one.
TEST(Best, AnEvaluationWithoutAHeadlineIsDescribedByItsOtherFigures) {
  checkpoint::Manifest manifest;
  manifest.mutable_evaluation()->set_epoch(3);
  manifest.mutable_evaluation()->mutable_sums()->set_samples(10);
  manifest.mutable_evaluation()->mutable_sums()->add_sums(3);
  WriteMetrics(test::LossAndAccuracy(), manifest.mutable_metrics());
  EXPECT_EQ(DescribeEvaluation(manifest), "epoch 3, loss 0.3000");
}

// Written before manifests named their metrics.
TEST(Best, AManifestWithoutMetricsHasALossAndAnAccuracy) {
  MemoryFileSystem files;
  checkpoint::Evaluation evaluation = StillToCome(2);
  evaluation.set_samples(200);
  evaluation.set_loss_sum(50);
  evaluation.set_correct(190);
  ASSERT_TRUE(Save(files, 10, evaluation, 1, MetricList()).ok());
  const checkpoint::Manifest read = *FindBest(files, kFolder, "accuracy");
  EXPECT_EQ(DescribeEvaluation(read), "epoch 2, validation accuracy 0.9500, loss 0.2500");
  EXPECT_EQ(MetricsOf(read), test::LossAndAccuracy());
}

TEST(Best, WhatAManifestWithoutMetricsSaysOfItsProgressIsReadByName) {
  MemoryFileSystem files;
  checkpoint::Manifest written;
  written.set_version(10);
  written.add_files()->set_name("shard");
  checkpoint::Progress& then = *written.mutable_progress();
  then.set_elapsed_seconds(61.5);
  then.set_samples(640);
  then.set_epoch_samples(64);
  then.set_epoch_loss_sum(32.1);
  then.set_epoch_correct(60);
  then.set_ended_epoch_samples(576);
  then.set_ended_epoch_loss_sum(300);
  then.set_ended_epoch_correct(500);
  then.set_point_samples(32);
  then.set_point_loss_sum(8);
  then.set_point_correct(31);
  then.set_last_loss(0.25);
  then.set_last_accuracy(0.75);
  ASSERT_TRUE(files.CreateDirectories(std::string(kFolder) + "/" + CheckpointName(10)).ok());
  ASSERT_TRUE(WriteManifest(files, kFolder, written).ok());
  const auto read = ReadManifest(files, kFolder, CheckpointName(10));
  ASSERT_TRUE(read.ok()) << read.status().message();
  checkpoint::Progress expected;
  expected.set_elapsed_seconds(61.5);
  expected.set_samples(640);
  *expected.mutable_epoch() = test::SumsMessage(64, 32.1, 60);
  *expected.mutable_ended_epoch() = test::SumsMessage(576, 300, 500);
  *expected.mutable_point() = test::SumsMessage(32, 8, 31);
  *expected.mutable_last() = test::SumsMessage(1, 0.25, 0.75);
  EXPECT_EQ(read->progress().SerializeAsString(), expected.SerializeAsString());
}

TEST(Best, ALossThatIsNoNumberAndADamagedManifestAreNeverTheBest) {
  MemoryFileSystem files;
  ASSERT_TRUE(Save(files, 10, Figures(1, 50, 70)).ok());
  ASSERT_TRUE(Save(files, 20, Figures(2, 40, std::numeric_limits<double>::quiet_NaN())).ok());
  ASSERT_TRUE(Save(files, 30, Figures(3, 40, -std::numeric_limits<double>::infinity())).ok());
  EXPECT_EQ(BestBy(files, "loss"), CheckpointName(10));
  ASSERT_TRUE(Save(files, 40, Figures(4, 99, 1)).ok());
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(40));
  (*files.Contents(std::string(kFolder) + "/" + CheckpointName(40) + "/MANIFEST"))[3] ^= 1;
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(10));
}

TEST(Best, PruningKeepsItAndTheNewestThatMayBecomeIt) {
  MemoryFileSystem files;
  ASSERT_TRUE(Save(files, 10, Figures(1, 97, 10)).ok());
  ASSERT_TRUE(Save(files, 20, Figures(2, 96, 9)).ok());
  ASSERT_TRUE(Save(files, 30, StillToCome(3)).ok());
  ASSERT_TRUE(Save(files, 35).ok());
  ASSERT_TRUE(Save(files, 38).ok());
  EXPECT_THAT(*PruneCheckpoints(files, kFolder, {1, "accuracy"}),
              ElementsAre(CheckpointName(35), CheckpointName(20)));
  ASSERT_TRUE(WriteEvaluation(files, kFolder, 30, 1, Figures(3, 98, 8)).ok());
  EXPECT_EQ(BestBy(files, "accuracy"), CheckpointName(30));
  EXPECT_THAT(*PruneCheckpoints(files, kFolder, {1, "accuracy"}), ElementsAre(CheckpointName(10)));
  EXPECT_THAT(*PruneCheckpoints(files, kFolder, {1, ""}), ElementsAre(CheckpointName(30)));
}

TEST(Best, AnEvaluationIsWrittenIntoTheCheckpointThatItIsOfAndIntoNoOther) {
  MemoryFileSystem files;
  ASSERT_TRUE(Save(files, 10, StillToCome(1), 2).ok());
  EXPECT_TRUE(WriteEvaluation(files, kFolder, 11, 1, Figures(1, 90, 1)).ok());  // was not saved
  EXPECT_TRUE(WriteEvaluation(files, kFolder, 10, 3, Figures(1, 90, 1)).ok());  // another past
  EXPECT_EQ(ReadManifest(files, kFolder, CheckpointName(10))->evaluation().sums().samples(), 0);
  ASSERT_TRUE(WriteEvaluation(files, kFolder, 10, 2, Figures(1, 90, 1)).ok());
  EXPECT_EQ(ReadManifest(files, kFolder, CheckpointName(10))->evaluation().sums().sums(1), 90);
  EXPECT_TRUE(VerifyCheckpoint(files, kFolder, CheckpointName(10)).ok());
  const int operations = files.operations();
  EXPECT_TRUE(WriteEvaluation(files, kFolder, 10, 2, Figures(1, 90, 1)).ok());
  EXPECT_EQ(files.operations(), operations) << "it stands there already";
}

// A job that saves each epoch, learns its figures, and prunes; cut off at every operation.
TEST(Best, WhateverAPowerCutLeavesTheBestOneThatIsKnownIsThere) {
  const std::vector<int64_t> correct = {80, 95, 90, 93};
  for (uint64_t seed = 0; seed < 30; ++seed) {
    bool finished = false;
    for (int n = 0; !finished; ++n) {
      MemoryFileSystem files;
      files.FailFrom(n);
      std::vector<int64_t> known;  // durable figures
      finished = [&] {
        for (size_t epoch = 1; epoch <= correct.size(); ++epoch) {
          const auto version = static_cast<int64_t>(10 * epoch);
          if (!Save(files, version, StillToCome(static_cast<int>(epoch))).ok()) return false;
          if (!PruneCheckpoints(files, kFolder, {1, "accuracy"}, version).ok()) return false;
          const auto figures = Figures(static_cast<int>(epoch), correct[epoch - 1], 1);
          if (!WriteEvaluation(files, kFolder, version, 1, figures).ok()) return false;
          known.push_back(correct[epoch - 1]);
          if (!PruneCheckpoints(files, kFolder, {1, "accuracy"}, version).ok()) return false;
        }
        return true;
      }();
      files.PowerCut(seed);
      ASSERT_LT(n, 400);
      if (known.empty()) continue;
      const auto best = FindBest(files, kFolder, "accuracy");
      ASSERT_TRUE(best.ok()) << seed << ", " << n << ": " << best.status().message();
      const int64_t least = *std::max_element(known.begin(), known.end());
      ASSERT_GE(best->evaluation().sums().sums(1), static_cast<double>(least)) << seed << ", " << n;
      ASSERT_TRUE(VerifyCheckpoint(files, kFolder, best->name()).ok()) << seed << ", " << n;
    }
  }
}

TEST(TensorList, SaysWhatTheNetworkIsAndIsRefusedWhereItIsDamaged) {
  const ParameterLayout layout = ParameterLayout::Make({{"a.weight", {40, 30}, Segment::kDecayed},
                                                        {"a.bias", {30}, Segment::kUndecayed},
                                                        {"n.mean", {17}, Segment::kStatistics},
                                                        {"b", {8}, Segment::kDecayed, {2, 0}}})
                                     .value();
  checkpoint::Manifest manifest;
  EXPECT_FALSE(HasTensors(manifest));  // as 0.1 wrote them
  SetTensors(layout, &manifest);
  manifest.set_fingerprint(layout.fingerprint());
  ASSERT_TRUE(HasTensors(manifest));
  EXPECT_EQ(manifest.tensors(1).name(), "a.bias");
  EXPECT_EQ(manifest.tensors(1).segment(), "undecayed");
  EXPECT_EQ(manifest.tensors(1).begin(), 1216);
  EXPECT_FALSE(manifest.tensors(1).has_rate_factor());
  const auto read = LayoutOf(manifest);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->tensors(), layout.tensors());

  const auto refusal = [&](auto damage) {
    checkpoint::Manifest damaged = manifest;
    damage(&damaged);
    const Status status = LayoutOf(damaged).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    return status.message();
  };
  EXPECT_THAT(refusal([](auto* m) { m->mutable_tensors(0)->set_segment("odd"); }),
              HasSubstr("a segment 'odd'"));
  EXPECT_THAT(refusal([](auto* m) { m->mutable_tensors(1)->set_begin(1201); }),
              HasSubstr("a.bias at another position"));
  EXPECT_THAT(refusal([](auto* m) { m->mutable_tensors(0)->set_name("b.weight"); }),
              HasSubstr("another network"));
  EXPECT_THAT(refusal([](auto* m) { m->mutable_tensors(0)->set_shape(0, -1); }),
              HasSubstr("is invalid"));
}

}  // namespace
}  // namespace kumo
