#include "common/settings/settings_json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "common/settings/option_table.h"

namespace kumo {
namespace {

using google::protobuf::Value;

Value Parsed(const std::string& json) {
  Value value;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &value).ok()) << json;
  return value;
}

const Value& Field(const Value& object, const std::string& key) {
  return object.struct_value().fields().at(key);
}

TEST(SettingsJson, NumbersAreNumbersAndListsAreLists) {
  Experiment experiment;
  experiment.schedule.milestones = {10, 20.5};
  experiment.cluster.servers = {"tcp://a:1", "tcp://b:2"};
  experiment.job.name = "a \"b\"";
  const Value settings =
      Parsed(SettingsJson(experiment, {{"schedule.milestones", "x.conf:3"}}).object());
  const auto value = [&](const char* key) { return Field(Field(settings, key), "value"); };
  EXPECT_EQ(value("sync.block").number_value(), 50);
  EXPECT_EQ(value("optimiser.epsilon").number_value(), 1e-8);
  EXPECT_EQ(value("data.flip").kind_case(), Value::kBoolValue);
  EXPECT_EQ(value("job.name").string_value(), "a \"b\"");
  EXPECT_EQ(value("sync.mode").string_value(), "block");
  EXPECT_EQ(value("schedule.milestones").list_value().values(1).number_value(), 20.5);
  EXPECT_EQ(value("cluster.servers").list_value().values_size(), 2);
  EXPECT_EQ(Field(Field(settings, "schedule.milestones"), "origin").string_value(), "x.conf:3");
  EXPECT_EQ(Field(Field(settings, "sync.block"), "origin").string_value(), "default");
}

TEST(SettingsJson, HoldsEverySetting) {
  const OptionTable& table = OptionTable::Shared();
  EXPECT_EQ(Parsed(SettingsJson(Experiment(), {}).object()).struct_value().fields_size(),
            static_cast<int>(table.options().size()));
}

TEST(OptionsJson, HasAnObjectForEveryRowOfTheTable) {
  const OptionTable& table = OptionTable::Shared();
  const Value rows = Parsed(OptionsJson().array());
  ASSERT_EQ(rows.list_value().values_size(), static_cast<int>(table.options().size()));
  for (int i = 0; i < rows.list_value().values_size(); ++i) {
    const Value& row = rows.list_value().values(i);
    const Option& option = table.options()[i];
    EXPECT_EQ(Field(row, "key").string_value(), option.key);
    EXPECT_EQ(Field(row, "help").string_value(), option.Help());
    EXPECT_EQ(Field(row, "result").bool_value(), option.result());
    const bool number = Field(row, "type").string_value() == "integer" ||
                        Field(row, "type").string_value() == "number";
    if (number) {
      EXPECT_EQ(Field(row, "default").kind_case(), Value::kNumberValue);
    }
  }
}

}  // namespace
}  // namespace kumo
