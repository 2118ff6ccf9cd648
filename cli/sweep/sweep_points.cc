#include "cli/sweep/sweep_points.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include "common/base/fnv.h"
#include "common/base/text.h"
#include "common/settings/key_advice.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

constexpr size_t kLongestPointName = 120;

using Setting = std::pair<std::string, std::string>;  // key and value

// Checks a value as the experiment's parser does.
Status CheckValue(const Option& option, std::string_view value) {
  Experiment experiment;
  return option.read(value, &experiment).WithContext(option.key + " = " + std::string(value));
}

bool IsNumber(OptionType type) {
  return type == OptionType::kNumber || type == OptionType::kInteger;
}
bool IsList(OptionType type) { return type == OptionType::kNumbers || type == OptionType::kTexts; }

// Splits "key=rest". InvalidArgument without '=' or for an unknown key.
Result<std::pair<const Option*, std::string_view>> SplitSetting(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return InvalidArgument("'" + std::string(text) +
                           "' is no setting with values, such as schedule.learning_rate=.01,.1");
  }
  const std::string_view key = Trimmed(text.substr(0, equals));
  const Option* const option = OptionTable::Shared().Find(key);
  if (option == nullptr) {
    return InvalidArgument("unknown setting " + std::string(key) + KeyAdvice(key));
  }
  return std::pair(option, Trimmed(text.substr(equals + 1)));
}

// "1e-4..1e-1:log"; none if it is no range.
std::optional<SweepAxis> RangeIn(std::string_view text) {
  SweepAxis axis;
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::string_view high = text.substr(dots + 2);
  axis.logarithmic = high.ends_with(":log");
  if (axis.logarithmic) high.remove_suffix(4);
  const auto low_number = ParseNumber<double>(Trimmed(text.substr(0, dots)));
  const auto high_number = ParseNumber<double>(Trimmed(high));
  if (!low_number || !high_number) return std::nullopt;
  axis.low = *low_number;
  axis.high = *high_number;
  return axis;
}

std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", number);
  return text;
}

// A name for a folder: '/' and other unusual characters become '_'.
std::string FolderName(std::string name) {
  for (char& c : name) {
    const bool usual = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("._=,+-").find(c) != std::string_view::npos;
    if (!usual) c = '_';
  }
  if (name.size() <= kLongestPointName) return name;
  Fnv1a hash;
  hash.Add(name);
  return name.substr(0, kLongestPointName - 17) + "-" + HexDigits(hash.value());
}

using Keys = std::set<std::string>;

// Settings in which points of these axes may differ; all if there is only one point. Independent of
// the points that are drawn, so that a point of a random sweep keeps its name if more are drawn.
Keys VaryingKeys(std::span<const SweepAxis> axes) {
  Keys all;
  Keys varying;
  for (const SweepAxis& axis : axes) {
    all.insert(axis.key);
    if (axis.IsRange() || axis.values.size() > 1) varying.insert(axis.key);
  }
  return varying.empty() ? all : varying;
}

// Settings in which the points differ, or which only some of them have; all if there is only one
// point.
Keys DifferingKeys(std::span<const SweepPoint> points) {
  std::map<std::string, Keys> values;  // by key
  std::map<std::string, size_t> points_with;
  for (const SweepPoint& point : points) {
    for (const auto& [key, value] : point.settings) {
      values[key].insert(value);
      ++points_with[key];
    }
  }
  Keys differing;
  for (const auto& [key, of_key] : values) {
    if (points.size() == 1 || of_key.size() > 1 || points_with[key] < points.size()) {
      differing.insert(key);
    }
  }
  return differing;
}

// Names the points by their settings of these keys.
void NamePoints(const Keys& named, std::vector<SweepPoint>* points) {
  std::map<std::string, Keys> keys;  // by name without section
  const auto name_of = [](const std::string& key) { return key.substr(key.find('.') + 1); };
  for (const SweepPoint& point : *points) {
    for (const auto& [key, value] : point.settings) keys[name_of(key)].insert(key);
  }
  std::map<std::string, int> used;
  for (SweepPoint& point : *points) {
    std::string name;
    for (const auto& [key, value] : point.settings) {
      if (!named.contains(key)) continue;
      const std::string shown = keys[name_of(key)].size() == 1 ? name_of(key) : key;
      name += (name.empty() ? "" : ",") + shown + "=" + value;
    }
    point.name = FolderName(name.empty() ? "defaults" : name);
    const int before = used[point.name]++;
    if (before > 0) point.name += "-" + std::to_string(before + 1);
  }
}

Status CheckKeys(std::span<const SweepAxis> axes) {
  std::set<std::string> keys;
  for (const SweepAxis& axis : axes) {
    if (!keys.insert(axis.key).second) {
      return InvalidArgument(axis.key + " is given twice; write one list: " + axis.key + "=a,b");
    }
  }
  return OkStatus();
}

// The value for a random number in [0, 1).
std::string DrawnValue(const SweepAxis& axis, double part) {
  if (!axis.IsRange()) {
    const auto count = static_cast<double>(axis.values.size());
    return axis.values[static_cast<size_t>(part * count)];
  }
  if (axis.whole) {
    const double drawn = axis.logarithmic
                             ? std::round(axis.low * std::pow(axis.high / axis.low, part))
                             : axis.low + std::floor(part * (axis.high - axis.low + 1));
    return std::to_string(static_cast<int64_t>(drawn));
  }
  return NumberText(axis.logarithmic ? axis.low * std::pow(axis.high / axis.low, part)
                                     : axis.low + part * (axis.high - axis.low));
}

}  // namespace

Result<SweepAxis> ParseAxis(std::string_view text) {
  KUMO_ASSIGN_OR_RETURN(const auto setting, SplitSetting(text));
  const auto& [option, list] = setting;
  SweepAxis axis;
  if (const auto range = RangeIn(list); range && !IsList(option->type())) {
    if (!IsNumber(option->type())) {
      return InvalidArgument(option->key + " is no number, so it takes a list and no range");
    }
    axis = *range;
    if (!(axis.low < axis.high) || (axis.logarithmic && axis.low <= 0)) {
      return InvalidArgument(std::string(text) + ": a range is LOW..HIGH with LOW below HIGH" +
                             (axis.logarithmic ? ", and above 0 with :log" : ""));
    }
    axis.whole = option->type() == OptionType::kInteger;
    const auto is_whole = [](double end) {
      return std::abs(end) <= 1e15 && end == std::round(end);
    };
    if (axis.whole && !(is_whole(axis.low) && is_whole(axis.high))) {
      return InvalidArgument(std::string(text) + ": " + option->key +
                             " is an integer, so LOW..HIGH must be integers, at most 1e15");
    }
    for (const double end : {axis.low, axis.high}) {
      KUMO_RETURN_IF_ERROR(CheckValue(
          *option, axis.whole ? std::to_string(static_cast<int64_t>(end)) : NumberText(end)));
    }
  } else {
    const char separator = IsList(option->type()) ? ';' : ',';
    for (std::string_view rest = list;;) {
      const size_t end = rest.find(separator);
      const std::string_view value = Trimmed(rest.substr(0, end));
      KUMO_RETURN_IF_ERROR(CheckValue(*option, value));
      if (std::ranges::count(axis.values, value) > 0) {
        return InvalidArgument(std::string(text) + ": " + std::string(value) + " is given twice");
      }
      axis.values.emplace_back(value);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
    }
  }
  axis.key = option->key;
  return axis;
}

std::vector<std::string> SweepPoint::Sets() const {
  std::vector<std::string> sets;
  for (const auto& [key, value] : settings) sets.push_back(key + "=" + value);
  return sets;
}

Result<std::vector<SweepPoint>> GridOf(std::span<const SweepAxis> axes) {
  KUMO_RETURN_IF_ERROR(CheckKeys(axes));
  std::vector<SweepPoint> points(1);
  for (const SweepAxis& axis : axes) {
    if (axis.IsRange()) {
      return InvalidArgument(axis.key +
                             " has a range, from which values are drawn: give --random "
                             "N, or a list");
    }
    if (std::ssize(points) * std::ssize(axis.values) > kMostPoints) {
      return InvalidArgument("the grid has more than " + std::to_string(kMostPoints) +
                             " points; draw some with --random N");
    }
    std::vector<SweepPoint> more;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        more.push_back(point);
        more.back().settings.emplace_back(axis.key, value);
      }
    }
    points = std::move(more);
  }
  NamePoints(VaryingKeys(axes), &points);
  return points;
}

Result<std::vector<SweepPoint>> RandomPoints(std::span<const SweepAxis> axes, int count,
                                             uint64_t seed) {
  KUMO_RETURN_IF_ERROR(CheckKeys(axes));
  std::vector<SweepPoint> points;
  std::set<std::vector<std::string>> drawn;
  for (int i = 0; i < count; ++i) {
    SweepPoint point;
    for (size_t a = 0; a < axes.size(); ++a) {
      // The standard fixes both algorithms, so that each machine draws the same points.
      std::seed_seq sequence = {seed & 0xffffffff, seed >> 32, static_cast<uint64_t>(i),
                                static_cast<uint64_t>(a)};
      std::mt19937_64 random(sequence);
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      point.settings.emplace_back(axes[a].key, DrawnValue(axes[a], part));
    }
    if (drawn.insert(point.Sets()).second) points.push_back(std::move(point));
  }
  NamePoints(VaryingKeys(axes), &points);
  return points;
}

Result<std::vector<SweepPoint>> ListedPoints(std::string_view text) {
  std::vector<SweepPoint> points;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    SweepPoint point;
    for (std::string word; words >> word;) {
      const auto setting = SplitSetting(word);
      Status status = setting.status();
      if (status.ok()) status = CheckValue(*setting->first, setting->second);
      if (!status.ok()) return status.WithContext("line " + std::to_string(number));
      const std::string& key = setting->first->key;
      if (std::ranges::count(point.settings, key, &Setting::first) > 0) {
        return InvalidArgument(key + " is given twice")
            .WithContext("line " + std::to_string(number));
      }
      point.settings.emplace_back(key, setting->second);
    }
    if (!point.settings.empty()) points.push_back(std::move(point));
    if (std::ssize(points) > kMostPoints) {
      return InvalidArgument("more than " + std::to_string(kMostPoints) + " points");
    }
  }
  if (points.empty()) return InvalidArgument("no line has a point");
  NamePoints(DifferingKeys(points), &points);
  return points;
}

}  // namespace kumo
