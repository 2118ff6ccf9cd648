// kumo new --data: the files that it writes for a data set.
#include "cli/new/new_from_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/settings/parser.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

DescribedData Images(int64_t samples, int64_t side) {
  DescribedData data;
  data.form = "image folders of 5 classes";
  data.settings = {{"reader", "image_folder"},
                   {"directory", "/some where"},
                   {"train_images", "photos"},
                   {"validation_share", "0.1"},
                   {"classes", "5"}};
  data.train_samples = samples;
  data.validation_samples = samples / 9;
  data.field = "image";
  data.bytes = true;
  data.extents = {3, side, side};
  data.classes = 5;
  return data;
}

class NewFromDataTest : public ::testing::Test {
 protected:
  // Without problems or notes.
  Experiment Load(const DescribedData& data) {
    const std::string text = ExperimentFor("mine", data);
    EXPECT_LE(std::ranges::count(text, '\n'), 45) << text;
    std::ofstream(folder_ / "mine.conf") << text;
    const LoadedExperiment loaded = LoadExperiment(folder_ / "mine.conf", {}, {{"HOME", "/me"}});
    EXPECT_THAT(loaded.problems, ElementsAre()) << text;
    EXPECT_THAT(loaded.notes, ElementsAre()) << text;
    return loaded.experiment;
  }
  const test::ScratchDirectory folder_;
};

TEST_F(NewFromDataTest, BlocksAndTheWarmUpGrowWithTheSamples) {
  int block = 0;
  for (const int64_t samples : {100, 1000, 5000, 20'000, 1'000'000}) {
    const Experiment experiment = Load(Images(samples, 32));
    EXPECT_TRUE(experiment.data.SplitsTrainingFiles());
    EXPECT_EQ(experiment.data.directory, "/some where");
    const bool blocks = experiment.sync.mode == SyncMode::kBlock;
    EXPECT_EQ(blocks, samples > 2000) << samples;
    if (!blocks) continue;
    EXPECT_GT(experiment.sync.block, block);
    block = experiment.sync.block;
    EXPECT_EQ(experiment.sync.warmup_samples, samples);
    EXPECT_GE(samples / (experiment.sync.partitions * experiment.sync.minibatch * block), 8);
  }
}

TEST_F(NewFromDataTest, ImagesGetConvolutionsWithBatchNormalisationDownToSmallMaps) {
  const std::string small = NetworkFor("mine", Images(100, 5), "");
  EXPECT_THAT(small, AllOf(HasSubstr("height: 5"), HasSubstr("norm1"), Not(HasSubstr("pool1")),
                           HasSubstr("global_average_pooling"), HasSubstr("outputs: 5 ")));
  EXPECT_THAT(NetworkFor("mine", Images(100, 64), ""),
              AllOf(HasSubstr("pool4"), Not(HasSubstr("pool5"))));
}

TEST_F(NewFromDataTest, PathsStandForThemselves) {
  DescribedData data = Images(100, 8);
  for (const char* const path : {"/a$b", "/x$$y", "/${HOME}"}) {
    for (auto& [key, value] : data.settings) {
      if (key == "directory") value = path;
    }
    EXPECT_EQ(Load(data).data.directory, path);
  }
}

TEST_F(NewFromDataTest, TheNetworksNameIsOneOfNetworks) {
  EXPECT_THAT(NetworkFor("my-digits-2", Images(100, 8), ""),
              testing::StartsWith("name: \"my_digits_2\"\n"));
}

TEST_F(NewFromDataTest, NumbersGetAPerceptronWithTheLossOfTheirLabels) {
  DescribedData data = Images(300, 1);
  data.settings = {
      {"reader", "ctf"}, {"train_images", "a.ctf"}, {"validation_share", "0.1"}, {"classes", "0"}};
  data.bytes = false;
  data.extents = {1};
  data.features = 1;
  EXPECT_EQ(SizesText(data), "300 training samples of 1 number, 33 validation samples");
  data.extents = {1, 7, 1};
  data.classes = 0;
  data.label_numbers = 3;
  data.label_mean = 500;
  data.label_deviation = 80;
  EXPECT_EQ(Load(data).sync.mode, SyncMode::kGradient);
  EXPECT_THAT(NetworkFor("mine", data, ""),
              AllOf(HasSubstr("extents: 7"), HasSubstr("outputs: 3 "), HasSubstr("deviation: 10 "),
                    HasSubstr("value: 500 "), HasSubstr("squared")));
}

TEST_F(NewFromDataTest, ATextGetsTheNetworkOfTexts) {
  DescribedData data;
  data.settings = {{"reader", "text"}, {"text", "book.txt"}};
  data.field = "tokens";
  data.extents = {64};
  data.classes = 91;
  data.train_samples = 100;
  EXPECT_EQ(Load(data).optimiser.type, OptimiserType::kAdamW);
  const std::string network = "input { vocabulary: vocabulary } fc { outputs: 384 }";
  EXPECT_EQ(NetworkFor("mine", data, network), network);
}

TEST_F(NewFromDataTest, ImagesWithObjectsGetADetector) {
  DescribedData data = Images(292, 300);
  data.settings = {{"reader", "voc"},           {"train_images", "bccd:trainval"},
                   {"validation_share", "0.1"}, {"classes", "5"},
                   {"image_size", "3x300x300"}, {"expand", "4"}};
  data.objects = 4000;
  const Experiment experiment = Load(data);
  EXPECT_EQ(experiment.checkpoint.best, "map");
  EXPECT_EQ(experiment.job.epochs, 69);
  EXPECT_EQ(experiment.evaluation.every_epochs, 5);
  EXPECT_EQ(ModelFor(data), "bccd_ssd300_slim");
  EXPECT_EQ(NetworkFor("mine", data, "its network"), "its network");
  EXPECT_EQ(ModelFor(Images(292, 300)), "");
}

TEST_F(NewFromDataTest, RowsOfATableGetAnInputByTheNameOfItsField) {
  DescribedData data = Images(300, 1);
  data.settings = {{"reader", "table"},
                   {"train_images", "iris.csv"},
                   {"validation_share", "0.1"},
                   {"columns", "features:numbers:a b..d,label:class:kind"},
                   {"classes", "3"}};
  data.bytes = false;
  data.field = "features";
  data.extents = {4};
  data.features = 4;
  data.classes = 3;
  EXPECT_EQ(Load(data).data.columns, "features:numbers:a b..d,label:class:kind");
  EXPECT_THAT(SizesText(data), HasSubstr("of 4 numbers,"));
  EXPECT_THAT(NetworkFor("mine", data, ""),
              AllOf(HasSubstr("input { name: \"features\" extents: 4 }"), HasSubstr("outputs: 3 "),
                    HasSubstr("softmax")));
}

TEST_F(NewFromDataTest, NumbersBesideImagesJoinThemBelowTheLastLayer) {
  DescribedData data = Images(300, 8);
  data.features = 2;
  EXPECT_THAT(SizesText(data), HasSubstr("of 3x8x8 and 2 numbers,"));
  EXPECT_THAT(
      NetworkFor("mine", data, ""),
      AllOf(HasSubstr("height: 8"), HasSubstr("input { name: \"features\" extents: 2 }"),
            HasSubstr("{ name: \"both\" inputs: \"mean\" inputs: \"numbers\" concat {} }")));
}

TEST_F(NewFromDataTest, ImagesWithMasksGetAUNetOfTheirSize) {
  DescribedData data = Images(100, 96);
  data.settings = {{"reader", "masks"},
                   {"train_images", "set/images"},
                   {"train_labels", "set/masks"},
                   {"validation_share", "0.1"},
                   {"classes", "5"},
                   {"image_size", "3x96x96"},
                   {"resize", "stretch"}};
  data.masks = true;
  const Experiment experiment = Load(data);
  EXPECT_EQ(experiment.checkpoint.best, "accuracy");
  EXPECT_EQ(experiment.job.epochs, 161);
  EXPECT_EQ(ModelFor(data), "scenes_unet");
  const std::string network = NetworkFor(
      "my-set", data, "# Of 64 x 64.\nname: \"unet\"\ninput { channels: 3 }\n\n# Encoder.\nlayers");
  EXPECT_THAT(network, AllOf(HasSubstr("name: \"my_set\"\ninput { channels: 3 height: 96 width: "
                                       "96 }\n\n# Encoder.\nlayers"),
                             Not(HasSubstr("64"))));
}

}  // namespace
}  // namespace kumo
