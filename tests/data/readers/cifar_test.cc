#include "data/readers/all.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"
#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using test::Bytes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kPixels = 3072;

// Samples of these labels, one or two bytes each, and pixels that count on from `first`.
Bytes Batch(const std::vector<Bytes>& labels, uint8_t first = 0) {
  Bytes batch;
  for (const Bytes& label : labels) {
    batch.insert(batch.end(), label.begin(), label.end());
    for (size_t i = 0; i < kPixels; ++i) batch.push_back(static_cast<uint8_t>(first + i));
    ++first;
  }
  return batch;
}

class CifarReaderTest : public testing::Test {
 protected:
  ReaderRequest Request(const std::string& path, int classes) const {
    ReaderRequest request;
    request.images = scratch_ / path;
    request.classes = classes;
    return request;
  }
  test::ScratchDirectory scratch_;
};

TEST_F(CifarReaderTest, AFoldersBatchesAreReadInTheirOrder) {
  test::WriteFile(scratch_ / "c/data_batch_2.bin", Batch({{7}, {8}}, 20));
  test::WriteFile(scratch_ / "c/data_batch_1.bin", Batch({{1}, {2}, {3}}, 10));
  test::WriteFile(scratch_ / "c/test_batch.bin", Batch({{9}}));
  test::WriteFile(scratch_ / "c/readme.html", {'h', 'i'});
  const auto set = OpenCifar(Request("c", 10));
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ((*set)->fields(), LabelledImage({3, 32, 32}));
  const test::Contents contents = test::ReadAll(**set);
  EXPECT_THAT(contents.labels, ElementsAre(1, 2, 3, 7, 8));
  EXPECT_EQ(contents.pixels[0], 10);
  EXPECT_EQ(contents.pixels[kPixels - 1], static_cast<uint8_t>(10 + kPixels - 1));
  EXPECT_EQ(contents.pixels[3 * kPixels], 20);
  const auto test_set = OpenCifar(Request("c/test_batch.bin", 10));
  ASSERT_TRUE(test_set.ok()) << test_set.status().message();
  EXPECT_THAT(test::ReadAll(**test_set).labels, ElementsAre(9));
}

TEST_F(CifarReaderTest, ALimitGoesOverFiles) {
  test::WriteFile(scratch_ / "c/data_batch_1.bin", Batch({{1}, {2}}));
  test::WriteFile(scratch_ / "c/data_batch_2.bin", Batch({{3}, {4}}));
  ReaderRequest request = Request("c", 10);
  request.limit = 3;
  EXPECT_THAT(test::ReadAll(*OpenCifar(request).value()).labels, ElementsAre(1, 2, 3));
  EXPECT_EQ(MeasureCifar(request)->samples, 3);
  request.limit = 1;
  EXPECT_THAT(test::ReadAll(*OpenCifar(request).value()).labels, ElementsAre(1));
}

TEST_F(CifarReaderTest, OfCifar100TheClassesSayWhichLabelCounts) {
  test::WriteFile(scratch_ / "train.bin", Batch({{3, 98}, {19, 4}}));
  EXPECT_THAT(test::ReadAll(*OpenCifar(Request("train.bin", 100)).value()).labels,
              ElementsAre(98, 4));
  EXPECT_THAT(test::ReadAll(*OpenCifar(Request("train.bin", 20)).value()).labels,
              ElementsAre(3, 19));
  EXPECT_THAT(OpenCifar(Request("train.bin", 10)).status().message(),
              AllOf(HasSubstr("6148 bytes are not a multiple of 3073 bytes"),
                    HasSubstr("data.classes = 10")));
}

TEST_F(CifarReaderTest, ALabelThatIsNoneIsRefusedByItsPlace) {
  test::WriteFile(scratch_ / "a.bin", Batch({{3}, {10}}));
  EXPECT_THAT(OpenCifar(Request("a.bin", 10)).status().message(),
              HasSubstr("a.bin: label 10 of sample 1 (byte 3073) is not below data.classes = 10"));
}

TEST_F(CifarReaderTest, AFolderWithoutBatchesSaysWhatToName) {
  test::WriteFile(scratch_ / "c/train.bin", Batch({{1, 1}}));
  EXPECT_THAT(OpenCifar(Request("c", 100)).status().message(),
              HasSubstr("contains no data_batch_*.bin; name the file to read, such as " +
                        scratch_ / "c/train.bin"));
}

}  // namespace
}  // namespace kumo
