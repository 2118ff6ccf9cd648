#include "common/settings/settings_json.h"

#include <string_view>

#include "common/base/text.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// Calls a function for each element of "a, b".
template <typename Visit>
void ForEachElement(std::string_view list, Visit visit) {
  while (!Trimmed(list).empty()) {
    const size_t comma = list.find(',');
    visit(std::string(Trimmed(list.substr(0, comma))));
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
}

// Numbers are written as the shortest decimal, which is also valid JSON.
RawJson ValueJson(OptionType type, const std::string& text) {
  JsonArray array;
  switch (type) {
    case OptionType::kFlag:
    case OptionType::kInteger:
    case OptionType::kNumber:
      return {text};
    case OptionType::kText:
      return {ToJson(text)};
    case OptionType::kNumbers:
      ForEachElement(text, [&](const std::string& element) { array.Add(RawJson{element}); });
      return {array.array()};
    case OptionType::kTexts:
      ForEachElement(text, [&](const std::string& element) { array.Add(element); });
      return {array.array()};
  }
  return {"null"};
}

const char* TypeName(OptionType type) {
  switch (type) {
    case OptionType::kFlag:
      return "boolean";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kNumber:
      return "number";
    case OptionType::kText:
      return "string";
    case OptionType::kNumbers:
      return "list of numbers";
    case OptionType::kTexts:
      return "list of strings";
  }
  return "";
}

}  // namespace

JsonArray ToJsonArray(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.Add(text);
  return array;
}

JsonFields SettingsJson(const Experiment& experiment, const Origins& origins) {
  const OptionTable& table = OptionTable::Shared();
  JsonFields settings;
  for (const Option& option : table.options()) {
    const auto origin = origins.find(option.key);
    JsonFields setting;
    setting.Add("value", ValueJson(option.type(), option.write(experiment)));
    setting.Add("origin", origin == origins.end() ? "default" : origin->second);
    settings.Add(option.key, setting);
  }
  return settings;
}

JsonArray OptionsJson() {
  const OptionTable& table = OptionTable::Shared();
  const Experiment defaults;
  JsonArray rows;
  for (const Option& option : table.options()) {
    JsonFields row;
    row.Add("key", option.key).Add("type", TypeName(option.type()));
    // A computed default has only a description.
    const std::string value = option.write(defaults);
    if (option.default_text.empty()) {
      row.Add("default", ValueJson(option.type(), value));
    } else {
      row.AddNull("default").Add("default_text", option.default_text);
    }
    row.Add("unit", option.unit).Add("allowed", option.allowed.Text());
    if (!option.allowed.values.empty()) row.Add("values", ToJsonArray(option.allowed.values));
    row.Add("result", option.result()).Add("help", option.Help());
    rows.Add(row);
  }
  return rows;
}

}  // namespace kumo
