
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "data/content_hash.h"
#include "models/backend/cpu/cpu_backend.h"
#include "tests/data/image_bytes.h"
#include "tests/data/test_files.h"
#include "tests/worker/training/trainer_harness.h"
#include "worker/training/job_memory.h"
#include "worker/training/opened_job.h"

namespace kumo {

namespace {

using testing::AllOf;
using testing::HasSubstr;

class OpenedJobTest : public TrainerTest {
 protected:
  static std::string WriteNetwork(const std::string& name, const std::string& text) {
    PosixFileSystem files;
    const std::string path = folder_ + "/" + name;
    CHECK(WriteFileAtomically(files, path, text).ok());
    return path;
  }
};

TEST_F(OpenedJobTest, ItsSpecIsWhatTheNetworkAndTheDataAre) {
  for (const bool keeps : {false, true}) {
    Experiment e = Block();
    e.optimiser.type = OptimiserType::kAdam;
    e.block.reset_local_state = !keeps;
    const OpenedJob job = OpenJob(e).value();
    const Dataset& train = *job.datasets.train;
    EXPECT_EQ(job.spec.layout.fingerprint(),
              ParameterLayout::Make(job.net->tensors())->fingerprint());
    EXPECT_EQ(job.spec.train_samples, 90);
    EXPECT_EQ(job.spec.validation_samples, 23);
    EXPECT_EQ(job.spec.train.hash, ContentHash(train).value());
    EXPECT_EQ(job.spec.validation.hash, ContentHash(*job.datasets.validation).value());
    EXPECT_NE(job.spec.train.hash, job.spec.validation.hash);
    EXPECT_EQ(job.spec.train.name, train.name());
    EXPECT_EQ(job.spec.optimiser_slots, keeps ? job.optimiser->slots() : 0);
    EXPECT_GE(job.rooms.largest(), 8);
    EXPECT_TRUE(job.schedule);
  }
}

TEST_F(OpenedJobTest, SamplesAreTransformedAsTheExperimentSays) {
  const OpenedJob plain = OpenJob(Block()).value();
  EXPECT_TRUE(plain.datasets.pixels[0].mean.empty());
  EXPECT_TRUE(plain.datasets.transforms.empty());
  const OpenedJob job = OpenJob(Augmented(Block())).value();
  EXPECT_EQ(std::ssize(job.datasets.pixels[0].mean), job.datasets.train->fields()[0].numbers());
  EXPECT_EQ(job.datasets.transforms.size(), 1u);
}

TEST_F(OpenedJobTest, ANetworkThatTheDataDoNotFitIsRefusedNamingBoth) {
  Experiment e = Block();
  std::string text = kTinyNetwork;
  text.replace(text.find("height: 28"), 10, "height: 32");
  e.network.file = WriteNetwork("taller.pbtxt", text);
  Status status = OpenJob(e).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("taller.pbtxt"), HasSubstr("1x32x28"),
                                      HasSubstr("1x28x28"), testing::Not(HasSubstr("image_size")),
                                      HasSubstr("set input { channels: 1 height: 28 width: 28 }")));
  text = kTinyNetwork;
  text.replace(text.find("outputs: 10"), 11, "outputs: 9");
  e.network.file = WriteNetwork("fewer.pbtxt", text);
  status = OpenJob(e).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("fewer.pbtxt"), HasSubstr("9 outputs"),
                    HasSubstr("give layer fc2 10 outputs, or set data.classes = 9")));
}

TEST_F(OpenedJobTest, WhatIsNotThereIsNamed) {
  Experiment e = Block();
  e.network.file = folder_ + "/none.pbtxt";
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("none.pbtxt"));
  e = Block();
  e.data.directory = folder_ + "/nowhere";
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("nowhere"));
  e = Block();
  e.network.device = {Device::Kind::kCuda, 99};
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("cuda:99"));
  e = Block();
  e.schedule.warmup = e.job.epochs;
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("schedule.warmup"));
}

// Images and masks of 3 classes, of 8 x 8 pixels.
TEST_F(OpenedJobTest, MasksThatAreFilledUpNeedALossThatIgnoresTheFilling) {
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i) + ".png";
    test::WriteFile(folder_ + "/images/" + name,
                    test::Png({3, 8, 8}, test::ImagePixels(i, {3, 8, 8})));
    test::WriteFile(folder_ + "/masks/" + name, test::MaskPng(8, 8, test::Labels(64, 3)));
  }
  Experiment e = Block();
  e.data.reader = DataReader::kMasks;
  e.data.train_images = "images";
  e.data.train_labels = "masks";
  e.data.validation_images = "";
  e.data.classes = 3;
  const auto write = [&](const std::string& fields) {
    e.network.file = WriteNetwork("masks.pbtxt", R"(
      name: "masks"
      input { channels: 3 height: 8 width: 8 }
      layers { name: "scores" convolution { outputs: 3 kernel: 1 } }
      layers { name: "loss" targets: "mask" softmax_cross_entropy { )" +
                                                     fields + " } }");
  };
  const auto refusals_of = [&] {
    return std::pair(OpenJob(e).status(), MemoryOfJob(e, 1).status());
  };
  write("");
  auto [opened, checked] = refusals_of();
  EXPECT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(checked.ok()) << checked.message();
  e.data.crop_pad = 2;
  std::tie(opened, checked) = refusals_of();
  EXPECT_EQ(opened.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(opened.message(),
              AllOf(HasSubstr("masks.pbtxt"), HasSubstr("data.crop_pad gives field \"mask\""),
                    HasSubstr("write softmax_cross_entropy { ignored_label: 255 }")));
  EXPECT_EQ(checked.message(), opened.message());
  write("ignored_label: 0");
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("layer loss does not ignore them"));
  write("ignored_label: 255");
  std::tie(opened, checked) = refusals_of();
  EXPECT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(checked.ok()) << checked.message();
  write("");
  e.data.crop_pad = 0;
  e.data.image_size = "3x8x8";
  e.data.expand = 2;
  EXPECT_THAT(OpenJob(e).status().message(), HasSubstr("data.expand gives field \"mask\""));
}

}  // namespace

namespace {

TEST(BindInputsTest, TheSettingThatMakesImageFilesFitIsNamed) {
  model::Network network;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "n" input { channels: 3 height: 8 width: 8 }
         layers { name: "flat" flatten {} }
         layers { name: "fc" fully_connected { outputs: 2 } }
         layers { name: "loss" softmax_cross_entropy {} })",
      &network));
  const auto backend = MakeCpuBackend(1);
  const auto net = Net::Make(network, 4, backend.get()).value();
  const Field label = {kLabelField, NumberType::kInt32, {}};
  const auto connect = [&](DataReader reader, std::vector<int64_t> extents) {
    return BindInputs(reader, {{kImageField, NumberType::kUint8, std::move(extents)}, label}, {},
                      net.get());
  };
  EXPECT_TRUE(connect(DataReader::kImageFolder, {3, 8, 8}).ok());
  EXPECT_THAT(
      connect(DataReader::kImageFolder, {3, 480, 640}).message(),
      testing::EndsWith("; set data.image_size = 3x8x8, with which all images are resized, or "
                        "input { channels: 3 height: 480 width: 640 } in the network"));
  EXPECT_THAT(connect(DataReader::kIdx, {3, 9, 8}).message(),
              testing::Not(testing::HasSubstr("image_size")));
  // Of the right size, and something else is wrong.
  EXPECT_THAT(BindInputs(DataReader::kImageMap, {{kImageField, NumberType::kUint8, {3, 8, 8}}}, {},
                         net.get())
                  .message(),
              testing::Not(testing::HasSubstr("image_size")));
}

}  // namespace

}  // namespace kumo
