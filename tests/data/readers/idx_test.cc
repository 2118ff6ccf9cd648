#include "data/readers/all.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using test::Gzip;
using test::Idx;
using test::Labels;
using test::Pattern;
using test::WriteFile;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kClasses = 10;

class IdxTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> Open(const Bytes& images, const Bytes& labels,
                                        int64_t limit = 0) {
    WriteFile(images_, images);
    WriteFile(labels_, labels);
    return OpenIdx({.images = images_, .labels = labels_, .classes = kClasses, .limit = limit});
  }
  void ExpectRefused(const Bytes& images, const Bytes& labels, StatusCode code,
                     const testing::Matcher<std::string>& message) {
    const auto dataset = Open(images, labels);
    ASSERT_FALSE(dataset.ok());
    EXPECT_EQ(dataset.status().code(), code) << dataset.status().message();
    EXPECT_THAT(dataset.status().message(), message);
  }

  test::ScratchDirectory scratch_;
  const std::string images_ = scratch_ / "images";
  const std::string labels_ = scratch_ / "labels";
  // 7 images of 4 x 3 pixels.
  const Bytes good_images_ = Idx({7, 4, 3}, Pattern(7 * 12));
  const Bytes good_labels_ = Idx({7}, Labels(7, kClasses));
};

void ExpectIsPattern(const Dataset& dataset, int64_t samples) {
  EXPECT_EQ(dataset.fields(), LabelledImage({1, 4, 3}));
  EXPECT_EQ(dataset.classes(), kClasses);
  ASSERT_EQ(dataset.size(), samples);
  const Bytes pixels = Pattern(7 * 12);
  Sample sample(dataset.fields());
  for (int64_t i = samples - 1; i >= 0; --i) {
    ASSERT_TRUE(dataset.Read(i, &sample).ok());
    EXPECT_EQ(test::NumberOf(sample.field(1)), i % kClasses);
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), std::span(pixels).subspan(i * 12, 12)));
  }
}

TEST_F(IdxTest, ReadsPlainFiles) {
  const auto dataset = Open(good_images_, good_labels_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ExpectIsPattern(*dataset.value(), 7);
  EXPECT_EQ(dataset.value()->name(), images_);
}

TEST_F(IdxTest, KnowsGzipByContentNotByName) {
  const auto dataset = Open(Gzip(good_images_), good_labels_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ExpectIsPattern(*dataset.value(), 7);
}

TEST_F(IdxTest, ReadsGzipMembersOneBehindTheOther) {
  Bytes two = Gzip(Bytes(good_images_.begin(), good_images_.begin() + 30));
  const Bytes second = Gzip(Bytes(good_images_.begin() + 30, good_images_.end()));
  two.insert(two.end(), second.begin(), second.end());
  const auto dataset = Open(two, Gzip(good_labels_));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ExpectIsPattern(*dataset.value(), 7);
}

TEST_F(IdxTest, LimitKeepsTheFirstSamples) {
  for (const int64_t limit : {1, 5, 7, 100}) {
    for (const bool packed : {false, true}) {
      const auto dataset = Open(packed ? Gzip(good_images_) : good_images_, good_labels_, limit);
      ASSERT_TRUE(dataset.ok()) << dataset.status().message();
      ExpectIsPattern(*dataset.value(), std::min<int64_t>(limit, 7));
    }
  }
}

TEST_F(IdxTest, LimitDoesNotHideDamageBehindIt) {
  Bytes cut = good_images_;
  cut.pop_back();
  for (const Bytes& images : {cut, Gzip(cut)}) {
    const auto dataset = Open(images, good_labels_, 2);
    ASSERT_FALSE(dataset.ok());
    EXPECT_EQ(dataset.status().code(), StatusCode::kDataLoss);
  }
}

TEST_F(IdxTest, MissingFileIsNamed) {
  WriteFile(images_, good_images_);
  const auto dataset = OpenIdx({.images = images_, .labels = labels_, .classes = 10, .limit = 0});
  ASSERT_FALSE(dataset.ok());
  EXPECT_EQ(dataset.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(dataset.status().message(), HasSubstr(labels_));
}

TEST_F(IdxTest, FolderIsNotAFile) {
  std::filesystem::create_directories(images_);
  const auto dataset = OpenIdx({.images = images_, .labels = labels_, .classes = 10, .limit = 0});
  ASSERT_FALSE(dataset.ok());
  EXPECT_THAT(dataset.status().message(), HasSubstr(images_));
}

TEST_F(IdxTest, PlainFileCutOffAnywhereIsRefused) {
  for (size_t size = 0; size < good_images_.size(); ++size) {
    const Bytes cut(good_images_.begin(), good_images_.begin() + static_cast<int64_t>(size));
    ExpectRefused(cut, good_labels_, StatusCode::kDataLoss,
                  AllOf(HasSubstr(images_), HasSubstr("truncated"),
                        HasSubstr("byte " + std::to_string(size))));
  }
  for (size_t size = 0; size < good_labels_.size(); ++size) {
    const Bytes cut(good_labels_.begin(), good_labels_.begin() + static_cast<int64_t>(size));
    ExpectRefused(good_images_, cut, StatusCode::kDataLoss,
                  AllOf(HasSubstr(labels_), HasSubstr("truncated")));
  }
}

TEST_F(IdxTest, GzipFileCutOffAnywhereIsRefused) {
  const Bytes packed = Gzip(good_images_);
  for (size_t size = 0; size < packed.size(); ++size) {
    const Bytes cut(packed.begin(), packed.begin() + static_cast<int64_t>(size));
    ExpectRefused(cut, good_labels_, StatusCode::kDataLoss, HasSubstr(images_));
  }
}

TEST_F(IdxTest, TruncatedContentInWholeGzipIsRefused) {
  const Bytes cut(good_images_.begin(), good_images_.end() - 5);
  ExpectRefused(Gzip(cut), good_labels_, StatusCode::kDataLoss,
                AllOf(HasSubstr("truncated"), HasSubstr("byte 95"), HasSubstr("100 bytes")));
}

TEST_F(IdxTest, FlippedBitInGzipNeverGoesUnnoticed) {
  const Bytes packed = Gzip(good_images_);
  for (size_t byte = 10; byte < packed.size(); ++byte) {  // the first ten are the header
    for (int bit = 0; bit < 8; ++bit) {
      Bytes damaged = packed;
      damaged[byte] = static_cast<uint8_t>(damaged[byte] ^ (1 << bit));
      EXPECT_FALSE(Open(damaged, good_labels_).ok()) << "byte " << byte << " bit " << bit;
    }
  }
}

TEST_F(IdxTest, BytesBehindTheEndAreRefused) {
  Bytes longer = good_images_;
  longer.push_back(0);
  ExpectRefused(longer, good_labels_, StatusCode::kDataLoss, HasSubstr("after byte 100"));
  ExpectRefused(Gzip(longer), good_labels_, StatusCode::kDataLoss, HasSubstr("after byte 100"));
  Bytes garbage = Gzip(good_images_);
  garbage.insert(garbage.end(), {'j', 'u', 'n', 'k'});
  ExpectRefused(garbage, good_labels_, StatusCode::kDataLoss, HasSubstr(images_));
}

TEST_F(IdxTest, WrongMagicNumberIsNamed) {
  Bytes floats = good_images_;
  floats[2] = 0x0D;
  ExpectRefused(floats, good_labels_, StatusCode::kInvalidArgument,
                AllOf(HasSubstr(images_), HasSubstr("0x00000d03"), HasSubstr("0x00000803")));
  ExpectRefused(Bytes{'P', 'N', 'G', '!'}, good_labels_, StatusCode::kInvalidArgument,
                HasSubstr("0x504e4721"));
}

TEST_F(IdxTest, SwappedFilesAreSuspected) {
  ExpectRefused(good_labels_, good_images_, StatusCode::kInvalidArgument, HasSubstr("swapped"));
}

TEST_F(IdxTest, DifferentCountsAreRefused) {
  ExpectRefused(good_images_, Idx({6}, Labels(6, kClasses)), StatusCode::kInvalidArgument,
                AllOf(HasSubstr("7 images"), HasSubstr("6 labels")));
}

TEST_F(IdxTest, LabelOutsideTheClassesIsNamed) {
  Bytes labels = good_labels_;
  labels[8 + 5] = 10;
  ExpectRefused(good_images_, labels, StatusCode::kInvalidArgument,
                AllOf(HasSubstr(labels_), HasSubstr("label 10"), HasSubstr("sample 5"),
                      HasSubstr("byte 13"), HasSubstr("data.classes = 10")));
}

TEST_F(IdxTest, EmptySetAndSenselessExtentsAreRefused) {
  ExpectRefused(Idx({0, 4, 3}, {}), Idx({0}, {}), StatusCode::kInvalidArgument,
                HasSubstr("no samples"));
  ExpectRefused(Idx({7, 0, 3}, {}), good_labels_, StatusCode::kInvalidArgument,
                AllOf(HasSubstr("extent 0"), HasSubstr("byte 8")));
  ExpectRefused(Idx({7, 4, 0xffffffffu}, Pattern(84)), good_labels_, StatusCode::kInvalidArgument,
                AllOf(HasSubstr("extent 4294967295"), HasSubstr("byte 12")));
}

TEST_F(IdxTest, PromiseThatTheFileCannotKeepCostsNoMemory) {
  // 4 G images of 16384 x 16384: would overflow, or take 2^60 bytes, where it was believed.
  const Bytes huge = Idx({0xffffffffu, 16384, 16384}, Pattern(1000));
  ExpectRefused(huge, good_labels_, StatusCode::kDataLoss, HasSubstr("truncated"));
  ExpectRefused(Gzip(huge), good_labels_, StatusCode::kDataLoss, HasSubstr("cannot hold"));
  ExpectRefused(good_images_, Idx({0xffffffffu}, {}), StatusCode::kDataLoss,
                HasSubstr("truncated"));
}

TEST_F(IdxTest, GzipBombIsReadNoFurtherThanItsHeaderPromises) {
  // Unpacks to 64 MiB of zeros behind a header that promises 84 bytes of pixels.
  Bytes bomb = good_images_;
  bomb.resize(64 << 20, 0);
  const Bytes packed = Gzip(bomb);
  ASSERT_LT(packed.size(), 100'000u);
  bomb = Bytes();
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  ExpectRefused(packed, good_labels_, StatusCode::kDataLoss, HasSubstr("after byte 100"));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  // Making the bomb took the process to its high-water mark; refusing it does not raise that.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 * 1024) << "KiB";
}

TEST_F(IdxTest, MemoryGrowsOnlyWithBytesThatWereThere) {
  // A header that promises 1 GB in a gzip file just long enough to be able to hold it.
  const Bytes stub = Idx({1'000'000, 32, 32}, Bytes(3 << 20, 0));
  Bytes packed = Gzip(stub);
  packed.resize(1'100'000, 0);  // what follows is no gzip member
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  ExpectRefused(packed, Idx({1'000'000}, Labels(1'000'000, kClasses)), StatusCode::kDataLoss,
                HasSubstr(images_));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  // Half of what was promised; a sanitizer's shadow of the few MB counts, too.
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 500 * 1024) << "KiB";
}

}  // namespace
}  // namespace kumo
