#include "data/batch_stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_plan.h"
#include "data/samples/dataset.h"
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
  const Fields& fields() const override { return fields_; }
  int classes() const override { return static_cast<int>(size_); }
  const std::string& name() const override { return name_; }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const int64_t index = key.sample;
    const int64_t read = reads++;
    reads.notify_all();
    if (read >= fail_from) return DataLoss("the disk is gone");
    const std::span<std::byte> pixels = sample->Make(0, 3);
    for (int64_t j = 0; j < 3; ++j) pixels[j] = std::byte{Pixel(index, j)};
    const auto label = static_cast<int32_t>(index);
    std::ranges::copy(std::as_bytes(std::span(&label, 1)), sample->Make(1, sizeof label).begin());
    return OkStatus();
  }

  mutable std::atomic<int64_t> reads = 0;  // of samples
  std::atomic<int64_t> fail_from = INT64_MAX;

 private:
  int64_t size_;
  Fields fields_ = LabelledImage({1, 1, 3});
  std::string name_ = "numbers";
};

// A Minibatch that owns its contents.
struct Copy {
  int64_t epoch;
  Range positions;
  std::vector<uint8_t> pixels;
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
    for (const std::span<const std::byte> field : b.fields) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(field.data()) % 64, 0u);
    }
    const auto* const pixels = reinterpret_cast<const uint8_t*>(b.fields[0].data());
    const auto* const labels = reinterpret_cast<const int32_t*>(b.fields[1].data());
    const auto count = static_cast<int64_t>(b.fields[1].size() / sizeof(int32_t));
    EXPECT_TRUE(count > 0 && count % b.size == 0);
    batches.push_back(
        {b.epoch, b.positions, {pixels, pixels + b.fields[0].size()}, {labels, labels + count}});
  }
}

BatchStreamOptions Options(int minibatch, int prefetch, BatchOrder order = BatchOrder::kShuffled) {
  return {.order = order, .seed = 9, .minibatch = minibatch, .prefetch = prefetch};
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
        EXPECT_EQ(batch.pixels[3 * k + 2], Pixel(batch.labels[k], 2));
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
  std::set<const std::byte*> buffers;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    stream.Start(epoch, {0, 100});
    while (true) {
      const auto batch = stream.Next();
      ASSERT_TRUE(batch.ok());
      if (batch.value().size == 0) break;
      buffers.insert(batch.value().fields[0].data());
    }
  }
  EXPECT_LE(static_cast<int>(buffers.size()), GetParam() + 1);
}

TEST_P(BatchStreamTest, ErrorReachesTheConsumerBehindTheGoodBatches) {
  NumbersDataset failing(100);
  failing.fail_from = 20;
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

TEST_P(BatchStreamTest, IndicesAreTheSamplesInTheirOrder) {
  BatchStream stream(&dataset_, Options(8, GetParam()));
  stream.Start(1, {0, 20});
  for (const int64_t size : {8, 8, 4}) {
    const Minibatch batch = stream.Next().value();
    ASSERT_EQ(batch.size, size);
    ASSERT_EQ(std::ssize(batch.indices), size);
    EXPECT_EQ(batch.samples().size, size);
    for (int64_t k = 0; k < size; ++k) {
      EXPECT_EQ(test::NumberOf(batch.samples().fields[1].subspan(4 * k)), batch.indices[k]);
    }
  }
}

TEST_P(BatchStreamTest, GivesTheSameBatchesForAnyNumberOfThreads) {
  const int64_t size = 75;
  const MemoryDataset images("images", {3, 5, 5}, 2, test::Pattern(50 * size),
                             std::vector<int32_t>(50, 1));
  Experiment::Data data;
  data.crop_area = {0.1, 1};
  data.hue = 0.3;
  data.cutout = 2;
  data.mixup = 1;
  const Transforms transforms =
      MakeTransforms({data, images.fields(), "images", /*training=*/true, 2, 50}).value();
  BatchStreamOptions options{
      .seed = 3, .minibatch = 16, .prefetch = GetParam(), .transforms = transforms};
  BatchStream reference(&images, options);
  reference.Start(2, {0, 50});
  const auto expected = Drain(reference);
  ASSERT_EQ(expected.size(), 4u);
  for (const int threads : {0, 2, 3, 20}) {
    options.threads = threads;
    const test::ReadEachTime on_demand(&images);
    BatchStream stream(&on_demand, options);
    stream.Start(2, {0, 50});
    EXPECT_EQ(Drain(stream), expected) << threads;
  }
}

// Sample i is refused from i = 20 on, each by its number.
class RefusedFromTwenty final : public Dataset {
 public:
  int64_t size() const override { return 100; }
  const Fields& fields() const override { return good_.fields(); }
  int classes() const override { return good_.classes(); }
  const std::string& name() const override { return good_.name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const int64_t index = key.sample;
    return index < 20 ? good_.Read(index, sample) : DataLoss("sample " + std::to_string(index));
  }

 private:
  const NumbersDataset good_{100};
};

TEST_P(BatchStreamTest, TheFirstErrorIsTheSameForAnyNumberOfThreads) {
  const RefusedFromTwenty dataset;
  for (int trial = 0; trial < 50; ++trial) {
    BatchStreamOptions options = Options(64, GetParam(), BatchOrder::kSequential);
    options.threads = 1 + trial % 4;
    BatchStream stream(&dataset, options);
    stream.Start(0, {0, 100});
    EXPECT_EQ(stream.Next().status().message(), "sample 20");
  }
}

// Sample i is a list of i % 4 numbers.
class ListsDataset final : public Dataset {
 public:
  int64_t size() const override { return 30; }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return 0; }
  const std::string& name() const override { return name_; }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    const std::vector<int32_t> entries = EntriesOf(key.sample);
    const int64_t extents[] = {std::ssize(entries)};
    sample->SetExtents(0, extents);
    std::ranges::copy(std::as_bytes(std::span(entries)),
                      sample->Make(0, entries.size() * sizeof(int32_t)).begin());
    return OkStatus();
  }
  static std::vector<int32_t> EntriesOf(int64_t sample) {
    return std::vector<int32_t>(sample % 4, static_cast<int32_t>(sample));
  }

 private:
  const std::string name_ = "lists";
  const Fields fields_ = {{"entries", NumberType::kInt32, {3}, FieldKind::kNumbers, true}};
};

TEST_P(BatchStreamTest, ListsArePaddedWithZerosAndCounted) {
  const ListsDataset lists;
  BatchStreamOptions options = Options(7, GetParam(), BatchOrder::kShuffled);
  BatchStream stream(&lists, options);
  for (const int64_t epoch : {0, 1}) {  // buffers are used again
    stream.Start(epoch, {0, 30});
    int64_t seen = 0;
    for (Minibatch batch = *stream.Next(); batch.size > 0; batch = *stream.Next()) {
      ASSERT_EQ(std::ssize(batch.counts[0]), batch.size);
      ASSERT_EQ(std::ssize(batch.fields[0]), batch.size * 3 * int64_t{sizeof(int32_t)});
      for (int64_t n = 0; n < batch.size; ++n, ++seen) {
        std::vector<int32_t> expected = ListsDataset::EntriesOf(batch.indices[n]);
        EXPECT_EQ(batch.counts[0][n], std::ssize(expected));
        expected.resize(3);
        std::vector<int32_t> found(3);
        std::memcpy(found.data(), batch.fields[0].data() + n * 12, 12);
        EXPECT_EQ(found, expected);
      }
    }
    EXPECT_EQ(seen, 30);
  }
}

TEST_P(BatchStreamTest, MinibatchesHaveTheExtentsThatTransformsMake) {
  const test::Extents extents = {3, 9, 7};
  const int64_t size = test::Numbers(extents);
  const test::Bytes pixels = test::Pattern(40 * size);
  const MemoryDataset images("images", extents, 2, pixels, std::vector<int32_t>(40, 1));
  Experiment::Data data;
  data.crop_area = {0.1, 1};
  data.image_size = "3x4x6";
  data.flip = true;
  const Transforms transforms = MakeTransforms({data, images.fields(), "images"}).value();
  BatchStream reference(&images,
                        {.seed = 3, .minibatch = 1, .prefetch = 0, .transforms = transforms});
  BatchStream stream(&images,
                     {.seed = 3, .minibatch = 7, .prefetch = GetParam(), .transforms = transforms});
  EXPECT_EQ(stream.fields(), LabelledImage({3, 4, 6}));
  for (const int64_t epoch : {0, 1}) {
    stream.Start(epoch, {0, 40});
    reference.Start(epoch, {0, 40});
    std::vector<uint8_t> expected, found;
    for (const Copy& one : Drain(reference)) {
      expected.insert(expected.end(), one.pixels.begin(), one.pixels.end());
    }
    for (const Copy& batch : Drain(stream)) {
      found.insert(found.end(), batch.pixels.begin(), batch.pixels.end());
    }
    ASSERT_EQ(std::ssize(found), 40 * 72);
    ASSERT_EQ(found, expected);
  }
}

// What a sample looks like is a function of sample and epoch, whatever it comes with, and wherever
// the data set lies.
TEST_P(BatchStreamTest, ASampleLooksTheSameInAnyMinibatch) {
  const test::Extents extents = {2, 5, 4};
  const int64_t size = test::Numbers(extents);
  const test::Bytes pixels = test::Pattern(60 * size);
  std::vector<int32_t> labels(60);
  std::iota(labels.begin(), labels.end(), 0);
  const MemoryDataset in_memory("images", extents, 60, pixels, labels);
  const test::ReadEachTime read_each_time(&in_memory);
  Experiment::Data data;
  data.crop_pad = 2;
  data.flip = true;
  data.pad_value = 77;
  std::vector<std::unique_ptr<const Transform>> transforms;
  transforms.push_back(MakeCropAndFlip({data, in_memory.fields(), "images"}).value());
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&in_memory), static_cast<const Dataset*>(&read_each_time)}) {
    for (const int minibatch : {1, 7, 60}) {
      BatchStream stream(
          dataset,
          {.seed = 3, .minibatch = minibatch, .prefetch = GetParam(), .transforms = transforms});
      for (const int64_t epoch : {0, 4}) {
        stream.Start(epoch, {0, 60});
        const EpochPermutation permutation(60, 3, epoch);
        int64_t position = 0;
        for (const Copy& batch : Drain(stream)) {
          for (size_t k = 0; k < batch.labels.size(); ++k, ++position) {
            const int64_t sample = permutation.At(position);
            const std::vector<uint8_t> expected =
                test::CutOf(extents, std::span(pixels).subspan(sample * size, size),
                            DrawWindow(2, true, {3, epoch, sample}), 77);
            ASSERT_EQ(batch.labels[k], sample);
            ASSERT_THAT(std::span(batch.pixels).subspan(k * size, size),
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
  for (int64_t reads = dataset.reads; reads < 40; reads = dataset.reads) dataset.reads.wait(reads);
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
