#include "cli/runs/run_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <set>
#include <tuple>

#include "common/base/printable.h"
#include "common/base/text_table.h"
#include "common/job/metric_list.h"
#include "common/settings/option_table.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

// More settings than these make no table.
constexpr size_t kMostSettings = 8;
constexpr size_t kLongestCell = 40;
constexpr size_t kLongestRun = 60;

std::string ValueIn(const RunSummary& run, const std::string& key) {
  const auto found = run.settings.find(key);
  if (found == run.settings.end()) return "-";
  return found->second.empty() ? "empty" : Printable(found->second, kLongestCell);
}

std::string NewestIn(const RunSummary& run, const Figure& figure, std::string (*text)(double)) {
  const auto found = run.log.newest.find(std::string(figure.name));
  return found == run.log.newest.end() ? "-" : text(found->second);
}

// Text of a file's number, which may be any.
std::string WholeText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", std::trunc(number));
  return text;
}

// "learning_rate" if the name is unique among the keys, or else the key.
std::string ColumnName(const std::string& key, const std::vector<std::string>& keys) {
  const auto name_of = [](const std::string& one) { return one.substr(one.find('.') + 1); };
  const auto same = std::ranges::count(keys, name_of(key), name_of);
  return same == 1 ? name_of(key) : key;
}

// "best accuracy" if all runs have this metric, else "best".
std::string BestName(std::span<const RunSummary> runs) {
  std::set<std::string> names;
  for (const RunSummary& run : runs) {
    if (run.best) names.insert(run.best->metric);
  }
  return names.size() == 1 ? "best " + *names.begin() : "best";
}

}  // namespace

std::vector<std::string> DifferentSettings(std::span<const RunSummary> runs) {
  std::vector<std::string> different;
  for (const Option& option : OptionTable::Shared().options()) {
    std::set<std::string> values;
    for (const RunSummary& run : runs) {
      const auto found = run.settings.find(option.key);
      if (found != run.settings.end()) values.insert(found->second);
    }
    if (values.size() > 1) different.push_back(option.key);
  }
  return different;
}

void SortByBest(std::vector<RunSummary>* runs) {
  // Figures of different metrics cannot be compared.
  const auto rank = [](const RunSummary& run) {
    const BestEpoch best = run.best.value_or(BestEpoch());
    return std::tuple(!run.best, best.metric, best.more_is_better,
                      best.more_is_better ? -best.value : best.value);
  };
  std::ranges::stable_sort(*runs, {}, rank);
}

std::string RunTable(std::span<const RunSummary> runs, int columns) {
  const std::vector<std::string> different = DifferentSettings(runs);
  const size_t shown = std::min(different.size(), kMostSettings);
  std::vector<TextColumn> header = {{"run", false}, {"state", false}};
  for (size_t i = 0; i < shown; ++i) header.push_back({ColumnName(different[i], different), false});
  for (const std::string& name :
       {std::string(figure::kEpoch.name), BestName(runs), std::string("at epoch"),
        std::string("time"), std::string("size")}) {
    header.push_back({name});
  }
  std::vector<std::vector<std::string>> rows;
  for (const RunSummary& run : runs) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {Printable(run.name, kLongestRun), WordOf(run.state)};
    for (size_t i = 0; i < shown; ++i) row.push_back(ValueIn(run, different[i]));
    row.push_back(NewestIn(run, figure::kEpoch, WholeText));
    row.push_back(run.best ? FigureText(run.best->value) : "-");
    row.push_back(run.best ? WholeText(run.best->epoch) : "-");
    row.push_back(NewestIn(run, figure::kElapsedTime, HumanDuration));
    row.push_back(HumanBytes(run.bytes));
  }
  std::string text = FormatTextTable(header, rows, columns);
  if (shown < different.size()) {
    text += "and " + std::to_string(different.size() - shown) +
            " more settings differ (--json has all)\n";
  }
  return text;
}

JsonArray RunsJson(std::span<const RunSummary> runs) {
  JsonArray all;
  for (const RunSummary& run : runs) {
    JsonFields settings, figures;
    for (const auto& [key, value] : run.settings) settings.Add(key, value);
    for (const auto& [name, value] : run.log.newest) figures.Add(name, value);
    JsonFields fields;
    fields.Add("name", run.name).Add("output", run.folder).Add("state", WordOf(run.state));
    fields.Add("settings", settings).Add("figures", figures);
    if (run.best) {
      fields.Add("best", JsonFields()
                             .Add("figure", ValidationFigure(run.best->metric))
                             .Add("value", run.best->value)
                             .Add("epoch", run.best->epoch));
    } else {
      fields.AddNull("best");
    }
    all.Add(fields.Add("bytes", run.bytes));
  }
  return all;
}

}  // namespace kumo
