#include "common/settings/setting_changes.h"

#include <map>
#include <utility>

#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

constexpr std::string_view kNotCompared[] = {"job.name", "network.initial_weights",
                                             "network.initial_names"};

bool IsCompared(std::string_view key) {
  for (const std::string_view other : kNotCompared) {
    if (key == other) return false;
  }
  return true;
}

std::vector<std::pair<std::string, std::string>> Lines(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) {
      lines.emplace_back(line, "");
    } else {
      lines.emplace_back(line.substr(0, equals), line.substr(equals + 3));
    }
  }
  return lines;
}

}  // namespace

std::vector<SettingChange> SettingChanges(std::string_view then, const Experiment& now) {
  std::map<std::string, std::string> were;
  for (auto& [key, value] : Lines(then)) were.insert_or_assign(std::move(key), std::move(value));
  const auto defaults = Lines(ExperimentText(Experiment()));
  const auto are = Lines(ExperimentText(now));
  std::vector<SettingChange> changes;
  for (size_t i = 0; i < are.size(); ++i) {
    const auto& [key, value] = are[i];
    const auto found = were.find(key);
    const std::string was = found == were.end() ? defaults[i].second : found->second;
    if (found != were.end()) were.erase(found);
    if (was != value && IsCompared(key)) changes.push_back({key, was, value});
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

Result<Experiment> ExperimentOfText(std::string_view text) {
  static const OptionTable& table = *new OptionTable;
  Experiment experiment;
  for (const auto& [key, value] : Lines(text)) {
    const Option* const option = table.Find(key);
    if (!option || !option->result || !IsCompared(key)) continue;
    if (const Status read = option->read(value, &experiment); !read.ok()) {
      return DataLoss("the checkpoint's settings: " + key + ": " + read.message());
    }
  }
  return experiment;
}

}  // namespace kumo
