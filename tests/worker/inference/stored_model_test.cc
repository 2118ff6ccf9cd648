#include "worker/inference/stored_model.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/settings/experiment_text.h"
#include "models/network.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(StoredModelTest, AnotherNetworkIsNamed) {
  checkpoint::Manifest manifest;
  EXPECT_TRUE(CheckSameNetwork(manifest, "layers { name: \"a\" tanh {} }", {}).ok());
  manifest.set_network("layers { name: \"a\" relu {} }");
  EXPECT_TRUE(CheckSameNetwork(manifest, manifest.network(), {}).ok());
  EXPECT_THAT(CheckSameNetwork(manifest, "layers { name: \"a\" tanh {} }", {}).message(),
              HasSubstr("layer a relu { } -> tanh { }"));
  EXPECT_TRUE(
      CheckSameNetwork(manifest, "layers { name: \"a\" tanh {} }", {"network.file = x"}).ok());
}

TEST(StoredModelTest, InputsOfOtherSettingsAreRefusedUnlessTheyAreAskedFor) {
  Experiment then;
  then.data.mean = {0.5, 0.25};
  then.data.scale = 0.25;
  then.data.shorter_side = 12;
  checkpoint::Manifest manifest;
  manifest.set_experiment_text(ExperimentText(then));
  EXPECT_TRUE(CheckSameInputs(manifest, then, {}).ok());
  Experiment now = then;
  now.data.shorter_side = 0;  // is of what is evaluated
  EXPECT_TRUE(CheckSameInputs(manifest, now, {}).ok());
  now.data.mean.clear();
  now.data.scale = 1;
  const Status refused = CheckSameInputs(manifest, now, {"data.shorter_side=0"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("data.mean 0.5, 0.25 -> empty"), HasSubstr("data.scale 0.25 -> 1"),
                    HasSubstr("--set data.scale=0.25"), HasSubstr("--set data.mean=0.5,0.25")));
  EXPECT_THAT(CheckSameInputs(manifest, now, {"data.mean="}).message(),
              AllOf(HasSubstr("data.scale"), Not(HasSubstr("data.mean"))));
  EXPECT_TRUE(CheckSameInputs(manifest, now, {"data.mean=", "data.scale = 1"}).ok());
  Experiment swapped = then;
  swapped.data.columns = "features:numbers:b+a,label:class";
  EXPECT_THAT(CheckSameInputs(manifest, swapped, {}).message(), HasSubstr("data.columns"));
  // A setting is named by its old key, too.
  Experiment renamed = then;
  renamed.data.std_dev = {2, 4};
  EXPECT_THAT(CheckSameInputs(manifest, renamed, {}).message(),
              HasSubstr("data.std empty -> 2, 4"));
  EXPECT_TRUE(CheckSameInputs(manifest, renamed, {"data.std=2,4"}).ok());
  EXPECT_TRUE(CheckSameInputs(manifest, renamed, {"data.deviation = 2,4"}).ok());
}

// A manifest has no more than 4,096 names. Without them tokens would pass for bytes.
TEST(StoredModelTest, CharactersThatTheManifestLacksComeFromTheText) {
  const test::ScratchDirectory folder;
  std::ofstream(folder / "text") << std::string(50, 'a') + std::string(50, 'b');
  StoredModel model;
  model.manifest.set_network(R"(
      name: "text" input { name: "tokens" extents: 4 vocabulary: 2 }
      layers { name: "embedding" embedding { outputs: 2 } }
      layers { name: "last" fully_connected { outputs: 2 per_position: true } }
      layers { name: "loss" softmax_cross_entropy {} })");
  const auto network = ParseNetwork(model.manifest.network(), "the test");
  ASSERT_TRUE(network.ok()) << network.status().message();
  model.layout = *ParameterLayout::Make(PlanNetwork(*network)->tensors());
  Experiment::Data& data = model.experiment.data;
  data.reader = DataReader::kText;
  data.directory = folder.path();
  data.text = "text";
  data.window = 4;
  model.manifest.set_experiment_text(ExperimentText(model.experiment));
  EXPECT_TRUE(HasCharacters(data));
  const auto found = DataOf(model);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_THAT(found->class_names, testing::ElementsAre("a", "b"));
  data.directory = folder / "elsewhere";
  const auto missing = DataOf(model);
  ASSERT_TRUE(missing.ok()) << missing.status().message();
  EXPECT_THAT(missing->class_names, testing::IsEmpty()) << "predict asks for the text then";
}

// A table's picture has the name of its column.
TEST(StoredModelTest, PicturesOfAnyNameAreNormalised) {
  StoredModel model;
  model.manifest.set_network(R"(
      name: "photos" input { name: "photo" channels: 3 height: 4 width: 2 }
      layers { name: "last" fully_connected { outputs: 2 } }
      layers { name: "loss" softmax_cross_entropy {} })");
  model.manifest.add_class_names("a");
  model.manifest.add_class_names("b");
  const auto network = ParseNetwork(model.manifest.network(), "the test");
  ASSERT_TRUE(network.ok()) << network.status().message();
  model.layout = *ParameterLayout::Make(PlanNetwork(*network)->tensors());
  Experiment::Data& data = model.experiment.data;
  data.reader = DataReader::kTable;
  data.columns = "photo:picture:path,label:class:kind";
  data.scale = 1;
  data.mean = {1, 2, 3};
  data.std_dev = {1, 2, 4};
  model.manifest.set_experiment_text(ExperimentText(model.experiment));
  const auto found = DataOf(model);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->pixels.mean.size(), 3 * 4 * 2);
  EXPECT_THAT(found->pixels.scales, testing::ElementsAre(1, 0.5, 0.25));
}

TEST(StoredModelTest, ClassesThatAreCalledOtherwiseAreNamed) {
  checkpoint::Manifest manifest;
  const std::vector<std::string> names = {"bird", "cat", "dog"};
  EXPECT_TRUE(CheckSameClasses(manifest, names).ok());
  for (const char* name : {"bird", "cat", "dog"}) manifest.add_class_names(name);
  EXPECT_TRUE(CheckSameClasses(manifest, names).ok());
  EXPECT_TRUE(CheckSameClasses(manifest, {}).ok());
  EXPECT_THAT(CheckSameClasses(manifest, std::vector<std::string>{"bird", "cow", "dog"}).message(),
              HasSubstr("class 1 is 'cat' in the checkpoint, 'cow' in the data"));
  EXPECT_THAT(CheckSameClasses(manifest, std::vector<std::string>{"bird", "cat"}).message(),
              HasSubstr("class 2 is 'dog' in the checkpoint, missing in the data"));
}

}  // namespace
}  // namespace kumo
