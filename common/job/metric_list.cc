#include "common/job/metric_list.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <set>

#include "common/base/printable.h"

namespace kumo {
namespace {

bool IsMetricName(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name != "none" && std::ssize(name) <= MetricList::kLongestName &&
         is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || is_digit(c) || c == '_';
         });
}

Status CheckCount(int64_t metrics) {
  if (metrics <= MetricList::kMostMetrics) return OkStatus();
  return InvalidArgument(std::to_string(metrics) + " metrics; there may be " +
                         std::to_string(MetricList::kMostMetrics));
}

}  // namespace

std::string FigureText(double figure) {
  char text[64];
  const double size = std::abs(figure);
  std::snprintf(text, sizeof text, size > 0 && size < 1e-3 ? "%.3e" : "%.4f", figure);
  return text;
}

std::string Described(const MetricFigure& figure) {
  return figure.name + " " + FigureText(figure.value);
}

std::optional<double> FindFigure(std::span<const MetricFigure> figures, std::string_view name) {
  for (const MetricFigure& figure : figures) {
    if (figure.name == name) return figure.value;
  }
  return std::nullopt;
}

Result<MetricList> MetricList::Make(std::vector<Metric> metrics) {
  KUMO_RETURN_IF_ERROR(CheckCount(std::ssize(metrics)));
  std::set<std::string_view> names;
  std::set<int> sums;
  for (const Metric& metric : metrics) {
    if (!IsMetricName(metric.name)) {
      return InvalidArgument("'" + Printable(metric.name) +
                             "' is not the name of a metric: up to " +
                             std::to_string(kLongestName) +
                             " lower-case letters, digits and underscores, a letter first");
    }
    if (!names.insert(metric.name).second) {
      return InvalidArgument("metric " + metric.name + " is there twice");
    }
    sums.insert(metric.sum);
    if (metric.formula == MetricFormula::kRatio) sums.insert(metric.divisor);
  }
  const auto count = static_cast<int>(sums.size());
  if (count > 0 && (*sums.begin() != 0 || *sums.rbegin() != count - 1)) {
    return InvalidArgument("the sums of the metrics are not numbered from 0 on, without gaps");
  }
  return MetricList(std::move(metrics), count);
}

const Metric* MetricList::Find(std::string_view name) const {
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

std::string MetricList::Names() const {
  std::string names;
  for (const Metric& metric : metrics()) names += (names.empty() ? "" : ", ") + metric.name;
  return names.empty() ? "none" : names;
}

std::optional<PrecisionFormula> MetricList::PrecisionOf(const Metric& metric) {
  switch (metric.formula) {
    case MetricFormula::kElevenPointPrecision:
      return PrecisionFormula::kElevenPoints;
    case MetricFormula::kAveragePrecision:
      return PrecisionFormula::kArea;
    case MetricFormula::kCocoPrecision:
      return PrecisionFormula::kCoco;
    case MetricFormula::kMean:
    case MetricFormula::kShare:
    case MetricFormula::kExponentialOfMean:
    case MetricFormula::kRatio:
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::string> MetricList::NamesOfEvaluations() const {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (PrecisionOf(metric)) names.push_back(metric.name);
  }
  return names;
}

void MetricList::Settle(MetricSums* sums) const {
  for (const Metric& metric : metrics()) {
    const std::optional<PrecisionFormula> formula = PrecisionOf(metric);
    if (!formula || metric.sum >= std::ssize(sums->sums)) continue;
    sums->sums[metric.sum] =
        sums->detections.MeanAveragePrecision(*formula) * static_cast<double>(sums->samples);
  }
  sums->detections = {};
}

std::vector<MetricFigure> MetricList::FiguresOfClasses(
    const MetricSums& sums, std::span<const std::string> class_names) const {
  std::vector<MetricFigure> figures;
  const std::vector<int32_t> classes = sums.detections.Classes();
  const auto metric =
      std::ranges::find(metrics(), MetricFormula::kAveragePrecision, &Metric::formula);
  if (metric == metrics().end() || std::ssize(classes) > kMostClassFigures) return figures;
  std::set<std::string> used;
  for (const int32_t number : classes) {
    std::string name = NameOrNumber(class_names, number, kLongestName);
    if (!used.insert(name).second) name = std::to_string(number);
    figures.push_back(
        {metric->name + "/" + name,
         sums.detections.AveragePrecision(number, PrecisionFormula::kArea).value_or(0)});
  }
  return figures;
}

void MetricList::Unsettle(std::span<double> sums) const {
  for (const Metric& metric : metrics()) {
    if (PrecisionOf(metric)) sums[metric.sum] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::optional<double> MetricList::FigureOf(const Metric& metric, const MetricSums& sums) {
  if (sums.samples <= 0 || metric.sum >= std::ssize(sums.sums)) return std::nullopt;
  if (metric.formula == MetricFormula::kRatio) {
    if (metric.divisor >= std::ssize(sums.sums)) return std::nullopt;
    const double divisor = sums.sums[metric.divisor];
    return divisor == 0 ? 0 : sums.sums[metric.sum] / divisor;
  }
  const double mean = sums.sums[metric.sum] / static_cast<double>(sums.samples);
  if (PrecisionOf(metric) && std::isnan(mean)) return std::nullopt;
  return metric.formula == MetricFormula::kExponentialOfMean ? std::exp(mean) : mean;
}

std::vector<MetricFigure> MetricList::FiguresOf(const MetricSums& sums) const {
  std::vector<MetricFigure> figures;
  for (const Metric& metric : metrics()) {
    if (const auto value = FigureOf(metric, sums)) figures.push_back({metric.name, *value});
  }
  return figures;
}

std::optional<MetricFigure> MetricList::Headline(const MetricSums& sums) const {
  if (metrics().empty()) return std::nullopt;
  const auto found = std::find_if(metrics().begin(), metrics().end(),
                                  [](const Metric& metric) { return metric.more_is_better; });
  const Metric& metric = found == metrics().end() ? metrics().front() : *found;
  const auto value = FigureOf(metric, sums);
  if (!value) return std::nullopt;
  return MetricFigure{metric.name, *value};
}

Status MetricList::Check(const MetricSums& sums, int64_t samples) const {
  if (sums.samples != samples) {
    return InvalidArgument("metrics of " + std::to_string(sums.samples) + " samples instead of " +
                           std::to_string(samples));
  }
  if (std::ssize(sums.sums) != sums_) {
    return InvalidArgument(std::to_string(std::ssize(sums.sums)) + " sums of metrics instead of " +
                           std::to_string(sums_));
  }
  for (const Metric& metric : metrics()) {
    if (metric.formula != MetricFormula::kShare) continue;
    const double sum = sums.sums[metric.sum];
    if (!(sum >= 0 && sum <= static_cast<double>(sums.samples))) {
      return InvalidArgument(metric.name + " of " + std::to_string(sum) + " in " +
                             std::to_string(sums.samples) + " samples");
    }
  }
  return OkStatus();
}

MetricSums MetricList::Translate(const MetricList& others, const MetricSums& sums) const {
  if (*this == others) return sums;
  const double unknown = sums.samples > 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  MetricSums translated{sums.samples, std::vector<double>(sums_, unknown)};
  for (const Metric& metric : metrics()) {
    const Metric* const other = others.Find(metric.name);
    if (other == nullptr || other->formula != metric.formula) continue;
    const auto copy = [&](int from, int to) {
      if (from < std::ssize(sums.sums)) translated.sums[to] = sums.sums[from];
    };
    copy(other->sum, metric.sum);
    if (metric.formula == MetricFormula::kRatio) copy(other->divisor, metric.divisor);
  }
  return translated;
}

Result<MetricList> ParseMetrics(const MetricMessages& messages) {
  KUMO_RETURN_IF_ERROR(CheckCount(messages.size()));
  std::vector<Metric> metrics;
  for (const checkpoint::Metric& message : messages) {
    if (!checkpoint::Metric::Formula_IsValid(message.formula())) {
      return InvalidArgument("metric " + Printable(message.name()) + " is made by formula " +
                             std::to_string(message.formula()) + ", which there is not");
    }
    metrics.push_back({message.name(), message.sum(), static_cast<MetricFormula>(message.formula()),
                       message.more_is_better(), message.divisor()});
  }
  return MetricList::Make(std::move(metrics));
}

void WriteMetrics(const MetricList& metrics, MetricMessages* messages) {
  messages->Clear();
  for (const Metric& metric : metrics.metrics()) {
    checkpoint::Metric* const message = messages->Add();
    message->set_name(metric.name);
    message->set_sum(metric.sum);
    message->set_formula(static_cast<checkpoint::Metric::Formula>(metric.formula));
    message->set_more_is_better(metric.more_is_better);
    message->set_divisor(metric.divisor);
  }
}

}  // namespace kumo
