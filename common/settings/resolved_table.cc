#include "common/settings/resolved_table.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/base/terminal.h"
#include "common/settings/experiment_text.h"
#include "common/settings/option_table.h"

namespace kumo {
namespace {

constexpr int kGap = 2;  // blanks between columns, and before the first
// Longer values and origins are shortened to these where the terminal is too narrow.
constexpr int kLeastValue = 12;
constexpr int kLeastOrigin = 12;

struct Row {
  std::string key;
  std::string value;  // with its unit
  std::string origin;
};

// "experiments/x.conf:12" -> "x.conf:12"; "--set sync.block" -> "--set": the key stands beside it.
std::string ShownOrigin(const std::string& origin) {
  if (origin.starts_with("-")) return origin.substr(0, origin.find(' '));
  return origin.substr(origin.rfind('/') + 1);
}

std::vector<Row> Rows(const Experiment& experiment, const Origins& origins, bool all) {
  const OptionTable table;
  const Experiment defaults;
  std::vector<Row> rows;
  for (const Option& option : table.options()) {
    const auto origin = origins.find(option.key);
    const std::string value = option.write(experiment);
    const bool differs = origin != origins.end() && value != option.write(defaults);
    if (!all && !differs) continue;
    // Some count in what another setting says.
    const Option* counts_in = table.Find(option.unit);
    const std::string unit = counts_in == nullptr ? option.unit : counts_in->write(experiment);
    const bool bare = unit.empty() || value.empty();
    rows.push_back({option.key, bare ? value : value + " " + unit,
                    origin == origins.end() ? "default" : ShownOrigin(origin->second)});
  }
  return rows;
}

int Widest(const std::vector<Row>& rows, std::string Row::*cell) {
  int widest = 0;
  for (const Row& row : rows) widest = std::max(widest, ColumnsOf(row.*cell));
  return widest;
}

std::string Padded(std::string text, int columns) {
  text.append(std::max(columns - ColumnsOf(text), 0) + kGap, ' ');
  return text;
}

}  // namespace

std::string ResolvedTable(const Experiment& experiment, const Origins& origins, TableStyle style) {
  const std::vector<Row> rows = Rows(experiment, origins, style.all);
  const int key = Widest(rows, &Row::key);
  int value = std::min(Widest(rows, &Row::value), 44);
  int origin = Widest(rows, &Row::origin);
  if (style.columns > 0) {
    const int room = style.columns - 3 * kGap - key;
    value = std::clamp(room - origin, std::min(kLeastValue, value), value);
    origin = std::clamp(room - value, std::min(kLeastOrigin, origin), origin);
  }
  std::string text;
  if (!style.all) {
    text = "settings that differ from the defaults (--verbose shows all " +
           std::to_string(OptionTable().options().size()) + "):\n";
  }
  for (const Row& row : rows) {
    const std::string shown = style.columns > 0 ? Shortened(row.value, value) : row.value;
    const std::string from = style.columns > 0 ? Shortened(row.origin, origin) : row.origin;
    text += std::string(kGap, ' ') + Padded(row.key, key) + Padded(shown, value) + from + "\n";
  }
  text += "experiment hash " + HashText(experiment) + "\n";
  return Folded(text, style.columns, kGap);
}

}  // namespace kumo
