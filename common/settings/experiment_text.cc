#include "common/settings/experiment_text.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/base/fnv.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

// A setting's value in the text that hosts compare.
std::string ComparedValue(const Option& option, const Experiment& experiment) {
  std::string value = option.write(experiment);
  const std::filesystem::path path(value);
  if (option.path == PathKind::kBaseName ||
      (option.path == PathKind::kBaseNameIfAbsolute && path.is_absolute())) {
    return path.filename().string();
  }
  return value;
}

struct KeyValue {
  std::string_view key;  // "" for an empty line
  std::string_view value;
};

KeyValue TakeKeyValue(std::string_view* text) {
  const std::string_view line = TakeLine(text);
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {line, ""};
  return {line.substr(0, equals), line.substr(equals + 3)};
}

bool HasKey(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    if (TakeKeyValue(&text).key == key) return true;
  }
  return false;
}

// The present name of a text's key.
std::string_view KeyNow(std::string_view key) {
  const Option* const option = OptionTable::Shared().Find(key);
  return option == nullptr ? key : option->key;
}

bool IsWordOf(const Option& option, std::string_view value) {
  return std::ranges::any_of(option.field.type->words(),
                             [&](const auto& word) { return word.first == value; });
}

// A peer's text, for a line with three more of them.
std::string Shown(std::string_view text) { return text.empty() ? "empty" : Printable(text, 80); }

}  // namespace

std::string ExperimentText(const Experiment& experiment) {
  std::string text;
  for (const Option& option : OptionTable::Shared().options()) {
    if (!option.result()) continue;
    text += std::string(option.text_key()) + " = " + ComparedValue(option, experiment) + "\n";
  }
  return text;
}

Result<Experiment> ExperimentOfText(std::string_view text) {
  Experiment experiment;
  while (!text.empty()) {
    const auto [key, value] = TakeKeyValue(&text);
    const Option* const option = OptionTable::Shared().Find(key);
    if (!option || !option->result() || option->Has(Effect::kStart)) continue;
    if (const Status read = option->read(value, &experiment); !read.ok()) {
      // Earlier releases accepted some words that had no effect.
      if (IsWordOf(*option, value)) continue;
      return DataLoss("the checkpoint's settings: " + std::string(key) + " = " +
                      Printable(value, 80) + ": " + read.message());
    }
  }
  return experiment;
}

std::vector<ResultSetting> ResultSettings(const Experiment& experiment) {
  std::vector<ResultSetting> settings;
  for (const Option& option : OptionTable::Shared().options()) {
    if (!option.result()) continue;
    const std::string text = ComparedValue(option, experiment);
    ResultSetting& setting = settings.emplace_back(ResultSetting{std::string(option.key), text});
    const OptionType type = option.type();
    if (type == OptionType::kFlag) setting.value = text == WriteValue(true);
    if (type == OptionType::kInteger || type == OptionType::kNumber) {
      setting.value = std::strtod(text.c_str(), nullptr);
    }
  }
  return settings;
}

uint64_t ExperimentHash(const Experiment& experiment) {
  Fnv1a hash;
  hash.Add(ExperimentText(experiment));
  return hash.value();
}

std::string HashText(const Experiment& experiment) { return HexDigits(ExperimentHash(experiment)); }

std::string FirstDifference(std::string_view here, std::string_view there) {
  constexpr char kVersions[] = " (are both sides the same version of kumo?)";
  const std::string_view all_here = here, all_there = there;
  while (!here.empty() || !there.empty()) {
    const std::string_view ours = here.substr(0, here.find('\n'));
    const std::string_view theirs = there.substr(0, there.find('\n'));
    const KeyValue a = TakeKeyValue(&here), b = TakeKeyValue(&there);
    if (ours == theirs) continue;
    if (a.key == b.key) {
      return Shown(KeyNow(a.key)) + " is " + Shown(a.value) + " here and " + Shown(b.value) +
             " there";
    }
    if (!a.key.empty() && !HasKey(all_there, a.key)) {
      return Shown(KeyNow(a.key)) + " is a setting here, but not there" + kVersions;
    }
    if (!b.key.empty() && !HasKey(all_here, b.key)) {
      return Shown(KeyNow(b.key)) + " is a setting there, but not here" + kVersions;
    }
    return "the settings differ: '" + Shown(ours) + "' here, '" + Shown(theirs) + "' there" +
           kVersions;
  }
  return "";
}

std::vector<SettingChange> SettingChanges(std::string_view then, const Experiment& now) {
  std::map<std::string, std::string> were;
  while (!then.empty()) {
    const KeyValue line = TakeKeyValue(&then);
    were.insert_or_assign(std::string(KeyNow(line.key)), std::string(line.value));
  }
  static const Experiment& defaults = *new Experiment;
  std::vector<SettingChange> changes;
  for (const Option& option : OptionTable::Shared().options()) {
    if (!option.result()) continue;
    const std::string key(option.key);
    const auto found = were.find(key);
    const std::string was = found == were.end() ? ComparedValue(option, defaults) : found->second;
    if (found != were.end()) were.erase(found);
    const std::string is = ComparedValue(option, now);
    if (was != is && !option.Has(Effect::kStart)) changes.push_back({key, was, is});
  }
  for (const auto& [key, value] : were) changes.push_back({key, value, "(no such setting)"});
  return changes;
}

std::string DescribeChange(const SettingChange& change) {
  const auto shown = [](const std::string& value) { return value.empty() ? "empty" : value; };
  return change.key + " " + shown(change.then) + " -> " + shown(change.now);
}

std::string DescribeChanges(const std::vector<SettingChange>& changes) {
  std::string text;
  for (const SettingChange& change : changes) {
    text += (text.empty() ? "" : ", ") + DescribeChange(change);
  }
  return text;
}

}  // namespace kumo
