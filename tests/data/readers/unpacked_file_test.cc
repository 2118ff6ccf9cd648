#include "data/readers/unpacked_file.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/content_hash.h"
#include "data/mean_image.h"
#include "data/readers/all.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
namespace fs = std::filesystem;

class UnpackedFileTest : public testing::Test {
 protected:
  UnpackedFileTest() { test::WriteFile(packed_, {1}); }

  // Of a file that holds its content three times over, in pieces.
  Unpack Thrice(const test::Bytes& bytes) {
    return [this, bytes](const Sink& sink) {
      ++unpacked_;
      for (int i = 0; i < 3; ++i) KUMO_RETURN_IF_ERROR(sink(bytes));
      return OkStatus();
    };
  }
  Result<std::shared_ptr<const MappedFile>> Map(const test::Bytes& bytes) {
    return MapUnpacked(folder_, {packed_, 3 * std::ssize(bytes)}, Thrice(bytes));
  }
  std::vector<std::string> Kept() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path());
    return names;
  }

  test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_ / "a/cache";
  const std::string packed_ = scratch_ / "packed";
  std::atomic<int> unpacked_ = 0;
};

test::Bytes Beginning(const MappedFile& file, size_t count) {
  return {file.bytes().begin(), file.bytes().begin() + count};
}

TEST_F(UnpackedFileTest, IsUnpackedOnceByWhoeverComesFirst) {
  const test::Bytes bytes = test::Pattern(20'000);
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const MappedFile>> files(8);
  for (auto& file : files) {
    threads.emplace_back([&] {
      auto mapped = Map(bytes);
      if (mapped.ok()) file = *mapped;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& file : files) {
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(Beginning(*file, bytes.size()), bytes);
    EXPECT_EQ(file->bytes()[3 * bytes.size() - 1], bytes.back());
  }
  EXPECT_EQ(unpacked_, 1);
  EXPECT_THAT(Kept(), SizeIs(1));
}

TEST_F(UnpackedFileTest, AFileThatChangedIsUnpackedAnew) {
  const auto before = Map({1, 2, 3});
  ASSERT_TRUE(before.ok());
  test::WriteFile(packed_, {2});  // of the same size
  const auto after = Map({4, 5, 6});
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(Beginning(**after, 3), (test::Bytes{4, 5, 6}));
  EXPECT_EQ(Beginning(**before, 3), (test::Bytes{1, 2, 3})) << "who has it keeps it";
  EXPECT_EQ(unpacked_, 2);
  EXPECT_THAT(Kept(), SizeIs(1));
  // What its header promises is another size.
  EXPECT_TRUE(Map({4, 5, 6, 7}).ok());
  EXPECT_EQ(unpacked_, 3);
}

TEST_F(UnpackedFileTest, WhatOthersCouldHaveWrittenOrIsCutOffDoesNotCount) {
  ASSERT_TRUE(Map({1, 2, 3}).ok());
  const std::string kept = Kept().front();
  ASSERT_EQ(::chmod(kept.c_str(), 0666), 0);
  EXPECT_EQ(Beginning(**Map({4, 5, 6}), 3), (test::Bytes{4, 5, 6}));
  fs::resize_file(kept, fs::file_size(kept) - 1);
  EXPECT_EQ(Beginning(**Map({7, 8, 9}), 3), (test::Bytes{7, 8, 9}));
  EXPECT_EQ(unpacked_, 3);
}

TEST_F(UnpackedFileTest, AnErrorLeavesNothingBehind) {
  const auto damaged = MapUnpacked(folder_, {packed_, 3}, [](const Sink& sink) {
    KUMO_RETURN_IF_ERROR(sink(test::Bytes{1}));
    return DataLoss("damaged");
  });
  EXPECT_EQ(damaged.status().message(), "damaged");
  EXPECT_THAT(Kept(), SizeIs(0));
  // It unpacks to more than it promised.
  EXPECT_FALSE(MapUnpacked(folder_, {packed_, 2}, Thrice({1})).ok());

  test::WriteFile(scratch_ / "file", {1});
  const std::string nowhere = scratch_ / "file/cache";
  EXPECT_FALSE(MapUnpacked(nowhere, {packed_, 3}, Thrice({1})).ok());
  EXPECT_FALSE(MapUnpacked("/dev/null", {packed_, 3}, Thrice({1})).ok());
  EXPECT_FALSE(CanMapUnpacked(nowhere, {packed_, 3}));
  EXPECT_FALSE(CanMapUnpacked("/dev/null", {packed_, 3}));
  EXPECT_FALSE(CanMapUnpacked(folder_, {packed_, INT64_MAX}));
  EXPECT_FALSE(CanMapUnpacked(folder_, {scratch_ / "gone", 3}));
  EXPECT_TRUE(CanMapUnpacked(folder_, {packed_, 3}));
}

TEST_F(UnpackedFileTest, WhatHasLostItsPackedFileIsRemoved) {
  const std::string other = scratch_ / "folder/packed";
  test::WriteFile(other, {1});
  ASSERT_TRUE(MapUnpacked(folder_, {other, 3}, Thrice({1})).ok());
  ASSERT_TRUE(Map({1, 2, 3}).ok());
  test::WriteFile(folder_ + "/notes", {'x'});
  EXPECT_THAT(Kept(), SizeIs(3));
  fs::remove_all(scratch_ / "folder");
  test::WriteFile(packed_, {2});
  ASSERT_TRUE(Map({1, 2, 3}).ok());
  EXPECT_THAT(Kept(), SizeIs(2)) << "what is not ours stays";
  EXPECT_EQ(Beginning(**Map({9, 9, 9}), 3), (test::Bytes{1, 2, 3}));
}

TEST_F(UnpackedFileTest, WhatAKilledProcessHasLeftIsRemoved) {
  ASSERT_TRUE(Map({1, 2, 3}).ok());
  test::WriteFile(folder_ + "/.0123-content.tmp", {1});
  test::WriteFile(packed_, {2});
  ASSERT_TRUE(Map({4, 5, 6}).ok());
  EXPECT_THAT(Kept(), SizeIs(1));
}

TEST_F(UnpackedFileTest, WhatTheDiskHasNoRoomForIsNotUnpackedInVain) {
  const auto mapped = MapUnpacked(folder_, {packed_, INT64_MAX}, Thrice({1}));
  EXPECT_EQ(mapped.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(unpacked_, 0);
}

// Of 5 MB: worth a file of its own.
class SharedPixels : public testing::Test {
 protected:
  static constexpr int kSamples = 5000;

  SharedPixels() {
    test::WriteFile(request_.images, images_);
    test::WriteFile(request_.labels, test::Gzip(test::Idx({kSamples}, test::Labels(kSamples, 10))));
  }
  Result<std::unique_ptr<Dataset>> Open(const std::string& cache, int64_t limit = 0) {
    request_.cache = cache;
    request_.limit = limit;
    return OpenIdx(request_);
  }

  test::ScratchDirectory scratch_;
  const std::string folder_ = scratch_ / "cache";
  test::Bytes images_ =
      test::Gzip(test::Idx({kSamples, 32, 32}, test::Pattern(size_t{kSamples} * 1024)));
  ReaderRequest request_{scratch_ / "images", scratch_ / "labels", 10, 0};
};

TEST_F(SharedPixels, AreTheOnesOfAProcessMemory) {
  for (const int64_t limit : {int64_t{0}, int64_t{kSamples - 1}}) {
    const auto own = Open("", limit);
    const auto shared = Open(folder_, limit);
    ASSERT_TRUE(own.ok() && shared.ok());
    EXPECT_EQ(MeasureIdx(request_)->bytes, (*own)->size() * 4) << "labels alone";
    for (int sweep = 0; sweep < 2; ++sweep) {
      EXPECT_EQ(ContentHash(**shared).value(), ContentHash(**own).value());
      EXPECT_EQ(MeanImages(**shared).value(), MeanImages(**own).value());
    }
    EXPECT_EQ(test::ReadAll(**shared), test::ReadAll(**own));
  }
  EXPECT_TRUE(fs::exists(folder_));
}

TEST_F(SharedPixels, AreReadIntoMemoryWhereTheyCannotBeKept) {
  const auto dataset = Open("/dev/null");
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->size(), kSamples);
  EXPECT_EQ(MeasureIdx(request_)->bytes, kSamples * (1024 + 4));
}

TEST_F(SharedPixels, AreNotKeptOfSmallSetsNorOfDamagedFiles) {
  ASSERT_TRUE(Open(folder_, 100).ok());
  EXPECT_FALSE(fs::exists(folder_));
  images_[images_.size() - 6] ^= 1;  // in the checksum, behind the last pixel
  test::WriteFile(request_.images, images_);
  const auto own = Open("");
  const auto shared = Open(folder_);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.status().message(), own.status().message());
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace kumo
