// The metrics of a job: figures with names, each made of a sum over samples. The loss of a network
// declares them; workers add the sums up, servers add those of all partitions, and whoever shows a
// figure asks this list what it is called and how it is made. Nothing but the loss knows what a sum
// is of.
//
// A value that is cheap to copy; immutable, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/job/metric_sums.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// How a figure is made of a sum over n samples.
enum class MetricFormula {
  kMean = checkpoint::Metric::MEAN,    // sum / n
  kShare = checkpoint::Metric::SHARE,  // the same, of what is between 0 and 1 in each sample
  kExponentialOfMean = checkpoint::Metric::EXPONENTIAL_OF_MEAN,  // exp(sum / n): a perplexity
};

struct Metric {
  // Lower-case letters, digits and underscores, a letter first; not "none", which is the word for
  // no metric.
  std::string name;
  int sum = 0;  // which of the sums; several metrics may be made of one
  MetricFormula formula = MetricFormula::kMean;
  bool more_is_better = false;

  bool operator==(const Metric&) const = default;
};

// A metric's figure.
struct MetricFigure {
  std::string name;
  double value = 0;

  bool operator==(const MetricFigure&) const = default;
};
// "0.9931"; what four places would show as nothing, a small error say, as "2.050e-07".
std::string FigureText(double figure);
// "accuracy 0.9931".
std::string Described(const MetricFigure& figure);
// The value of the figure of that name; none where there is no such.
std::optional<double> FindFigure(std::span<const MetricFigure> figures, std::string_view name);

class MetricList {
 public:
  static constexpr int kMostMetrics = 16;
  static constexpr int kLongestName = 32;

  MetricList() : MetricList(std::vector<Metric>(), 0) {}
  // InvalidArgument, saying which, where there are too many, a name is not one or comes twice, or
  // sums are numbered with gaps.
  static Result<MetricList> Make(std::vector<Metric> metrics);

  const std::vector<Metric>& metrics() const { return *metrics_; }
  // How many sums the metrics are made of.
  int sums() const { return sums_; }
  // Null where there is none of that name.
  const Metric* Find(std::string_view name) const;
  // "loss, accuracy"; "none".
  std::string Names() const;

  // The figure of one of the metrics. None over no samples, and where its sum is missing.
  static std::optional<double> FigureOf(const Metric& metric, const MetricSums& sums);
  // All that there are, in the list's order.
  std::vector<MetricFigure> FiguresOf(const MetricSums& sums) const;
  // The one that tells how good a network is where there is room for one: the first of which more
  // is better, or else the first. None where there is no such figure.
  std::optional<MetricFigure> Headline(const MetricSums& sums) const;
  // InvalidArgument unless these are sums of such metrics over so many samples: the number of sums
  // fits, and no share lies outside of 0 and 1. The samples follow from the job's plan, since a
  // worker must not choose the weight of its sums.
  Status Check(const MetricSums& sums, int64_t samples) const;
  // Sums of these metrics out of sums of others, by the names. Not a number where the others have
  // no metric that is made of the sum in the same way.
  MetricSums Translate(const MetricList& others, const MetricSums& sums) const;

  bool operator==(const MetricList& other) const { return metrics() == other.metrics(); }

 private:
  MetricList(std::vector<Metric> metrics, int sums)
      : metrics_(std::make_shared<const std::vector<Metric>>(std::move(metrics))), sums_(sums) {}

  std::shared_ptr<const std::vector<Metric>> metrics_;
  int sums_ = 0;
};

// A list as messages and manifests have it; the errors of MetricList::Make.
using MetricMessages = google::protobuf::RepeatedPtrField<checkpoint::Metric>;
Result<MetricList> ParseMetrics(const MetricMessages& messages);
void WriteMetrics(const MetricList& metrics, MetricMessages* messages);

}  // namespace kumo
