#include "data/batch_stream.h"

#include <atomic>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_plan.h"
#include "data/memory_dataset.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"

namespace kumo {
namespace {

// The low byte of 10 i + j.
uint8_t Pixel(int64_t sample, int64_t j) { return static_cast<uint8_t>(10 * sample + j); }

// Sample i's pixels are Pixel(i, 0), Pixel(i, 1), ...; its label is i. Counts its reads; may be
// told to fail from one read on.
class NumbersDataset final : public Dataset {
 public:
  explicit NumbersDataset(int64_t size) : size_(size) {}

  int64_t size() const override { return size_; }
  SampleShape shape() const override { return {1, 1, 3}; }
  int classes() const override { return static_cast<int>(size_); }
  const std::string& name() const override { return name_; }
  Status Read(std::span<const int64_t> indices, std::span<uint8_t> pixels,
              std::span<int32_t> labels) const override {
    const int64_t read = reads++;
    reads.notify_all();
    if (read >= fail_from) return DataLoss("the disk is gone");
    EXPECT_EQ(pixels.size(), indices.size() * 3);
    for (size_t k = 0; k < indices.size(); ++k) {
      labels[k] = static_cast<int32_t>(indices[k]);
      for (int64_t j = 0; j < 3; ++j) pixels[k * 3 + j] = Pixel(indices[k], j);
    }
    return OkStatus();
  }

  mutable std::atomic<int64_t> reads = 0;
  std::atomic<int64_t> fail_from = INT64_MAX;

 private:
  int64_t size_;
  std::string name_ = "numbers";
};

// A Minibatch that owns its contents.
struct Copy {
  int64_t epoch;
  Range positions;
  std::vector<float> inputs;
  std::vector<int32_t> labels;
  bool operator==(const Copy&) const = default;
};

// The batches up to the range's end.
std::vector<Copy> Drain(BatchStream& stream) {
  std::vector<Copy> batches;
  while (true) {
    const auto batch = stream.Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || batch.value().size == 0) return batches;
    const Minibatch& b = batch.value();
    EXPECT_EQ(b.positions.size(), b.size);
    EXPECT_EQ(static_cast<int64_t>(b.labels.size()), b.size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.inputs.data()) % 64, 0u);
    batches.push_back({b.epoch,
                       b.positions,
                       {b.inputs.begin(), b.inputs.end()},
                       {b.labels.begin(), b.labels.end()}});
  }
}

BatchStreamOptions Options(int minibatch, int prefetch, BatchOrder order = BatchOrder::kShuffled) {
  return {.order = order,
          .seed = 9,
          .minibatch = minibatch,
          .prefetch = prefetch,
          .pixels = {.scale = 0.5f}};
}

class BatchStreamTest : public testing::TestWithParam<int> {  // prefetch
 protected:
  const NumbersDataset dataset_{100};
};

TEST_P(BatchStreamTest, GivesTheSameBatchesForAnyPrefetch) {
  const std::vector<std::pair<int64_t, Range>> blocks = {
      {0, {0, 40}}, {0, {40, 45}}, {0, {45, 45}}, {0, {45, 100}}, {1, {0, 7}}, {0, {99, 100}}};
  BatchStream reference(&dataset_, Options(7, 0));
  BatchStream stream(&dataset_, Options(7, GetParam()));
  for (const auto& [epoch, range] : blocks) stream.Start(epoch, range);
  for (const auto& [epoch, range] : blocks) {
    reference.Start(epoch, range);
    const auto expected = Drain(reference);
    EXPECT_EQ(Drain(stream), expected);
    ASSERT_EQ(static_cast<int64_t>(expected.size()), (range.size() + 6) / 7);
  }
}

TEST_P(BatchStreamTest, FollowsTheEpochsPermutation) {
  BatchStream stream(&dataset_, Options(8, GetParam()));
  for (const int64_t epoch : {0, 3}) {
    stream.Start(epoch, {10, 31});
    const EpochPermutation permutation(100, 9, epoch);
    int64_t position = 10;
    for (const Copy& batch : Drain(stream)) {
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.positions.begin, position);
      for (size_t k = 0; k < batch.labels.size(); ++k, ++position) {
        EXPECT_EQ(batch.labels[k], permutation.At(position));
        EXPECT_EQ(batch.inputs[3 * k + 2], 0.5f * static_cast<float>(Pixel(batch.labels[k], 2)));
      }
    }
    EXPECT_EQ(position, 31);
  }
}

TEST_P(BatchStreamTest, SequentialOrderIsTheDatasetsOwn) {
  BatchStream stream(&dataset_, Options(64, GetParam(), BatchOrder::kSequential));
  stream.Start(5, {20, 100});
  const auto batches = Drain(stream);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].labels.size(), 64u);
  EXPECT_EQ(batches[1].labels.size(), 16u);
  EXPECT_EQ(batches[0].labels.front(), 20);
  EXPECT_EQ(batches[1].labels.back(), 99);
}

TEST_P(BatchStreamTest, EmptyRangeJustEnds) {
  BatchStream stream(&dataset_, Options(8, GetParam()));
  for (int i = 0; i < 3; ++i) {
    stream.Start(0, {5, 5});
    EXPECT_TRUE(Drain(stream).empty());
  }
  stream.Start(0, {5, 6});
  EXPECT_EQ(Drain(stream).size(), 1u);
}

TEST_P(BatchStreamTest, MinibatchLargerThanTheSetTakesAllOfIt) {
  BatchStream stream(&dataset_, Options(1'000'000'000, GetParam()));
  stream.Start(0, {0, 100});
  EXPECT_EQ(Drain(stream).size(), 1u);
}

TEST_P(BatchStreamTest, BuffersAreReused) {
  BatchStream stream(&dataset_, Options(1, GetParam()));
  std::set<const float*> buffers;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    stream.Start(epoch, {0, 100});
    while (true) {
      const auto batch = stream.Next();
      ASSERT_TRUE(batch.ok());
      if (batch.value().size == 0) break;
      buffers.insert(batch.value().inputs.data());
    }
  }
  EXPECT_LE(static_cast<int>(buffers.size()), GetParam() + 1);
}

TEST_P(BatchStreamTest, ErrorReachesTheConsumerBehindTheGoodBatches) {
  NumbersDataset failing(100);
  failing.fail_from = 2;
  BatchStream stream(&failing, Options(10, GetParam()));
  stream.Start(0, {0, 100});
  for (int i = 0; i < 2; ++i) {
    const auto batch = stream.Next();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch.value().size, 10);
  }
  for (int i = 0; i < 3; ++i) {
    const auto batch = stream.Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(batch.status().message(), "the disk is gone");
  }
  failing.fail_from = INT64_MAX;
  stream.Cancel();
  stream.Start(0, {0, 100});
  EXPECT_EQ(Drain(stream).size(), 10u);
}

TEST_P(BatchStreamTest, CancelForgetsEverythingThatWasStarted) {
  BatchStream reference(&dataset_, Options(4, 0));
  reference.Start(2, {30, 50});
  const auto expected = Drain(reference);
  for (int taken = 0; taken < 12; ++taken) {
    BatchStream stream(&dataset_, Options(4, GetParam()));
    stream.Start(0, {0, 40});
    stream.Start(1, {0, 40});
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(stream.Next().ok());
    stream.Cancel();
    stream.Start(2, {30, 50});
    EXPECT_EQ(Drain(stream), expected) << "cancelled after " << taken;
  }
}

TEST_P(BatchStreamTest, EndsCleanlyWhateverIsStillQueued) {
  for (int taken = 0; taken < 8; ++taken) {
    BatchStream stream(&dataset_, Options(4, GetParam()));
    for (int64_t epoch = 0; epoch < 5; ++epoch) stream.Start(epoch, {0, 100});
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(stream.Next().ok());
  }
  BatchStream idle(&dataset_, Options(4, GetParam()));
}

TEST_P(BatchStreamTest, WholeImagesAreScaledWhereverTheyLie) {
  const test::Bytes pixels = test::Pattern(300);
  const MemoryDataset in_memory("bytes", {1, 1, 3}, 10, pixels, test::Labels(100, 10));
  BatchStream stream(&in_memory, Options(7, GetParam()));
  stream.Start(0, {0, 100});
  const EpochPermutation permutation(100, 9, 0);
  int64_t position = 0;
  for (const Copy& batch : Drain(stream)) {
    for (size_t k = 0; k < batch.labels.size(); ++k, ++position) {
      const int64_t sample = permutation.At(position);
      EXPECT_EQ(batch.labels[k], sample % 10);
      for (int64_t j = 0; j < 3; ++j) {
        EXPECT_EQ(batch.inputs[3 * k + j], 0.5f * static_cast<float>(pixels[3 * sample + j]));
      }
    }
  }
  EXPECT_EQ(position, 100);
}

TEST_P(BatchStreamTest, BytesAreWholeImagesAndWindowsComeBeside) {
  BatchStreamOptions options = Options(8, GetParam());
  options.content = BatchContent::kPixels;
  for (const bool augments : {false, true}) {
    options.augmentation = {.pad = augments ? 2 : 0, .flip = augments};
    BatchStream stream(&dataset_, options);
    stream.Start(1, {0, 20});
    for (const int64_t size : {8, 8, 4}) {
      const Minibatch batch = stream.Next().value();
      ASSERT_EQ(batch.size, size);
      EXPECT_TRUE(batch.inputs.empty());
      ASSERT_EQ(std::ssize(batch.pixels), 3 * size);
      ASSERT_EQ(std::ssize(batch.labels), size);
      ASSERT_EQ(std::ssize(batch.windows), augments ? size : 0);
      for (int64_t k = 0; k < size; ++k) {
        EXPECT_EQ(batch.labels[k], batch.indices[k]);
        for (int64_t j = 0; j < 3; ++j) {
          EXPECT_EQ(batch.pixels[3 * k + j], Pixel(batch.indices[k], j));
        }
        if (!augments) continue;
        EXPECT_EQ(batch.windows[k], DrawWindow(options.augmentation, 9, 1, batch.indices[k]));
      }
    }
  }
}

TEST_P(BatchStreamTest, WhoHasTheDataSetGetsIndicesAndWindows) {
  BatchStreamOptions options = Options(8, GetParam());
  options.content = BatchContent::kNone;
  options.augmentation = {.pad = 1, .flip = true};
  BatchStream stream(&dataset_, options);
  stream.Start(0, {0, 8});
  const Minibatch batch = stream.Next().value();
  EXPECT_EQ(batch.indices.size(), 8u);
  EXPECT_EQ(batch.windows.size(), 8u);
  EXPECT_TRUE(batch.inputs.empty());
  EXPECT_TRUE(batch.pixels.empty());
  EXPECT_TRUE(batch.labels.empty());
  EXPECT_EQ(dataset_.reads, 0);
}

// What a sample looks like is a function of sample and epoch, whatever it comes with, and wherever
// the data set lies.
TEST_P(BatchStreamTest, ASampleLooksTheSameInAnyMinibatch) {
  const SampleShape shape = {2, 5, 4};
  const test::Bytes pixels = test::Pattern(60 * shape.size());
  const MemoryDataset in_memory("images", shape, 3, pixels, test::Labels(60, 3));
  const test::Unmapped read_each_time(&in_memory);
  PixelFormula formula = {.scale = 0.01f, .pad_value = 77};
  for (int64_t j = 0; j < shape.size(); ++j) formula.mean.push_back(0.3f * static_cast<float>(j));
  const Augmentation augmentation = {.pad = 2, .flip = true};
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&in_memory), static_cast<const Dataset*>(&read_each_time)}) {
    for (const int minibatch : {1, 7, 60}) {
      BatchStream stream(dataset, {.seed = 3,
                                   .minibatch = minibatch,
                                   .prefetch = GetParam(),
                                   .augmentation = augmentation,
                                   .pixels = formula});
      for (const int64_t epoch : {0, 4}) {
        stream.Start(epoch, {0, 60});
        const EpochPermutation permutation(60, 3, epoch);
        int64_t position = 0;
        for (const Copy& batch : Drain(stream)) {
          for (size_t k = 0; k < batch.labels.size(); ++k, ++position) {
            const int64_t sample = permutation.At(position);
            const std::vector<float> expected = test::InputsOf(
                shape, std::span(pixels).subspan(sample * shape.size(), shape.size()), formula,
                DrawWindow(augmentation, 3, epoch, sample));
            ASSERT_EQ(batch.labels[k], sample % 3);
            ASSERT_THAT(std::span(batch.inputs).subspan(k * shape.size(), shape.size()),
                        testing::ElementsAreArray(expected));
          }
        }
        ASSERT_EQ(position, 60);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Prefetch, BatchStreamTest, testing::Values(0, 1, 2, 4, 33));

TEST(BatchStreamPrefetchTest, ReadsTheNextRangeBeforeItIsAskedFor) {
  const NumbersDataset dataset(100);
  BatchStream stream(&dataset, Options(10, 4));
  stream.Start(0, {0, 10});
  stream.Start(0, {10, 100});
  // Nobody calls Next(): the first range's minibatch and three of the second get ready.
  for (int64_t reads = dataset.reads; reads < 4; reads = dataset.reads) dataset.reads.wait(reads);
  EXPECT_EQ(Drain(stream).size(), 1u);
  EXPECT_EQ(Drain(stream).size(), 9u);
}

TEST(BatchStreamPrefetchTest, NeverReadsFurtherAheadThanToldTo) {
  const NumbersDataset dataset(100);
  for (const int prefetch : {0, 1, 3}) {
    BatchStream stream(&dataset, Options(1, prefetch));
    const int64_t before = dataset.reads;
    stream.Start(0, {0, 100});
    for (int64_t taken = 1; taken <= 100; ++taken) {
      ASSERT_TRUE(stream.Next().ok());
      ASSERT_LE(dataset.reads - before, taken + prefetch);
    }
  }
}

TEST(BatchStreamDeathTest, AskingForMoreThanWasStartedIsABug) {
  const NumbersDataset dataset(100);
  BatchStream stream(&dataset, Options(10, 0));
  EXPECT_DEATH({ (void)stream.Next(); }, "range that was started");
  EXPECT_DEATH(stream.Start(0, {0, 101}), "numbers");
  stream.Start(0, {0, 0});
  EXPECT_TRUE(Drain(stream).empty());
  EXPECT_DEATH({ (void)stream.Next(); }, "range that was started");
}

struct Split {
  int64_t samples;
  int partitions;
  int minibatch;
  int block;
  int64_t warmup;
};

class EpochCoverageTest : public testing::TestWithParam<Split> {};

TEST_P(EpochCoverageTest, PartitionsTogetherVisitEachSampleOnceAnEpoch) {
  const Split& split = GetParam();
  PlanSettings settings;
  settings.mode = SyncMode::kBlock;
  settings.train_samples = split.samples;
  settings.partitions = split.partitions;
  settings.minibatch = split.minibatch;
  settings.block = split.block;
  settings.warmup_samples = split.warmup;
  settings.epochs = 3;
  const auto made = JobPlan::Make(settings);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const JobPlan& plan = made.value();
  const NumbersDataset dataset(split.samples);

  std::vector<std::vector<int>> visits(settings.epochs, std::vector<int>(split.samples, 0));
  for (int partition = 0; partition < split.partitions; ++partition) {
    BatchStream stream(&dataset, Options(split.minibatch, 2));
    for (int64_t round = 0; round < plan.rounds(); ++round) {
      const RoundPlan here = plan.Round(round);
      stream.Start(here.epoch, plan.PartitionSamples(here, partition));
    }
    for (int64_t round = 0; round < plan.rounds(); ++round) {
      for (const Copy& batch : Drain(stream)) {
        EXPECT_LE(static_cast<int>(batch.labels.size()), split.minibatch);
        for (const int32_t sample : batch.labels) ++visits[batch.epoch][sample];
      }
    }
  }
  for (const auto& epoch : visits) EXPECT_THAT(epoch, testing::Each(1));
}

INSTANTIATE_TEST_SUITE_P(Splits, EpochCoverageTest,
                         testing::Values(Split{96, 2, 4, 3, 0}, Split{101, 3, 4, 3, 0},
                                         Split{1000, 4, 7, 5, 130}, Split{5, 8, 2, 2, 0},
                                         Split{1, 1, 1, 1, 0}, Split{257, 2, 64, 1, 257}));

}  // namespace
}  // namespace kumo
