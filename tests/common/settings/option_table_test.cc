#include "common/settings/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/codec/codec.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

TEST(OptionTable, KeysAreUniqueAndSectionsAreContiguous) {
  const OptionTable& table = OptionTable::Shared();
  const std::set<std::string> keys(table.keys().begin(), table.keys().end());
  EXPECT_EQ(keys.size(), table.options().size());
  const std::set<std::string> sections(table.sections().begin(), table.sections().end());
  EXPECT_EQ(sections.size(), table.sections().size()) << "a section is scattered";
  for (const std::string& section : sections) {
    EXPECT_NE(OptionTable::SectionHelp(section), "") << section;
  }
}

TEST(OptionTable, EveryRowHasHelpWithoutAFullStop) {
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    ASSERT_FALSE(option.help.empty()) << option.key;
    EXPECT_NE(option.Help().back(), '.') << option.key;
  }
}

TEST(OptionTable, EveryDefaultIsAllowedAndReadsBackAsItself) {
  const OptionTable& table = OptionTable::Shared();
  const Experiment defaults;
  for (const Option& option : table.options()) {
    const std::string text = option.write(defaults);
    if (!option.default_text.empty() && text.empty()) continue;  // worked out by the parser
    Experiment read;
    const Status status = option.read(text, &read);
    EXPECT_TRUE(status.ok()) << option.key << " = " << text << ": " << status.message();
    EXPECT_EQ(option.write(read), text) << option.key;
  }
}

TEST(OptionTable, AWordThatIsNoChoiceIsRefusedEvenIfAllValuesAreAllowed) {
  SyncMode mode = SyncMode::kBlock;
  const Status refused = ReadValue("blocks", Allowed{}, &mode);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "must be one of gradient, block, async");
  EXPECT_EQ(mode, SyncMode::kBlock);
  ASSERT_TRUE(ReadValue("gradient", Allowed{}, &mode).ok());
  EXPECT_EQ(mode, SyncMode::kGradient);
}

TEST(OptionTable, ChoicesAreAllowedAsTheirListsNameThem) {
  const OptionTable& table = OptionTable::Shared();
  std::vector<std::string> pushes, pulls, values;
  for (const Codec* codec : AllCodecs()) {
    const CodecTraits& traits = codec->traits();
    pushes.emplace_back(codec->name());
    if (traits.codes_pulls) pulls.emplace_back(codec->name());
    if (!traits.selects && !traits.needs_feedback) values.emplace_back(codec->name());
  }
  EXPECT_EQ(table.Find("sync.push_codec")->allowed.values, pushes);
  EXPECT_EQ(table.Find("sync.pull_codec")->allowed.values, pulls);
  EXPECT_EQ(table.Find("sync.topk_values")->allowed.values, values);
  EXPECT_LT(values.size(), pulls.size());
  EXPECT_LT(pulls.size(), pushes.size());
  int choices = 0;
  std::set<std::string> narrowed;
  for (const Option& option : table.options()) {
    const auto words = option.field.type->words();
    if (words.empty()) continue;
    ++choices;
    std::vector<std::string> allowed;
    for (const auto& [word, help] : words) {
      Experiment e;
      if (std::ranges::count(option.allowed.values, word) == 0) {
        narrowed.insert(std::string(option.key));
        EXPECT_FALSE(option.read(word, &e).ok()) << option.key << " " << word;
        continue;
      }
      allowed.emplace_back(word);
      ASSERT_TRUE(option.read(word, &e).ok()) << option.key << " " << word;
      EXPECT_EQ(option.write(e), word) << option.key;
      if (!help.empty()) {
        EXPECT_THAT(option.Help(), HasSubstr(std::string(word) + ": " + std::string(help)));
      }
    }
    EXPECT_EQ(option.allowed.values, allowed) << option.key;
  }
  EXPECT_EQ(narrowed, (std::set<std::string>{"sync.pull_codec", "sync.topk_values"}));
  EXPECT_GE(choices, 15);
}

TEST(OptionTable, ARefusedValueChangesNothing) {
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    Experiment experiment;
    const std::string before = option.write(experiment);
    const Status status = option.read("\x01 no such value", &experiment);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << option.key;
    EXPECT_EQ(option.write(experiment), before) << option.key;
  }
}

TEST(OptionTable, BoundsThemselvesAreAllowedAndBeyondThemIsNot) {
  const OptionTable& table = OptionTable::Shared();
  const Option* partitions = table.Find("sync.partitions");
  Experiment e;
  EXPECT_TRUE(partitions->read("1", &e).ok());
  EXPECT_TRUE(partitions->read("4096", &e).ok());
  EXPECT_EQ(partitions->read("0", &e).message(), "must be 1 .. 4096");
  EXPECT_EQ(partitions->read("4097", &e).message(), "must be 1 .. 4096");
  EXPECT_EQ(partitions->read("2.0", &e).message(), "must be an integer, 1 .. 4096");
  EXPECT_FALSE(partitions->read("99999999999999999999", &e).ok());
  const Option* momentum = table.Find("optimiser.momentum");
  EXPECT_TRUE(momentum->read("0", &e).ok());
  EXPECT_EQ(momentum->read("1", &e).message(), "must be 0 .. below 1");
  EXPECT_FALSE(momentum->read("nan", &e).ok());
  EXPECT_FALSE(momentum->read("0.5x", &e).ok());
  EXPECT_FALSE(table.Find("schedule.learning_rate")->read("inf", &e).ok());
  EXPECT_FALSE(table.Find("schedule.step")->read("inf", &e).ok());
}

// Rules, schedules and optimisers rely on it. The parser adds the key to the message.
TEST(OptionTable, NumbersOfTheMathematicsHaveBounds) {
  const OptionTable& table = OptionTable::Shared();
  const auto refuses = [&](const char* key, std::initializer_list<const char*> values) {
    Experiment e;
    const Option& option = *table.Find(key);
    for (const char* value : values) {
      const Status status = option.read(value, &e);
      EXPECT_FALSE(status.ok()) << key << " = " << value;
      EXPECT_THAT(status.message(), HasSubstr(option.allowed.Text())) << key << " = " << value;
    }
  };
  for (const char* key : {"optimiser.momentum", "optimiser.beta1", "optimiser.beta2",
                          "optimiser.weight_decay", "block.momentum"}) {
    refuses(key, {"-0.1", "nan", "inf", "1"});
  }
  for (const char* key :
       {"optimiser.epsilon", "block.learning_rate", "schedule.learning_rate", "schedule.step",
        "schedule.gamma", "schedule.power", "schedule.milestones", "schedule.rates"}) {
    refuses(key, {"-1", "nan", "inf", "0"});
  }
  for (const char* key : {"optimiser.clip_norm", "block.time_constant", "schedule.final_rate",
                          "schedule.warmup", "schedule.time_constants"}) {
    refuses(key, {"-1", "nan", "inf"});
  }
  refuses("optimiser.type", {"adagrad", "nonesuch"});
  refuses("schedule.type", {"exponential"});
  refuses("schedule.unit", {"round"});
  refuses("schedule.per", {"epoch"});
  refuses("block.rule", {"median"});
  refuses("block.convention", {"torch"});
  refuses("network.device", {"abacus", "cuda:16", "cuda:x", "cuda:", "cuda:-1"});
  refuses("network.precision", {"half"});
  refuses("network.threads", {"0", "1025"});
}

TEST(OptionTable, DevicesAndCheckpointsAreReadAsTheyAreWritten) {
  const OptionTable& table = OptionTable::Shared();
  Experiment e;
  for (const char* device : {"cpu", "cuda", "cuda:0", "cuda:15"}) {
    ASSERT_TRUE(table.Find("network.device")->read(device, &e).ok()) << device;
    EXPECT_EQ(table.Find("network.device")->write(e), device);
  }
  EXPECT_EQ(e.network.device, (Device{Device::Kind::kCuda, 15}));
  for (const char* from : {"auto", "never", "must", "1200"}) {
    ASSERT_TRUE(table.Find("checkpoint.resume")->read(from, &e).ok()) << from;
    EXPECT_EQ(table.Find("checkpoint.resume")->write(e), from);
  }
  EXPECT_EQ(e.checkpoint.resume.round, 1200);
  EXPECT_EQ(table.Find("checkpoint.resume")->read("-1", &e).message(),
            "must be auto, never, must or a round number");
  const Option& best = *table.Find("checkpoint.best");
  EXPECT_EQ(best.write(e), "none");
  ASSERT_TRUE(best.read("loss", &e).ok());
  EXPECT_EQ(e.checkpoint.best, "loss");
  ASSERT_TRUE(best.read("none", &e).ok());
  EXPECT_EQ(e.checkpoint.best, "");
  EXPECT_FALSE(best.read("", &e).ok());
}

TEST(OptionTable, NoTimeIsSoShortThatItIsNone) {
  const OptionTable& table = OptionTable::Shared();
  int times = 0;
  for (const Option& option : table.options()) {
    if (!option.key.ends_with("_s")) continue;
    ++times;
    Experiment experiment;
    for (const char* short_time : {"0", "-1", "1e-300", "0.001", "nan", "inf"}) {
      EXPECT_FALSE(option.read(short_time, &experiment).ok()) << option.key << " " << short_time;
    }
    EXPECT_TRUE(option.read("0.01", &experiment).ok()) << option.key;
  }
  EXPECT_EQ(times, 6);
}

TEST(OptionTable, WhatIsDoneToImagesHasBounds) {
  const OptionTable& table = OptionTable::Shared();
  Experiment e;
  EXPECT_TRUE(table.Find("data.crop_pad")->read("0", &e).ok());
  EXPECT_TRUE(table.Find("data.crop_pad")->read("1024", &e).ok());
  EXPECT_EQ(e.data.crop_pad, 1024);
  EXPECT_EQ(table.Find("data.crop_pad")->read("-1", &e).message(), "must be 0 .. 1024");
  EXPECT_EQ(table.Find("data.crop_pad")->read("1025", &e).message(), "must be 0 .. 1024");
  EXPECT_TRUE(table.Find("data.pad_value")->read("255", &e).ok());
  EXPECT_EQ(table.Find("data.pad_value")->read("256", &e).message(), "must be 0 .. 255");
  EXPECT_EQ(table.Find("data.pad_value")->read("-1", &e).message(), "must be 0 .. 255");
  EXPECT_TRUE(table.Find("data.hue")->read("0.5", &e).ok());
  EXPECT_EQ(table.Find("data.hue")->read("0.51", &e).message(), "must be 0 .. 0.5");
  EXPECT_FALSE(table.Find("data.std")->read("0.2,0", &e).ok());
  EXPECT_FALSE(table.Find("data.crop_area")->read("0,1", &e).ok());
  EXPECT_FALSE(table.Find("data.crop_area")->read("0.5,1.1", &e).ok());
  for (const char* key : {"data.flip", "data.subtract_mean"}) {
    EXPECT_TRUE(table.Find(key)->read("true", &e).ok());
    EXPECT_FALSE(table.Find(key)->read("0.5", &e).ok());
  }
  EXPECT_TRUE(e.data.flip);
  EXPECT_TRUE(e.data.subtract_mean);
}

TEST(OptionTable, AnUnknownWordOfAListIsRefusedWithTheNearest) {
  const OptionTable& table = OptionTable::Shared();
  Experiment e;
  EXPECT_EQ(table.Find("sync.mode")->read("blcok", &e).message(),
            "must be one of gradient, block, async; did you mean block?");
}

TEST(OptionTable, ListsAreReadWithOrWithoutSpaces) {
  const OptionTable& table = OptionTable::Shared();
  Experiment e;
  ASSERT_TRUE(table.Find("schedule.milestones")->read(" 10,20 , 30.5 ", &e).ok());
  EXPECT_EQ(e.schedule.milestones, (std::vector<double>{10, 20, 30.5}));
  EXPECT_FALSE(table.Find("schedule.milestones")->read("10,,20", &e).ok());
  EXPECT_FALSE(table.Find("schedule.milestones")->read("10,-1", &e).ok());
  ASSERT_TRUE(table.Find("schedule.milestones")->read("", &e).ok());
  EXPECT_TRUE(e.schedule.milestones.empty());
}

TEST(WriteValue, EveryNumberReadsBackAsTheSameBits) {
  Rng rng(2, RngPurpose::kTest);
  for (int i = 0; i < 5000; ++i) {
    double number;
    const uint64_t bits = rng.NextUint64();
    std::memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number)) continue;
    double read = 0;
    ASSERT_TRUE(ReadValue(WriteValue(number), Allowed(), &read).ok()) << WriteValue(number);
    EXPECT_EQ(std::memcmp(&read, &number, sizeof(read)), 0) << WriteValue(number);
  }
}

}  // namespace
}  // namespace kumo
