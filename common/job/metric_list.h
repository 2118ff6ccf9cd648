// Metric list: the named figures of a job, each computed from sums over samples. The loss of a
// network declares them. Workers add the sums up over their samples, servers over partitions; every
// display takes names and formulas from this list. Only the loss knows the meaning of a sum.
//
// A value that is cheap to copy; immutable, thread-safe.
#pragma once

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

// Formula of a figure, from sums over n samples.
enum class MetricFormula {
  kMean = checkpoint::Metric::MEAN,    // sum / n
  kShare = checkpoint::Metric::SHARE,  // the same; between 0 and 1 for each sample
  kExponentialOfMean = checkpoint::Metric::EXPONENTIAL_OF_MEAN,  // exp(sum / n): a perplexity
  kRatio = checkpoint::Metric::RATIO,                            // sum / another sum
  // Means over classes of a detector's average precision (PrecisionFormula), from the counts of an
  // evaluation: Settle turns it into sum / n. A round that is trained has none.
  kElevenPointPrecision = checkpoint::Metric::ELEVEN_POINT_PRECISION,
  kAveragePrecision = checkpoint::Metric::AVERAGE_PRECISION,
  kCocoPrecision = checkpoint::Metric::COCO_PRECISION,
  // Mean over classes of sum / another sum; over those whose other sum is not 0. The classes' sums
  // follow each other.
  kMeanOfRatios = checkpoint::Metric::MEAN_OF_RATIOS,
};

struct Metric {
  // Lower-case letters, digits and underscores, a letter first; not "none", which means no metric.
  std::string name;
  int sum = 0;  // index of the (first) sum; several metrics may share one
  MetricFormula formula = MetricFormula::kMean;
  bool more_is_better = false;
  int divisor = 0;  // index of the (first) sum that kRatio and kMeanOfRatios divide by
  int classes = 1;  // of kMeanOfRatios, up to kMostClassFigures; else 1

  bool has_divisor() const {
    return formula == MetricFormula::kRatio || formula == MetricFormula::kMeanOfRatios;
  }
  bool operator==(const Metric&) const = default;
};

// Name and value of a metric.
struct MetricFigure {
  std::string name;
  double value = 0;

  bool operator==(const MetricFigure&) const = default;
};
// "0.9931"; a figure that four decimals would show as 0 as "2.050e-07".
std::string FigureText(double figure);
// "accuracy 0.9931".
std::string Described(const MetricFigure& figure);
// Value of the figure of that name; none if there is none.
std::optional<double> FindFigure(std::span<const MetricFigure> figures, std::string_view name);

class MetricList {
 public:
  static constexpr int kMostMetrics = 16;
  static constexpr int kMostSums = 1024;
  static constexpr int kLongestName = 32;
  static constexpr int kMostClassFigures = 500;  // names in them have at most kLongestName bytes

  MetricList() : MetricList(std::vector<Metric>(), 0) {}
  // InvalidArgument names the metric if there are too many, or too many sums, if a name is invalid
  // or repeated, or if the indices of sums have gaps.
  static Result<MetricList> Make(std::vector<Metric> metrics);

  const std::vector<Metric>& metrics() const { return *metrics_; }
  // Number of sums.
  int sums() const { return sums_; }
  // Null if there is no metric of that name.
  const Metric* Find(std::string_view name) const;
  // "loss, accuracy"; "none" if there are none.
  std::string Names() const;
  // By which a precision is computed; none for other metrics.
  static std::optional<PrecisionFormula> PrecisionOf(const Metric& metric);
  // Names of the metrics that only evaluations have: precisions.
  std::vector<std::string> NamesOfEvaluations() const;

  // Sets the sums of precisions from the counts of detections, which go; to be called once all
  // parts of an evaluation were added.
  void Settle(MetricSums* sums) const;
  // The figures of the classes that make up a mean over classes: the average precision of each
  // class with objects, from the counts of detections (kAveragePrecision; none for more than
  // kMostClassFigures classes), and the ratios of kMeanOfRatios. "map/cat", or "map/7" of a class
  // without a name of its own. To be called before Settle.
  std::vector<MetricFigure> FiguresOfClasses(const MetricSums& sums,
                                             std::span<const std::string> class_names) const;
  // Marks the sums of precisions as unknown (NaN), until Settle.
  void Unsettle(std::span<double> sums) const;
  // Figure of one metric. None if there are no samples, if it is a precision that was not settled,
  // or if a sum of it is missing; a ratio to 0 is 0.
  static std::optional<double> FigureOf(const Metric& metric, const MetricSums& sums);
  // All figures that can be computed, in the order of the list.
  std::vector<MetricFigure> FiguresOf(const MetricSums& sums) const;
  // The figure for displays with room for one: the first metric with more_is_better, or else the
  // first metric. None if it cannot be computed.
  std::optional<MetricFigure> Headline(const MetricSums& sums) const;
  // InvalidArgument unless `sums` may be the sums of these metrics over `samples` samples: their
  // number fits, and each share lies between 0 and 1. The caller takes `samples` from the job's
  // plan, since a worker must not choose the weight of its sums.
  Status Check(const MetricSums& sums, int64_t samples) const;
  // Sums of these metrics, taken by name from the sums of `others`. NaN if `others` has no metric
  // of that name and formula.
  MetricSums Translate(const MetricList& others, const MetricSums& sums) const;

  bool operator==(const MetricList& other) const { return metrics() == other.metrics(); }

 private:
  MetricList(std::vector<Metric> metrics, int sums)
      : metrics_(std::make_shared<const std::vector<Metric>>(std::move(metrics))), sums_(sums) {}

  std::shared_ptr<const std::vector<Metric>> metrics_;
  int sums_ = 0;
};

// Conversion from and to messages and manifests. Errors: those of MetricList::Make.
using MetricMessages = google::protobuf::RepeatedPtrField<checkpoint::Metric>;
Result<MetricList> ParseMetrics(const MetricMessages& messages);
void WriteMetrics(const MetricList& metrics, MetricMessages* messages);

}  // namespace kumo
