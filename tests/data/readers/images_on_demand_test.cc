#include "data/readers/images_on_demand.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "data/batch_stream.h"
#include "data/content_hash.h"
#include "data/readers/all.h"
#include "data/samples/dataset.h"
#include "data/samples/validation_split.h"
#include "tests/data/image_bytes.h"
#include "tests/data/pixel_reference.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::NamedFiles;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kStoredClasses = 3;
constexpr int64_t kStoredImages = 23;

// Photographs of different sizes, JPEG and PNG, grey and not.
NamedFiles Photographs() {
  NamedFiles files;
  for (int64_t i = 0; i < kStoredImages; ++i) {
    const std::vector<int64_t> extents = {i % 5 == 0 ? 1 : 3, 20 + i % 7, 31 - i % 4};
    const test::Bytes pixels = test::ImagePixels(i, extents);
    const std::string name =
        "train/class" + std::to_string(i % kStoredClasses) + "/" + std::to_string(100 + i);
    if (i % 2 == 0) {
      files.emplace_back(name + ".png", test::Png(extents, pixels));
    } else {
      files.emplace_back(name + ".jpg", test::Jpeg(extents, pixels));
    }
  }
  return files;
}

class ImagesOnDemandTest : public testing::Test {
 protected:
  ImagesOnDemandTest() {
    test::WriteFiles(scratch_ / "set", files_);
    test::WriteFile(scratch_ / "set.tar", test::Archive(test::Pack::kTar, files_));
    test::WriteFile(scratch_ / "set.zip", test::Archive(test::Pack::kZip, files_));
    test::WriteFile(scratch_ / "deflated.zip", test::Archive(test::Pack::kDeflatedZip, files_));
    test::WriteFile(scratch_ / "set.tar.gz", test::Archive(test::Pack::kTarGz, files_));
  }
  ReaderRequest Request(const std::string& path, DecodeImages decode) const {
    ReaderRequest request;
    request.images = scratch_ / path + "/train";
    request.classes = kStoredClasses;
    request.image_size = {3, 12, 16};
    request.decode = decode;
    return request;
  }

  test::ScratchDirectory scratch_;
  const NamedFiles files_ = Photographs();
};

TEST_F(ImagesOnDemandTest, SamplesAreThoseOfTheSetInMemoryWhateverHoldsTheFiles) {
  const auto in_memory = OpenImageFolder(Request("set", DecodeImages::kAtStart));
  ASSERT_TRUE(in_memory.ok()) << in_memory.status().message();
  const test::Contents expected = test::ReadAll(**in_memory);
  for (const char* path : {"set", "set.tar", "set.zip", "deflated.zip"}) {
    const auto set = OpenImageFolder(Request(path, DecodeImages::kOnDemand));
    ASSERT_TRUE(set.ok()) << path << ": " << set.status().message();
    EXPECT_FALSE((*set)->in_memory());
    EXPECT_TRUE((*in_memory)->in_memory());
    EXPECT_EQ((*set)->fields(), (*in_memory)->fields());
    EXPECT_TRUE(std::ranges::equal((*set)->class_names(), (*in_memory)->class_names()));
    EXPECT_EQ(test::ReadAll(**set), expected) << path;
    EXPECT_EQ(ContentHash(**set).value(), ContentHash(**in_memory).value());
  }
}

TEST_F(ImagesOnDemandTest, MinibatchesAreThoseOfTheSetInMemoryForAnyNumberOfThreads) {
  const auto in_memory = OpenImageFolder(Request("set", DecodeImages::kAtStart)).value();
  const auto on_demand = OpenImageFolder(Request("set.zip", DecodeImages::kOnDemand)).value();
  Experiment::Data data;
  data.flip = true;
  data.crop_pad = 3;
  data.brightness = 0.3;
  const Transforms transforms =
      MakeTransforms({data, in_memory->fields(), in_memory->name()}).value();
  const auto batches = [&](const Dataset* dataset, int threads) {
    BatchStream stream(dataset,
                       {.seed = 3, .minibatch = 7, .threads = threads, .transforms = transforms});
    std::vector<std::byte> all;
    for (const int64_t epoch : {0, 1}) {
      stream.Start(epoch, {0, kStoredImages});
      while (true) {
        const Minibatch batch = stream.Next().value();
        if (batch.size == 0) break;
        for (const auto field : batch.fields) all.insert(all.end(), field.begin(), field.end());
      }
    }
    return all;
  };
  const auto expected = batches(in_memory.get(), 1);
  for (const int threads : {0, 1, 4}) {
    EXPECT_EQ(batches(on_demand.get(), threads), expected) << threads;
  }
}

TEST_F(ImagesOnDemandTest, OriginalsKeepTheirSizes) {
  for (const char* path : {"set", "set.tar", "deflated.zip"}) {
    ReaderRequest request = Request(path, DecodeImages::kAuto);
    request.originals = true;
    const auto set = OpenImageFolder(request);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ((*set)->fields(), LabelledImage({3, 0, 0}));
    EXPECT_EQ(MeasureImageFolder(request)->fields, (*set)->fields());
    Sample sample((*set)->fields());
    ASSERT_TRUE((*set)->Read(2, &sample).ok());  // a PNG
    const std::vector<int64_t> extents = {3, 22, 29};
    EXPECT_TRUE(std::ranges::equal(sample.extents(0), extents));
    EXPECT_TRUE(std::ranges::equal(sample.pixels(0), test::ImagePixels(2, extents)));
    EXPECT_EQ(test::NumberOf(sample.field(1)), 2);
    ASSERT_TRUE((*set)->Read(0, &sample).ok());  // grey
    EXPECT_THAT(sample.extents(0), testing::ElementsAre(3, 20, 31));
    EXPECT_NE(ContentHash(**set).value(), 0u);
  }
}

TEST_F(ImagesOnDemandTest, ATarInGzipIsRefusedWithWhatToDo) {
  const Status status = OpenImageFolder(Request("set.tar.gz", DecodeImages::kOnDemand)).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(scratch_ / "set.tar.gz"), HasSubstr("compressed as a whole"),
                    HasSubstr("unpack it, or repack it as plain .tar or .zip")));
}

TEST_F(ImagesOnDemandTest, WhatDoesNotFitIsDecodedOnDemandWhereThatCanBe) {
  ReaderRequest request = Request("set", DecodeImages::kAuto);
  const int64_t decoded = kStoredImages * 3 * 12 * 16;
  request.room = decoded;
  EXPECT_TRUE(OpenImageFolder(request).value()->in_memory());
  EXPECT_EQ(MeasureImageFolder(request)->bytes, decoded + kStoredImages * 4);
  request.room = decoded - 1;
  EXPECT_FALSE(OpenImageFolder(request).value()->in_memory());
  EXPECT_LT(MeasureImageFolder(request)->bytes, kStoredImages * 200);
  request = Request("set.tar.gz", DecodeImages::kAuto);
  request.room = 1;
  EXPECT_TRUE(OpenImageFolder(request).value()->in_memory());
}

TEST_F(ImagesOnDemandTest, DamagedImagesAreToldByNameWhenTheyAreRead) {
  NamedFiles files = files_;
  files[4].second.resize(files[4].second.size() / 2);
  test::WriteFiles(scratch_ / "damaged", files);
  test::WriteFile(scratch_ / "damaged.zip", test::Archive(test::Pack::kDeflatedZip, files));
  for (const char* path : {"damaged", "damaged.zip"}) {
    const auto set = OpenImageFolder(Request(path, DecodeImages::kOnDemand));
    ASSERT_TRUE(set.ok()) << set.status().message();
    Sample sample((*set)->fields());
    EXPECT_TRUE((*set)->Read(3, &sample).ok());
    const Status status = (*set)->Read(4, &sample);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(scratch_ / path), HasSubstr("class1/104.png")));
  }
}

// Two in a row, and the last one, which the first one replaces. In any order of reads.
TEST_F(ImagesOnDemandTest, DamagedImagesAreReplacedAlikeWheneverTheyAreDecoded) {
  NamedFiles files = files_;
  for (const int64_t i : {int64_t{4}, int64_t{5}, kStoredImages - 1}) {
    files[i].second.resize(files[i].second.size() / 2);
  }
  test::WriteFiles(scratch_ / "damaged", files);
  test::WriteFile(scratch_ / "damaged.zip", test::Archive(test::Pack::kDeflatedZip, files));
  test::WriteFile(scratch_ / "damaged.tar.gz", test::Archive(test::Pack::kTarGz, files));
  const auto open = [&](const char* path, DecodeImages decode) {
    ReaderRequest request = Request(path, decode);
    request.skip_damaged = true;
    return OpenImageFolder(request);
  };
  const auto whole = OpenImageFolder(Request("set", DecodeImages::kAtStart)).value();
  const auto at_start = open("damaged.tar.gz", DecodeImages::kAtStart).value();
  const test::Contents expected = test::ReadAll(*at_start);
  EXPECT_EQ(at_start->size(), kStoredImages);
  for (const char* path : {"damaged", "damaged.zip"}) {
    const auto set = open(path, DecodeImages::kOnDemand);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(ContentHash(**set).value(), ContentHash(*at_start).value());
    const auto fresh = open(path, DecodeImages::kOnDemand).value();
    Sample sample((*set)->fields()), of_whole(whole->fields());
    for (int64_t i = kStoredImages - 1; i >= 0; --i) {
      const int64_t image = i == 4 || i == 5 ? 6 : i == kStoredImages - 1 ? 0 : i;
      ASSERT_TRUE(fresh->Read(i, &sample).ok());
      ASSERT_TRUE(whole->Read(image, &of_whole).ok());
      EXPECT_TRUE(std::ranges::equal(sample.pixels(0), of_whole.pixels(0))) << i;
      EXPECT_EQ(test::NumberOf(sample.field(1)), image % kStoredClasses) << i;
    }
    EXPECT_EQ(test::ReadAll(**set), expected);
    EXPECT_EQ(test::ReadAll(**set), expected) << "the second time";
  }
  ReaderRequest originals = Request("damaged", DecodeImages::kAuto);
  originals.skip_damaged = originals.originals = true;
  const auto set = OpenImageFolder(originals).value();
  Sample sample(set->fields());
  ASSERT_TRUE(set->Read(4, &sample).ok());
  EXPECT_THAT(sample.extents(0), testing::ElementsAre(3, 26, 29)) << "those of image 6";
}

TEST_F(ImagesOnDemandTest, ADamagedImageIsReplacedByOneOfItsOwnPartOfASplitSet) {
  const auto whole = OpenImageFolder(Request("set", DecodeImages::kAtStart)).value();
  Rng rng(7, RngPurpose::kTest);
  for (const double share : {0.1, 0.4, 0.8}) {
    const std::vector<SplitPart> parts = PartsOfSamples(kStoredImages, share);
    NamedFiles files = files_;
    std::vector<bool> valid(kStoredImages, true);
    for (int64_t i = 0; i < kStoredImages; ++i) {
      // At least one image of each part stays.
      const bool first = std::ranges::find(parts, parts[i]) - parts.begin() == i;
      valid[i] = first || rng.NextBelow(2) == 0;
      if (!valid[i]) files[i].second.resize(files[i].second.size() / 2);
    }
    const std::string name = "split" + std::to_string(share);
    test::WriteFiles(scratch_ / name, files);
    test::WriteFile(scratch_ / (name + ".zip"), test::Archive(test::Pack::kZip, files));
    for (const DecodeImages decode : {DecodeImages::kAtStart, DecodeImages::kOnDemand}) {
      for (const std::string& path : {name, name + ".zip"}) {
        ReaderRequest request = Request(path, decode);
        request.skip_damaged = true;
        request.split_share = share;
        request.cache = scratch_ / "cache";
        const auto set = OpenImageFolder(request);
        ASSERT_TRUE(set.ok()) << set.status().message();
        Sample sample((*set)->fields()), of_whole(whole->fields());
        for (int64_t i = 0; i < kStoredImages; ++i) {
          int64_t image = i;
          while (!valid[image] || parts[image] != parts[i]) image = (image + 1) % kStoredImages;
          ASSERT_TRUE((*set)->Read(i, &sample).ok());
          ASSERT_TRUE(whole->Read(image, &of_whole).ok());
          EXPECT_TRUE(std::ranges::equal(sample.pixels(0), of_whole.pixels(0))) << path << " " << i;
          EXPECT_EQ(test::NumberOf(sample.field(1)), image % kStoredClasses) << i;
        }
      }
    }
    for (int64_t i = 0; i < kStoredImages; ++i) {
      if (parts[i] == SplitPart::kValidation) files[i].second.resize(20);
    }
    test::WriteFiles(scratch_ / (name + "none"), files);
    ReaderRequest request = Request(name + "none", DecodeImages::kAtStart);
    request.skip_damaged = true;
    request.split_share = share;
    EXPECT_THAT(OpenImageFolder(request).status().message(),
                HasSubstr("all images of one part are damaged"));
  }
}

TEST_F(ImagesOnDemandTest, ASetWithoutAValidImageIsRefusedWhenItIsRead) {
  NamedFiles files = files_;
  for (auto& [name, bytes] : files) bytes.resize(bytes.size() / 2);
  test::WriteFiles(scratch_ / "damaged", files);
  ReaderRequest request = Request("damaged", DecodeImages::kOnDemand);
  request.skip_damaged = true;
  const auto set = OpenImageFolder(request).value();
  Sample sample(set->fields());
  EXPECT_THAT(set->Read(3, &sample).message(), HasSubstr("all images are damaged"));
  EXPECT_THAT(set->Read(3, &sample).message(), HasSubstr("all images are damaged"));
}

TEST_F(ImagesOnDemandTest, AFileThatGoesAwayIsNamed) {
  const auto set = OpenImageFolder(Request("set", DecodeImages::kOnDemand)).value();
  std::filesystem::remove(scratch_ / "set/train/class0/100.png");
  Sample sample(set->fields());
  EXPECT_THAT(set->Read(0, &sample).message(), HasSubstr("class0/100.png"));
}

// Bytes of an archive that are another's by now, or that were always wrong: an error or an image of
// the size, and never more memory than a file of it may have.
TEST_F(ImagesOnDemandTest, ChangedBytesOfAnArchiveAreRefusedOrStillAnImage) {
  for (const test::Pack pack : {test::Pack::kTar, test::Pack::kDeflatedZip}) {
    const test::Bytes whole = test::Archive(pack, {files_.begin(), files_.begin() + 4});
    for (size_t byte = 0; byte < whole.size(); byte += 13) {
      test::Bytes changed = whole;
      changed[byte] ^= 0xff;
      test::WriteFile(scratch_ / "changed", changed);
      const auto set = OpenImageFolder(Request("changed", DecodeImages::kOnDemand));
      if (!set.ok()) continue;
      Sample sample((*set)->fields());
      for (int64_t i = 0; i < (*set)->size(); ++i) {
        if (!(*set)->Read(i, &sample).ok()) continue;
        ASSERT_EQ(sample.pixels(0).size(), 3u * 12 * 16);
      }
    }
  }
}

TEST_F(ImagesOnDemandTest, ManyThreadsMayRead) {
  const auto set = OpenImageFolder(Request("deflated.zip", DecodeImages::kOnDemand)).value();
  const test::Contents expected = test::ReadAll(*set);
  std::vector<test::Contents> contents(4);
  std::vector<std::thread> threads;
  for (test::Contents& content : contents) {
    threads.emplace_back([&] { content = test::ReadAll(*set); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(contents, testing::Each(expected));
}

}  // namespace
}  // namespace kumo
