// A figure is a function of sums over samples, so that partial sums of workers, rounds and epochs
// can be added in any grouping, and the figure is computed only for display.
//
// Sums are numbered from 0 without gaps; a metric names the first of its sums. A mean over C
// classes has two runs of C sums, the numerators and the divisors. Two metrics may share a sum:
// loss and perplexity have one.
//
// - A mean average precision is no function of such sums. Counts of detections are added instead;
//   Settle computes the precision when all parts are there, and stores it as precision * samples,
//   so that FigureOf divides all metrics alike. Before, the sum is NaN: unknown (Unsettle).
// - The sums come from peers. Check bounds them, and takes the number of samples from the job's
//   plan: a worker must not choose the weight of its own sums.
// - Lists come from messages and manifests. Make refuses what a display or FigureOf could not
//   handle.
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
  return InvalidArgument(std::to_string(metrics) + " metrics; at most " +
                         std::to_string(MetricList::kMostMetrics) + " are allowed");
}

// The indices of the sums that a metric is made of; none if they are out of range.
std::vector<int> SumsOf(const Metric& metric) {
  const auto may_be = [](int sum) { return sum >= 0 && sum <= 2 * MetricList::kMostSums; };
  if (!may_be(metric.sum) || !may_be(metric.divisor)) return {};
  std::vector<int> sums;
  for (int c = 0; c < metric.classes; ++c) {
    sums.push_back(metric.sum + c);
    if (metric.has_divisor()) sums.push_back(metric.divisor + c);
  }
  return sums;
}

// Names of classes in figures: "cat", or "7" of a class without a name of its own.
class ClassNames {
 public:
  explicit ClassNames(std::span<const std::string> names) : names_(names) {}
  std::string Next(int32_t number) {
    std::string name = NameOrNumber(names_, number, MetricList::kLongestName);
    return used_.insert(name).second ? name : std::to_string(number);
  }

 private:
  std::span<const std::string> names_;
  std::set<std::string> used_;
};

// A class's ratio of kMeanOfRatios; none if it is one to 0.
std::optional<double> RatioOf(const Metric& metric, int32_t number, const MetricSums& sums) {
  const double divisor = sums.sums[metric.divisor + number];
  if (divisor == 0) return std::nullopt;
  return sums.sums[metric.sum + number] / divisor;
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
  const Status gaps =
      InvalidArgument("the sums of the metrics are not numbered from 0 on, without gaps");
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
      return InvalidArgument("metric " + metric.name + " is listed twice");
    }
    const bool of_classes = metric.formula == MetricFormula::kMeanOfRatios;
    if (metric.classes < 1 || metric.classes > (of_classes ? kMostClassFigures : 1)) {
      return InvalidArgument(
          "metric " + metric.name + " is over " + std::to_string(metric.classes) + " classes; " +
          (of_classes ? "1 to " + std::to_string(kMostClassFigures) + " are" : "1 is") +
          " allowed");
    }
    const std::vector<int> own = SumsOf(metric);
    if (own.empty()) return gaps;
    sums.insert(own.begin(), own.end());
  }
  const auto count = static_cast<int>(sums.size());
  if (count > kMostSums) {
    return InvalidArgument("the metrics have " + std::to_string(count) + " sums; at most " +
                           std::to_string(kMostSums) + " are allowed");
  }
  if (count > 0 && (*sums.begin() != 0 || *sums.rbegin() != count - 1)) return gaps;
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
    case MetricFormula::kMeanOfRatios:
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
  const std::vector<int32_t> detected = sums.detections.Classes();
  for (const Metric& metric : metrics()) {
    ClassNames names(class_names);
    if (metric.formula == MetricFormula::kAveragePrecision &&
        std::ssize(detected) <= kMostClassFigures) {
      for (const int32_t number : detected) {
        figures.push_back(
            {metric.name + "/" + names.Next(number),
             sums.detections.AveragePrecision(number, PrecisionFormula::kArea).value_or(0)});
      }
    }
    if (metric.formula != MetricFormula::kMeanOfRatios || !FigureOf(metric, sums)) continue;
    for (int32_t number = 0; number < metric.classes; ++number) {
      const std::optional<double> ratio = RatioOf(metric, number, sums);
      if (ratio) figures.push_back({metric.name + "/" + names.Next(number), *ratio});
    }
  }
  return figures;
}

void MetricList::Unsettle(std::span<double> sums) const {
  for (const Metric& metric : metrics()) {
    if (PrecisionOf(metric)) sums[metric.sum] = std::numeric_limits<double>::quiet_NaN();
  }
}

std::optional<double> MetricList::FigureOf(const Metric& metric, const MetricSums& sums) {
  if (sums.samples <= 0) return std::nullopt;
  for (const int sum : SumsOf(metric)) {
    if (sum >= std::ssize(sums.sums)) return std::nullopt;
  }
  if (metric.formula == MetricFormula::kMeanOfRatios) {
    double total = 0;
    int counted = 0;
    for (int32_t number = 0; number < metric.classes; ++number) {
      const std::optional<double> ratio = RatioOf(metric, number, sums);
      if (!ratio) continue;
      total += *ratio;
      ++counted;
    }
    return counted == 0 ? 0 : total / counted;
  }
  if (metric.formula == MetricFormula::kRatio) {
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
    const std::vector<int> from = SumsOf(*other), to = SumsOf(metric);
    if (from.size() != to.size()) continue;  // of other classes
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] < std::ssize(sums.sums)) translated.sums[to[i]] = sums.sums[from[i]];
    }
  }
  return translated;
}

Result<MetricList> ParseMetrics(const MetricMessages& messages) {
  KUMO_RETURN_IF_ERROR(CheckCount(messages.size()));
  std::vector<Metric> metrics;
  for (const checkpoint::Metric& message : messages) {
    if (!checkpoint::Metric::Formula_IsValid(message.formula())) {
      return InvalidArgument("metric " + Printable(message.name()) + " has the unknown formula " +
                             std::to_string(message.formula()) +
                             "; use the release that defines it");
    }
    metrics.push_back({message.name(), message.sum(), static_cast<MetricFormula>(message.formula()),
                       message.more_is_better(), message.divisor(),
                       message.has_classes() ? message.classes() : 1});
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
    if (metric.classes != 1) message->set_classes(metric.classes);
  }
}

}  // namespace kumo
