#include "worker/training/initial_weights.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "common/settings/experiment_text.h"
#include "common/tensor_files/tensor_file.h"
#include "models/network.h"
#include "tests/scratch_directory.h"
#include "worker/inference/stored_model.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParameterLayout Source() {
  return ParameterLayout::Make({{"conv.weight", {4, 3}, Segment::kDecayed},
                                {"head.weight", {10, 4}, Segment::kDecayed},
                                {"conv.bias", {4}, Segment::kUndecayed},
                                {"head.bias", {10}, Segment::kUndecayed},
                                {"norm.mean", {4}, Segment::kStatistics}})
      .value();
}

// 12 classes, the tensors in another order, and one that is new.
ParameterLayout NewHead() {
  return ParameterLayout::Make({{"head.weight", {12, 4}, Segment::kDecayed},
                                {"extra.weight", {5}, Segment::kDecayed},
                                {"conv.weight", {4, 3}, Segment::kDecayed},
                                {"norm.mean", {4}, Segment::kDecayed},
                                {"conv.bias", {4}, Segment::kUndecayed}})
      .value();
}

class TransferTest : public testing::Test {
 protected:
  // A job's output with one checkpoint: start weights 1000 + position, evaluated ones 2000 +
  // position where the rule keeps them apart, in the first segment.
  std::string SaveSource(bool with_tensors = true) {
    const ParameterLayout layout = Source();
    std::vector<float> start(layout.size()), apart(layout.segment(Segment::kDecayed).size());
    std::iota(start.begin(), start.end(), 1000.0f);
    std::iota(apart.begin(), apart.end(), 2000.0f);
    const ShardFileHeader header = {.fingerprint = layout.fingerprint(),
                                    .version = 5,
                                    .generation = 1,
                                    .shard = 0,
                                    .shards = 1};
    const std::string folder = directory_ / "out/checkpoints";
    const auto saved = SaveShard(files_, folder, header,
                                 {5,
                                  {{StateKind::kStart, 0, 0, 0, nullptr, start},
                                   {StateKind::kWeights, 0, 0, 0, nullptr, apart}}});
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    checkpoint::Manifest manifest;
    manifest.set_generation(1);
    manifest.set_version(5);
    manifest.set_fingerprint(layout.fingerprint());
    if (with_tensors) SetTensors(layout, &manifest);
    Experiment trained;
    trained.data.mean = {0.5};
    manifest.set_experiment_text(ExperimentText(trained));
    checkpoint::File* file = manifest.add_files();
    file->set_name(ShardFileName(0, 1, 1));
    file->set_bytes(saved->bytes);
    file->set_crc32c(saved->crc32c);
    EXPECT_TRUE(WriteManifest(files_, folder, manifest).ok());
    return directory_ / "out";
  }
  static std::vector<float> Tensor(const ParameterLayout& layout, const std::vector<float>& weights,
                                   int i) {
    return {weights.begin() + layout.tensor(i).begin, weights.begin() + layout.tensor(i).end};
  }
  // Few tensors suffice.
  static Experiment From(const std::string& path, const std::string& names = "") {
    Experiment experiment;
    experiment.network.initial_weights = path;
    experiment.network.initial_names = names;
    experiment.network.initial_partial = true;
    return experiment;
  }
  static std::vector<float> Counting(float first, size_t n) {
    std::vector<float> numbers(n);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }

  test::ScratchDirectory directory_;
  PosixFileSystem files_;
};

TEST_F(TransferTest, TensorsOfTheSameNameAndShapeAreTakenBitForBitAndTheOthersLeft) {
  const std::string out = SaveSource();
  const ParameterLayout layout = NewHead();
  std::vector<float> weights(layout.size(), -1.0f);
  const auto origin = TransferWeights(From(out), layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->checkpoint(), out + "/checkpoints/" + CheckpointName(5));
  EXPECT_THAT(origin->taken(), ElementsAre("conv.weight", "conv.bias"));
  EXPECT_THAT(origin->left(),
              ElementsAre("head.weight: [10, 4] in the source, [12, 4] in the network",
                          "extra.weight: the checkpoint has no such tensor",
                          "norm.mean: a statistic in the source, but trained in the network"));
  EXPECT_THAT(origin->unused(), ElementsAre("head.bias [10]"));
  EXPECT_EQ(origin->tensors(), 5);
  EXPECT_EQ(origin->tensors_taken(), 2);
  // What was evaluated, where that is kept apart.
  EXPECT_EQ(Tensor(layout, weights, 2), Counting(2000, 12));
  EXPECT_EQ(Tensor(layout, weights, 4),
            Counting(1000 + static_cast<float>(Source().tensor(2).begin), 4));
  for (const int i : {0, 1, 3}) {
    EXPECT_THAT(Tensor(layout, weights, i), testing::Each(-1.0f)) << i;
  }
}

TEST_F(TransferTest, ALinkToACheckpointIsTheCheckpoint) {
  const std::string folder = SaveSource() + "/checkpoints/" + CheckpointName(5);
  std::filesystem::create_directory_symlink(folder, directory_ / "latest");
  const ParameterLayout layout = NewHead();
  std::vector<float> weights(layout.size());
  const auto origin = TransferWeights(From(directory_ / "latest"), layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_THAT(origin->taken(), ElementsAre("conv.weight", "conv.bias"));
  for (const char* path : {"latest", "latest/", "latest/."}) {
    const auto stored = LoadStoredWeights(directory_ / path, Source());
    EXPECT_TRUE(stored.ok()) << path << ": " << stored.status().message();
  }
}

// Without the cache each command would decode archives again.
TEST_F(TransferTest, AModelOfAFolderHasTheDataFoldersOfTheEnvironment) {
  const Variables variables = {{"KUMO_DATA", "/data"}, {"HOME", "/home/me"}};
  const auto model =
      OpenStoredModel({.file = SaveSource(), .sets = {}, .checkpoint = "", .variables = variables});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->experiment.data.directory, "/data");
  EXPECT_EQ(model->experiment.data.cache, "/home/me/.cache/kumo");
}

TEST_F(TransferTest, FewerThanHalfOfTheTensorsAreNoStartUnlessThatIsAllowed) {
  Experiment experiment = From(SaveSource());
  experiment.network.initial_partial = false;
  std::vector<float> weights(NewHead().size());
  const Status refused = TransferWeights(experiment, NewHead(), weights).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              HasSubstr("only 2 of 5 tensors of the network are in checkpoint "));
  EXPECT_THAT(refused.message(),
              HasSubstr("(conv.weight, conv.bias); not taken: head.weight: [10"));
  EXPECT_THAT(refused.message(), HasSubstr("--partial (network.initial_partial=true)"));
  const ParameterLayout half = ParameterLayout::Make({{"conv.weight", {4, 3}, Segment::kDecayed},
                                                      {"tail", {3}, Segment::kDecayed}})
                                   .value();
  std::vector<float> others(half.size());
  EXPECT_TRUE(TransferWeights(experiment, half, others).ok()) << "half of them";
}

TEST_F(TransferTest, OtherPixelsThanThoseOfTheCheckpointAreNoted) {
  Experiment experiment = From(SaveSource());
  std::vector<float> weights(Source().size());
  const auto origin = TransferWeights(experiment, Source(), weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_THAT(origin->notes(), ElementsAre(HasSubstr("data.mean = 0.5, here it is empty")));
  experiment.data.mean = {0.5};
  experiment.data.train_images = "other";
  EXPECT_THAT(TransferWeights(experiment, Source(), weights)->notes(), testing::IsEmpty());
}

TEST_F(TransferTest, WhereNothingFitsItIsRefusedWithBothSidesNames) {
  const std::string out = SaveSource();
  const ParameterLayout layout =
      ParameterLayout::Make({{"fc.weight", {4, 3}, Segment::kDecayed}}).value();
  std::vector<float> weights(layout.size());
  const Status status = TransferWeights(From(out), layout, weights).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("conv.weight [4, 3], head.weight [10, 4]"));
  EXPECT_THAT(status.message(), HasSubstr("the network has fc.weight [4, 3]"));
}

TEST_F(TransferTest, ACheckpointOfAnOlderReleaseStartsTheSameNetworkOnly) {
  const std::string out = SaveSource(/*with_tensors=*/false);
  std::vector<float> weights(Source().size());
  const auto origin = TransferWeights(From(out), Source(), weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->tensors_taken(), 5);
  std::vector<float> others(NewHead().size());
  EXPECT_THAT(TransferWeights(From(out), NewHead(), others).status().message(),
              HasSubstr("release 0.1"));
}

TEST_F(TransferTest, ADamagedOneIsRefused) {
  const std::string out = SaveSource();
  const std::string folder = out + "/checkpoints/" + CheckpointName(5);
  const std::string file = folder + "/" + ShardFileName(0, 1, 1);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  std::vector<float> weights(Source().size());
  for (const std::string& path : {out, folder}) {
    EXPECT_THAT(TransferWeights(From(path), Source(), weights).status().message(),
                HasSubstr(ShardFileName(0, 1, 1)));
  }
}

TEST_F(TransferTest, TheMessageOfADamagedOneNamesTheNewestValidOne) {
  const std::string out = SaveSource();
  const std::string folder = out + "/checkpoints";
  const std::string other = folder + "/" + CheckpointName(6);
  std::filesystem::create_directory(other);
  std::ofstream(other + "/MANIFEST") << "no manifest";
  std::vector<float> weights(Source().size());
  EXPECT_THAT(TransferWeights(From(other), Source(), weights).status().message(),
              testing::EndsWith("; use " + folder + "/" + CheckpointName(5) +
                                ", the newest valid checkpoint of that folder"));
  std::filesystem::remove_all(folder + "/" + CheckpointName(5));
  EXPECT_THAT(TransferWeights(From(other), Source(), weights).status().message(),
              testing::EndsWith("no checkpoint in " + folder + " is valid"));
}

// As another program may write it: other names, another head, and numbers that are no weights.
class FromFileTest : public TransferTest, public testing::WithParamInterface<const char*> {
 protected:
  std::string Save(std::vector<NamedTensor> tensors) {
    const std::string path = directory_ / (std::string("weights") + GetParam());
    const Status written = WriteTensorFile(files_, path, *TensorFormatOf(path), tensors);
    EXPECT_TRUE(written.ok()) << written.message();
    return path;
  }
  std::string Names(const std::string& text) {
    std::ofstream(directory_ / "names.txt") << text;
    return directory_ / "names.txt";
  }
  const std::vector<float> numbers_ = Counting(1, 40);
  std::span<const float> First(size_t n) const { return std::span(numbers_).first(n); }
};
INSTANTIATE_TEST_SUITE_P(, FromFileTest, testing::Values(".safetensors", ".npz"),
                         [](const auto& ending) { return std::string(ending.param).substr(1); });

TEST_P(FromFileTest, TensorsOfTheSameNameAndShapeAreTaken) {
  const std::string path = Save({{"conv.weight", {4, 3}, First(12)},
                                 {"head.weight", {10, 4}, First(40)},
                                 {"norm.mean", {4}, First(4)},
                                 {"tail.weight", {2}, First(2)}});
  const ParameterLayout layout = NewHead();
  std::vector<float> weights(layout.size(), -1.0f);
  const auto origin = TransferWeights(From(path), layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->checkpoint(), path);
  EXPECT_THAT(origin->taken(), ElementsAre("conv.weight", "norm.mean"));
  EXPECT_THAT(origin->left(),
              ElementsAre("head.weight: [10, 4] in the source, [12, 4] in the network",
                          "extra.weight: the file has no such tensor",
                          "conv.bias: the file has no such tensor"));
  EXPECT_THAT(origin->unused(), ElementsAre("tail.weight [2]"));
  EXPECT_EQ(Tensor(layout, weights, 2), Counting(1, 12));
  EXPECT_EQ(Tensor(layout, weights, 3), Counting(1, 4));
  for (const int i : {0, 1, 4}) EXPECT_THAT(Tensor(layout, weights, i), testing::Each(-1.0f)) << i;
}

TEST_P(FromFileTest, NamesOfThereAreSaidByAFile) {
  const std::string path = Save({{"backbone.0.weight", {4, 3}, First(12)},
                                 {"backbone.0.bias", {4}, First(4)},
                                 {"conv.bias", {4}, First(4)}});
  const ParameterLayout layout = NewHead();
  std::vector<float> weights(layout.size());
  const auto origin = TransferWeights(From(path, Names("# of torchvision's\r\n"
                                                       "backbone.0.weight = conv.weight\n\n"
                                                       "backbone.0.bias=conv.bias # not its own\n"
                                                       "backbone.9.weight = extra.weight")),
                                      layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_THAT(origin->taken(), ElementsAre("conv.weight", "conv.bias"));
  EXPECT_THAT(origin->unused(), ElementsAre("conv.bias [4]"));
  EXPECT_THAT(origin->left(),
              testing::Contains("extra.weight: the file has no tensor backbone.9.weight"));
}

TEST_P(FromFileTest, TheFileOfNamesSaysForWhichPixelsTheWeightsAre) {
  const std::string path = Save({{"conv.weight", {4, 3}, First(12)}});
  const std::string names = Names(
      "pixels data.mean = 0.5, 0.25, 0.125\n"
      "pixels data.std = 2\n"
      "pixels data.scale = 0.00392156862745098  # 1/255, the default");
  std::vector<float> weights(NewHead().size());
  Experiment experiment = From(path, names);
  experiment.data.mean = {0.5, 0.25, 0.125};
  const auto origin = TransferWeights(experiment, NewHead(), weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_THAT(origin->notes(), ElementsAre(HasSubstr("data.std = 2, here it is empty")));
}

TEST(TensorNamesTest, MapsOfVggsNamesComeWithSsd) {
  const std::string zoo = KUMO_ZOO;
  const auto network = LoadNetwork(zoo + "/voc_ssd300.pbtxt", {.classes = 20});
  ASSERT_TRUE(network.ok()) << network.status().message();
  const auto layout = ParameterLayout::Make(PlanNetwork(*network)->tensors()).value();
  const auto of = [&](const char* program, const char* name) {
    const auto names = TensorNames::Read(zoo + "/voc_ssd300." + program + ".names", layout);
    EXPECT_TRUE(names.ok()) << names.status().message();
    EXPECT_EQ(names->pixels().front().first, "data.scale");
    const int tensor = names->Find(name);
    return tensor < 0 ? "none" : layout.tensors()[tensor].name;
  };
  EXPECT_EQ(of("torchvision", "features.28.bias"), "conv5_3.bias");
  EXPECT_EQ(of("torchvision", "classifier.0.weight"), "none");
  EXPECT_EQ(of("chainercv", "extractor/conv6/W"), "conv6.weight");
  EXPECT_EQ(of("chainercv", "extractor/norm4/scale"), "norm4.scale");
}

TEST_P(FromFileTest, NormalisationsMayHaveTheWordsOfPytorch) {
  const auto layout =
      ParameterLayout::Make({{"layer1.0.bn.scale", {3}, Segment::kUndecayed},
                             {"layer1.0.bn.shift", {3}, Segment::kUndecayed},
                             {"layer1.0.bn.running_variance", {3}, Segment::kStatistics},
                             {"own.scale", {2}, Segment::kUndecayed}})
          .value();
  const std::string path = Save({{"layer1.0.bn.bias", {3}, First(3)},
                                 {"layer1.0.bn.running_var", {3}, First(3)},
                                 {"layer1.0.bn.weight", {3}, First(3)},
                                 {"own.scale", {2}, First(2)},
                                 {"own.weight", {2}, First(4).last(2)}});
  std::vector<float> weights(layout.size());
  const auto origin = TransferWeights(From(path), layout, weights);
  ASSERT_TRUE(origin.ok()) << origin.status().message();
  EXPECT_EQ(origin->taken_size(), 4);
  // The very name counts more.
  EXPECT_EQ(Tensor(layout, weights, 3), std::vector<float>(First(2).begin(), First(2).end()));
}

TEST(TensorNamesTest, AMapOfTorchvisionsNamesComesWithResnet50) {
  const auto network = LoadNetwork(std::string(KUMO_ZOO) + "/imagenet_resnet50.pbtxt");
  ASSERT_TRUE(network.ok()) << network.status().message();
  const auto layout = ParameterLayout::Make(PlanNetwork(*network)->tensors()).value();
  Experiment::Network settings;
  settings.file = std::string(KUMO_ZOO) + "/imagenet_resnet50.pbtxt";
  settings.initial_names = "/experiments/torchvision";
  const std::string file = NamesFileOf(settings);
  EXPECT_THAT(file, testing::EndsWith("/imagenet_resnet50.torchvision.names"));
  const auto names = TensorNames::Read(file, layout);
  ASSERT_TRUE(names.ok()) << names.status().message();
  int renamed = 0;
  for (size_t i = 0; i < layout.tensors().size(); ++i) {
    renamed += names->NameOf(static_cast<int>(i)) != layout.tensors()[i].name ? 1 : 0;
  }
  EXPECT_EQ(renamed, 265);  // all but fc's
  const int tensor = names->Find("layer4.2.bn3.running_var");
  ASSERT_GE(tensor, 0);
  EXPECT_EQ(layout.tensors()[tensor].name, "stage4_block3_bn3.running_variance");
  // A path is a path.
  settings.initial_names = "names.txt";
  EXPECT_EQ(NamesFileOf(settings), "names.txt");
}

TEST_P(FromFileTest, AFileOfNamesThatIsWrongIsRefusedByItsLine) {
  const std::string path = Save({{"conv.weight", {4, 3}, First(12)}});
  const auto refusal = [&](const std::string& text) {
    std::vector<float> weights(NewHead().size());
    return TransferWeights(From(path, Names(text)), NewHead(), weights).status().message();
  };
  EXPECT_THAT(refusal("a = conv.weigth"),
              HasSubstr("names.txt:1: the network has no tensor conv.weigth; did you mean "
                        "conv.weight?"));
  EXPECT_THAT(refusal("\na conv.weight"),
              HasSubstr("names.txt:2: expected `source name = network name`"));
  EXPECT_THAT(refusal("a = conv.weight\nb = conv.weight"),
              HasSubstr("names.txt:2: conv.weight has a name already, in line 1"));
  EXPECT_THAT(refusal("pixels data.classes = 3"),
              HasSubstr("names.txt:1: pixels: data.classes is no setting of pixels"));
  EXPECT_THAT(refusal("pixels data.std = 0"), HasSubstr("names.txt:1: data.std: "));
  EXPECT_THAT(refusal("a = conv.weight\na = conv.bias"),
              HasSubstr("names.txt:2: a has a name already, in line 1"));
}

TEST_P(FromFileTest, WhereNothingFitsItIsRefusedWithBothSidesNames) {
  const std::vector<float> many = Counting(0, 9408);
  const std::string path = Save({{"features.0.weight", {64, 3, 7, 7}, many}});
  std::vector<float> weights(NewHead().size());
  const std::string refusal = TransferWeights(From(path), NewHead(), weights).status().message();
  EXPECT_THAT(refusal, HasSubstr("it has features.0.weight [64, 3, 7, 7]; the network has"));
  EXPECT_THAT(refusal, HasSubstr("network.initial_names"));
}

}  // namespace
}  // namespace kumo
