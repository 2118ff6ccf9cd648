#include "worker/inference/class_precisions.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/printable.h"
#include "common/base/text_table.h"

namespace kumo {
namespace {

// Calls take(metric, precision of the class) for each precision.
template <typename Take>
void ForEachPrecision(const MetricList& metrics, const DetectionCounts& counts, int32_t number,
                      const Take& take) {
  for (const Metric& metric : metrics.metrics()) {
    const auto formula = MetricList::PrecisionOf(metric);
    if (formula) take(metric, counts.AveragePrecision(number, *formula).value_or(0));
  }
}

}  // namespace

std::string PrecisionsText(const MetricList& metrics, const DetectionCounts& counts,
                           std::span<const std::string> names) {
  constexpr size_t kShownName = 24;
  std::vector<TextColumn> header = {{"class", /*right=*/false}};
  for (const std::string& name : metrics.NamesOfEvaluations()) header.push_back({name});
  std::vector<std::vector<std::string>> rows;
  for (const int32_t number : counts.Classes()) {
    rows.push_back({NameOrNumber(names, number, kShownName)});
    ForEachPrecision(metrics, counts, number, [&](const Metric&, double precision) {
      rows.back().push_back(FigureText(precision));
    });
  }
  return FormatTextTable(header, rows, 0);
}

void AddPrecisions(const MetricList& metrics, const DetectionCounts& counts,
                   std::span<const std::string> names, JsonFields* fields) {
  JsonArray classes;
  for (const int32_t number : counts.Classes()) {
    JsonFields one;
    one.Add("class", number);
    if (number < std::ssize(names) && !names[number].empty()) one.Add("name", names[number]);
    ForEachPrecision(metrics, counts, number, [&](const Metric& metric, double precision) {
      one.Add(metric.name, precision);
    });
    classes.Add(one);
  }
  fields->Add("classes", classes);
}

}  // namespace kumo
