// The files of experiments/ and docs/experiments.md against the option table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/settings/option_pages.h"
#include "common/settings/parser.h"

namespace kumo {
namespace {

const std::filesystem::path kRoot = KUMO_SOURCE_DIRECTORY;

TEST(ExperimentsPage, IsWhatTheOptionTableSays) {
  std::ifstream file(kRoot / "docs/experiments.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), OptionsMarkdown())
      << "refresh it: kumo options --markdown > docs/experiments.md";
}

TEST(Experiments, EveryFileLoadsWithoutProblemOrNoteAndItsNetworkExists) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "experiments")) {
    if (entry.path().extension() != ".conf") continue;
    ++files;
    const LoadedExperiment loaded = LoadExperiment(entry.path().string(), {}, {});
    EXPECT_THAT(loaded.problems, ::testing::ElementsAre()) << entry.path();
    EXPECT_THAT(loaded.notes, ::testing::ElementsAre()) << entry.path();
    EXPECT_TRUE(std::filesystem::exists(loaded.experiment.network.file))
        << loaded.experiment.network.file;
  }
  EXPECT_GE(files, 3);
}

TEST(Experiments, LenetIsTheOneThatIsPublished) {
  const auto lenet =
      ParseExperiment((kRoot / "experiments/mnist_lenet.conf").string(), {}, {}).value();
  EXPECT_EQ(lenet.job.name, "mnist_lenet");
  EXPECT_EQ(lenet.sync.mode, SyncMode::kBlock);
  EXPECT_EQ(lenet.sync.partitions, 2);
  EXPECT_EQ(lenet.sync.push_codec, CodecId::kOneBit);
  EXPECT_EQ(lenet.schedule.learning_rate, .05);
  EXPECT_EQ(lenet.schedule.milestones, std::vector<double>{10});
  EXPECT_EQ(lenet.optimiser.weight_decay, 1e-4f);
}

}  // namespace
}  // namespace kumo
