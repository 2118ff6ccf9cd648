#include "data/mean_image.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/samples/dataset.h"
#include "tests/data/pixel_reference.h"

namespace kumo {
namespace {

// Also where the number of samples is no multiple of how many are read at once.
TEST(MeanImageTest, IsThePlainMeanWhereverTheImagesLie) {
  Rng rng(1, RngPurpose::kTest);
  for (const int64_t samples : {1, 2, 255, 256, 257, 1000}) {
    const test::Extents extents = {3, 5, 7};
    const int64_t size = test::Numbers(extents);
    const std::vector<uint8_t> pixels = test::RandomBytes(rng, samples * size);
    const MemoryDataset dataset("images", extents, 2, pixels, std::vector<int32_t>(samples));
    std::vector<float> expected;
    for (int64_t j = 0; j < size; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < samples; ++i) sum += pixels[i * size + j];
      expected.push_back(static_cast<float>(sum / static_cast<double>(samples)));
    }
    EXPECT_EQ(MeanImages(dataset).value()[0], expected) << samples;
    EXPECT_EQ(MeanImages(test::ReadEachTime(&dataset)).value()[0], expected) << samples;
  }
}

TEST(MeanImageTest, SumsDoNotOverflow) {
  constexpr int64_t kSamples = 20'000'000;  // of 255: beyond 32 bits
  const MemoryDataset white("white", {1, 1, 1}, 2, std::vector<uint8_t>(kSamples, 255),
                            std::vector<int32_t>(kSamples));
  EXPECT_EQ(MeanImages(white).value()[0], std::vector<float>{255.0f});
}

class Broken final : public Dataset {
 public:
  explicit Broken(std::vector<int64_t> extents = {1, 2, 2}) : fields_(LabelledImage(extents)) {}

  int64_t size() const override { return 100; }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return 2; }
  const std::string& name() const override { return name_; }
  Status ReadKey(const SampleKey&, Sample*) const override { return DataLoss("the disk is gone"); }

 private:
  Fields fields_;
  std::string name_ = "broken";
};

// As the pictures of a reader that scales them later: there is nothing to sum.
TEST(MeanImageTest, PicturesOfNoFixedSizeHaveNone) {
  const Broken sizeless({3, 0, 0});
  const Status status = MeanImages(sizeless).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::HasSubstr("have no fixed size"));
}

TEST(MeanImageTest, ADataSetThatCannotBeReadIsSaid) {
  EXPECT_EQ(MeanImages(Broken()).status().message(), "the disk is gone");
}

}  // namespace
}  // namespace kumo
