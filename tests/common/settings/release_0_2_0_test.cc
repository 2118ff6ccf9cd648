// Settings as release 0.2.0 had them: its keys are still read, its experiment texts mean the same,
// and unchanged experiments keep their hash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/fnv.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

using ::testing::ElementsAre;

std::string ContentsOf(const std::string& name) {
  std::ifstream file(std::filesystem::path(KUMO_SOURCE_DIRECTORY) /
                     "tests/common/settings/release_0_2_0" / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of a job whose data.deviation was 0.25; its manifest had this text and this hash.
std::string Text() { return ContentsOf("experiment_text.txt"); }
constexpr uint64_t kHash = 0x8c11cb733c19e2b9;

// A text without the settings that later releases have added.
std::string WithoutNewSettings(const std::string& text) {
  const std::string old = "\n" + Text();
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(" = "));
    if (old.find("\n" + key + " = ") != std::string::npos) kept += line + "\n";
  }
  return kept;
}

// The settings that ExperimentOfText leaves out.
Experiment ExperimentOf(std::string_view text) {
  Experiment experiment = ExperimentOfText(text).value();
  experiment.job.name = "old";
  return experiment;
}

TEST(Release020, EverySettingIsReadAndHasTheSameDefault) {
  const OptionTable& table = OptionTable::Shared();
  const Experiment defaults;
  std::istringstream lines(ContentsOf("defaults.conf"));
  int settings = 0;
  for (std::string line; std::getline(lines, line); ++settings) {
    const size_t equals = line.find(" = ");
    ASSERT_NE(equals, std::string::npos) << line;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 3);
    const Option* const option = table.Find(key);
    ASSERT_NE(option, nullptr) << key;
    if (!option->default_text.empty()) continue;  // worked out by the parser
    Experiment read;
    const Status status = option->read(value, &read);
    EXPECT_TRUE(status.ok()) << line << ": " << status.message();
    EXPECT_EQ(option->write(read), option->write(defaults)) << line;
  }
  EXPECT_EQ(settings, 115);  // all of that release
}

TEST(Release020, AnExperimentKeepsItsTextAndHash) {
  const Experiment experiment = ExperimentOf(Text());
  EXPECT_EQ(experiment.data.std_dev, std::vector<double>{0.25});
  const std::string text = ExperimentText(experiment);
  EXPECT_EQ(WithoutNewSettings(text), Text());
  Fnv1a hash;
  hash.Add(WithoutNewSettings(text));
  EXPECT_EQ(hash.value(), kHash);
  // A setting of the result that is added gives every experiment another hash.
  EXPECT_EQ(ExperimentHash(experiment) == kHash, text == Text());
}

TEST(Release020, ARenamedSettingIsComparedAndNamedByItsNewName) {
  Experiment experiment = ExperimentOf(Text());
  EXPECT_THAT(SettingChanges(Text(), experiment), ElementsAre());
  experiment.data.std_dev = {0.5};
  EXPECT_EQ(DescribeChanges(SettingChanges(Text(), experiment)), "data.std 0.25 -> 0.5");
  EXPECT_EQ(FirstDifference(WithoutNewSettings(ExperimentText(experiment)), Text()),
            "data.std is 0.5 here and 0.25 there");
  // By its new name too.
  std::string renamed = Text();
  renamed.replace(renamed.find("data.deviation"), 14, "data.std");
  EXPECT_EQ(ExperimentOf(renamed).data.std_dev, std::vector<double>{0.25});
  EXPECT_EQ(DescribeChanges(SettingChanges(renamed, experiment)), "data.std 0.25 -> 0.5");
}

}  // namespace
}  // namespace kumo
