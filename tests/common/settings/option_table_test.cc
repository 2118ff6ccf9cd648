#include "common/settings/option_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/rng.h"
#include "common/codec/codec.h"
#include "common/optimiser/optimiser.h"

namespace kumo {
namespace {

TEST(OptionTable, KeysAreUniqueAndSectionsAreContiguous) {
  const OptionTable table;
  const std::set<std::string> keys(table.keys().begin(), table.keys().end());
  EXPECT_EQ(keys.size(), table.options().size());
  const std::set<std::string> sections(table.sections().begin(), table.sections().end());
  EXPECT_EQ(sections.size(), table.sections().size()) << "a section is scattered";
  for (const std::string& section : sections) {
    EXPECT_NE(OptionTable::SectionHelp(section), "") << section;
  }
}

TEST(OptionTable, EveryRowHasHelpWithoutAFullStop) {
  const OptionTable table;
  for (const Option& option : table.options()) {
    ASSERT_FALSE(option.help.empty()) << option.key;
    EXPECT_NE(option.help.back(), '.') << option.key;
  }
}

TEST(OptionTable, EveryDefaultIsAllowedAndReadsBackAsItself) {
  const OptionTable table;
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

TEST(OptionTable, CodecsAndOptimisersAreAllowedAsTheirListsName) {
  const OptionTable table;
  std::vector<std::string> codecs;
  for (const Codec* codec : AllCodecs()) codecs.emplace_back(codec->name());
  EXPECT_EQ(table.Find("sync.push_codec")->allowed.values, codecs);
  const std::vector<std::string_view> types = OptimiserTypes();
  EXPECT_EQ(table.Find("optimiser.type")->allowed.values,
            std::vector<std::string>(types.begin(), types.end()));
}

TEST(OptionTable, ARefusedValueChangesNothing) {
  const OptionTable table;
  for (const Option& option : table.options()) {
    Experiment experiment;
    const std::string before = option.write(experiment);
    const Status status = option.read("\x01 no such value", &experiment);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << option.key;
    EXPECT_EQ(option.write(experiment), before) << option.key;
  }
}

TEST(OptionTable, BoundsThemselvesAreAllowedAndBeyondThemIsNot) {
  const OptionTable table;
  const Option* partitions = table.Find("sync.partitions");
  Experiment e;
  EXPECT_TRUE(partitions->read("1", &e).ok());
  EXPECT_TRUE(partitions->read("4096", &e).ok());
  EXPECT_EQ(partitions->read("0", &e).message(), "must be 1 .. 4096");
  EXPECT_EQ(partitions->read("4097", &e).message(), "must be 1 .. 4096");
  EXPECT_EQ(partitions->read("2.0", &e).message(), "must be a whole number, 1 .. 4096");
  EXPECT_FALSE(partitions->read("99999999999999999999", &e).ok());
  const Option* momentum = table.Find("optimiser.momentum");
  EXPECT_TRUE(momentum->read("0", &e).ok());
  EXPECT_EQ(momentum->read("1", &e).message(), "must be 0 .. below 1");
  EXPECT_FALSE(momentum->read("nan", &e).ok());
  EXPECT_FALSE(momentum->read("0.5x", &e).ok());
  EXPECT_FALSE(table.Find("schedule.learning_rate")->read("inf", &e).ok());
  EXPECT_FALSE(table.Find("schedule.step")->read("inf", &e).ok());
}

TEST(OptionTable, NoTimeIsSoShortThatItIsNone) {
  const OptionTable table;
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
  const OptionTable table;
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
  EXPECT_FALSE(table.Find("data.deviation")->read("0.2,0", &e).ok());
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
  const OptionTable table;
  Experiment e;
  EXPECT_EQ(table.Find("sync.mode")->read("blcok", &e).message(),
            "must be one of gradient, block; did you mean block?");
}

TEST(OptionTable, ListsAreReadWithOrWithoutSpaces) {
  const OptionTable table;
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
