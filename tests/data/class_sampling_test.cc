// Sampling by class: exact counts of each class and each sample, in any epoch and for any reader.
#include "data/class_sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/batch_stream.h"
#include "data/open_datasets.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const ClassShares kEqually = {.equal = true};

// Images of one pixel, samples of class c as often as counts[c], in a random order.
std::unique_ptr<MemoryDataset> SetOf(const std::vector<int64_t>& counts) {
  std::vector<int32_t> labels;
  for (size_t c = 0; c < counts.size(); ++c) {
    labels.insert(labels.end(), counts[c], static_cast<int32_t>(c));
  }
  Rng rng(5, RngPurpose::kTest);
  for (size_t i = labels.size(); i > 1; --i) std::swap(labels[i - 1], labels[rng.NextBelow(i)]);
  const size_t size = labels.size();
  return std::make_unique<MemoryDataset>("the set", std::vector<int64_t>{1, 1, 1},
                                         static_cast<int>(counts.size()), test::Pattern(size),
                                         std::move(labels));
}

std::unique_ptr<ClassSampling> SamplingOf(const ClassShares& shares, const Dataset& whole) {
  Result<std::unique_ptr<ClassSampling>> sampling = ClassSampling::Make(shares, &whole);
  EXPECT_TRUE(sampling.ok()) << sampling.status().message();
  if (!sampling.ok()) return nullptr;
  return std::move(sampling).value();
}

std::string Refusal(const ClassShares& shares, const Dataset& whole) {
  const Status status = ClassSampling::Make(shares, &whole).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  return status.message();
}

// Draws of each sample in one epoch.
std::vector<int64_t> Draws(const ClassSampling& sampling, int64_t epoch, uint64_t seed = 3) {
  std::vector<int64_t> draws(sampling.size());
  for (int64_t i = 0; i < sampling.size(); ++i) ++draws[sampling.SampleOf({seed, epoch, i})];
  return draws;
}

std::vector<int64_t> OfClasses(const std::vector<int64_t>& of_samples, const Dataset& whole) {
  const std::vector<int32_t> classes = whole.SampleClasses();
  std::vector<int64_t> sums(whole.classes());
  for (size_t i = 0; i < of_samples.size(); ++i) sums[classes[i]] += of_samples[i];
  return sums;
}

TEST(ClassSampling, EachClassHasItsShareOfEachEpoch) {
  const auto whole = SetOf({700, 200, 90, 10});
  for (const int64_t epoch : {0, 1, 17}) {
    EXPECT_THAT(OfClasses(Draws(*SamplingOf(kEqually, *whole), epoch), *whole),
                ElementsAre(250, 250, 250, 250));
    EXPECT_THAT(OfClasses(Draws(*SamplingOf({.of_class = {1, 2, 0, 1}}, *whole), epoch), *whole),
                ElementsAre(250, 500, 0, 250));
    EXPECT_THAT(
        OfClasses(Draws(*SamplingOf({.of_class = {1e300, 1e300, 0, 0}}, *whole), epoch), *whole),
        ElementsAre(500, 500, 0, 0));
  }
}

// Property: the draws of classes differ from their shares by at most one, and those of two samples
// of a class by at most one, over any number of epochs.
TEST(ClassSampling, SamplesOfAClassAreDrawnEquallyOftenOverAnyNumberOfEpochs) {
  Rng rng(11, RngPurpose::kTest);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int64_t> counts;
    ClassShares shares;
    const uint64_t classes = 1 + rng.NextBelow(6);
    for (uint64_t c = 0; c < classes; ++c) {
      counts.push_back(static_cast<int64_t>(20 + rng.NextBelow(trial % 2 == 0 ? 30 : 300)));
      shares.of_class.push_back(0.2 + static_cast<double>(rng.NextUniform()));
    }
    const auto whole = SetOf(counts);
    const auto sampling = SamplingOf(shares, *whole);
    ASSERT_NE(sampling, nullptr);
    const double total = std::accumulate(shares.of_class.begin(), shares.of_class.end(), 0.0);
    const std::vector<int32_t> class_of = whole->SampleClasses();
    std::vector<int64_t> drawn(whole->size());
    for (int64_t epoch = 0; epoch < 5; ++epoch) {
      const std::vector<int64_t> draws = Draws(*sampling, epoch);
      const std::vector<int64_t> of_classes = OfClasses(draws, *whole);
      for (size_t c = 0; c < classes; ++c) {
        EXPECT_EQ(of_classes[c], sampling->DrawsOf(static_cast<int64_t>(c)));
        const double wanted = static_cast<double>(whole->size()) * shares.of_class[c] / total;
        EXPECT_LE(std::abs(static_cast<double>(of_classes[c]) - wanted), 1.0 + 1e-9);
      }
      for (size_t i = 0; i < draws.size(); ++i) drawn[i] += draws[i];
      std::vector<int64_t> least(classes, INT64_MAX), most(classes);
      for (size_t i = 0; i < drawn.size(); ++i) {
        least[class_of[i]] = std::min(least[class_of[i]], drawn[i]);
        most[class_of[i]] = std::max(most[class_of[i]], drawn[i]);
      }
      for (size_t c = 0; c < classes; ++c) EXPECT_LE(most[c] - least[c], 1) << trial;
    }
  }
}

TEST(ClassSampling, EqualSharesOfABalancedSetDrawEachSampleOnceInEachEpoch) {
  const auto whole = SetOf({30, 30, 30});
  const auto sampling = SamplingOf(kEqually, *whole);
  for (const int64_t epoch : {0, 1, 2, 9}) EXPECT_THAT(Draws(*sampling, epoch), Each(1));
}

// A draw is a function of seed, epoch and number alone; epochs and seeds differ.
TEST(ClassSampling, ADrawIsAFunctionOfSeedEpochAndNumber) {
  const auto whole = SetOf({60, 12, 5});
  const auto one = SamplingOf(kEqually, *whole);
  const auto other = SamplingOf({.of_class = {2, 2, 2}}, *whole);
  for (int64_t i = 76; i >= 0; --i) {
    const SampleKey key = {8, 4, i};
    EXPECT_EQ(one->SampleOf(key), other->SampleOf(key));
  }
  EXPECT_NE(Draws(*one, 0), Draws(*one, 1));
  EXPECT_NE(Draws(*one, 0, 1), Draws(*one, 0, 2));
  // Part of a job's mathematics: other draws would be other weights.
  std::vector<int64_t> first;
  for (int64_t i = 0; i < 77; i += 11) first.push_back(one->SampleOf({1, 2, i}));
  EXPECT_THAT(first, ElementsAre(75, 2, 12, 10, 22, 63, 54));
}

// However a worker cuts an epoch, and wherever it begins: a resumed job reads what it would have
// read.
TEST(ClassSampling, MinibatchesOfAnEpochAreTheSameHoweverItIsCut) {
  const auto whole = SetOf({90, 20, 10});
  const auto sampling = SamplingOf(kEqually, *whole);
  const auto labels_of = [&](int minibatch, int threads, const std::vector<Range>& ranges) {
    BatchStream stream(sampling.get(), {.seed = 3, .minibatch = minibatch, .threads = threads});
    std::vector<std::pair<int64_t, int32_t>> all;  // the pixel and the label
    for (const Range& range : ranges) {
      stream.Start(5, range);
      while (true) {
        const Minibatch batch = stream.Next().value();
        if (batch.size == 0) break;
        for (int64_t k = 0; k < batch.size; ++k) {
          all.emplace_back(static_cast<int64_t>(batch.fields[0][k]),
                           test::NumberOf(batch.fields[1].subspan(4 * k)));
        }
      }
    }
    return all;
  };
  const auto expected = labels_of(120, 1, {{0, 120}});
  EXPECT_EQ(labels_of(7, 3, {{0, 40}, {40, 41}, {41, 120}}), expected);
  const auto resumed = labels_of(16, 2, {{77, 120}});
  EXPECT_TRUE(std::ranges::equal(resumed, std::span(expected).last(43)));
  std::map<int32_t, int> counts;
  for (const auto& [pixel, label] : expected) ++counts[label];
  EXPECT_THAT(counts,
              ElementsAre(testing::Pair(0, 40), testing::Pair(1, 40), testing::Pair(2, 40)));
  // Draws of one class are scattered over the epoch.
  std::map<int32_t, int> first;
  for (const auto& [pixel, label] : std::span(expected).first(60)) ++first[label];
  for (const int32_t label : {0, 1, 2})
    EXPECT_THAT(first[label], AllOf(testing::Gt(8), testing::Lt(32)));
}

// Each draw of a sample has random streams of its own.
TEST(ClassSampling, ASampleThatIsDrawnTwiceIsAugmentedTwice) {
  const int64_t size = 3 * 8 * 8;
  std::vector<int32_t> labels(40, 0);
  labels[7] = 1;
  const MemoryDataset whole("images", {3, 8, 8}, 2, test::Pattern(40 * size), labels);
  const auto sampling = SamplingOf(kEqually, whole);
  Experiment::Data data;
  data.crop_area = {0.1, 1};
  const Transforms transforms =
      MakeTransforms({data, whole.fields(), "images", /*training=*/true, 2, 40}).value();
  Sample sample(whole.fields());
  std::set<std::vector<uint8_t>> looks;
  for (int64_t i = 20; i < 40; ++i) {  // the draws of class 1
    ASSERT_EQ(sampling->SampleOf({3, 0, i}), 7);
    ASSERT_TRUE(ReadTransformed(*sampling, transforms, {3, 0, i}, &sample).ok());
    looks.insert({sample.pixels(kImage).begin(), sample.pixels(kImage).end()});
  }
  EXPECT_GT(looks.size(), 15u);
}

TEST(ClassSampling, WhatCannotBeSampledIsRefusedWithTheSetting) {
  const auto gaps = SetOf({5, 0, 7, 0});
  EXPECT_THAT(Refusal(kEqually, *gaps),
              HasSubstr("data.class_shares = equal, but the set has no samples of classes 1, 3;"));
  EXPECT_NE(SamplingOf({.of_class = {1, 0, 1, 0}}, *gaps), nullptr) << "nothing is wanted of them";
  EXPECT_THAT(Refusal({.of_class = {1000, 1}}, *SetOf({5, 7})),
              AllOf(HasSubstr("of the 12 samples of an epoch class 1 would get none"),
                    HasSubstr("data.class_shares = 1000, 1")));
  EXPECT_THAT(Refusal({.of_class = {1, 1, 1}}, *SetOf({5, 7})), HasSubstr("has 2 classes"));
  EXPECT_THAT(Refusal({.of_class = {0, 0}}, *SetOf({5, 7})), HasSubstr("not 0 for all"));
  // A reader without classes.
  const auto whole = SetOf({5, 7});
  const test::ReadEachTime no_classes(whole.get());
  EXPECT_THAT(Refusal(kEqually, no_classes),
              HasSubstr("samples of the set have no classes; remove the setting"));
}

class SampledFilesTest : public testing::Test {
 protected:
  SampledFilesTest() {
    data_.directory = scratch_.path();
    data_.reader = DataReader::kImageFolder;
    data_.train_images = "train";
    data_.validation_images = "";
    data_.classes = 2;
    data_.class_shares = kEqually;
  }
  // Images of two classes, three times as many of the first.
  test::NamedFiles Files() const {
    test::NamedFiles files = test::ClassFolders(48, 2, {3, 4, 4});
    std::erase_if(files, [](const auto& file) {
      return file.first.starts_with("class1") && file.first > "class1/0016.png";
    });
    return files;
  }

  test::ScratchDirectory scratch_;
  Experiment::Data data_;
};

TEST_F(SampledFilesTest, OnlyTheTrainingPartOfASplitSetIsSampled) {
  test::WriteFiles(scratch_ / "train", Files());
  const auto sampled = OpenDatasets(data_);
  ASSERT_TRUE(sampled.ok()) << sampled.status().message();
  data_.class_shares = {};
  const auto plain = OpenDatasets(data_);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(&plain->trained(), plain->train.get());
  EXPECT_EQ(test::ReadAll(*sampled->train), test::ReadAll(*plain->train));
  EXPECT_EQ(test::ReadAll(*sampled->validation), test::ReadAll(*plain->validation));
  const std::vector<int32_t> labels = test::ReadAll(sampled->trained()).labels;
  ASSERT_EQ(std::ssize(labels), sampled->train->size());
  EXPECT_EQ(std::ranges::count(labels, 1), std::ssize(labels) / 2);
}

// A damaged image counts for the class of its file, since another class could not be known before
// it is read. So the draws do not depend on the time of decoding.
TEST_F(SampledFilesTest, DrawsOfASetWithReplacedImagesDoNotDependOnTheTimeOfDecoding) {
  test::NamedFiles files = Files();
  for (auto& [name, bytes] : files) {
    if (name.ends_with("0014.png") || name.ends_with("0001.png") || name.ends_with("0046.png")) {
      bytes.resize(bytes.size() / 2);
    }
  }
  test::WriteFiles(scratch_ / "train", files);
  data_.damaged = DamagedImages::kSkip;
  std::vector<test::Contents> found;
  std::vector<std::vector<int32_t>> classes;
  for (const DecodeImages decode : {DecodeImages::kAtStart, DecodeImages::kOnDemand}) {
    data_.decode = decode;
    const auto sets = OpenDatasets(data_);
    ASSERT_TRUE(sets.ok()) << sets.status().message();
    classes.push_back(sets->train->SampleClasses());
    const std::vector<int32_t> of_others = sets->validation->SampleClasses();
    EXPECT_EQ(std::ranges::count(classes.back(), 1) + std::ranges::count(of_others, 1), 8);
    found.push_back(test::ReadAll(sets->trained()));
  }
  EXPECT_EQ(classes[0], classes[1]);
  EXPECT_FALSE(found[0].labels.empty());
  EXPECT_EQ(found[0], found[1]);
}

}  // namespace
}  // namespace kumo
