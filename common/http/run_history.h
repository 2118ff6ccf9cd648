// Run history for a status page that is opened late: curves of loss, rate and the parts of a round,
// evaluations, and events. Bounded for jobs of any length: points are merged (Thinned), and of the
// events the first and the latest are kept.
//
// A value; one thread. Times are seconds of the job, earlier runs included; the history covers this
// process only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/job/metric_list.h"

namespace kumo {

// Series of bounded length: when it is full, neighbours are merged in pairs, and from then on each
// point covers twice as many additions. So it always spans all additions evenly.
//
//   T: void Merge(const T& later);
//
// A value; one thread.
template <typename T>
class Thinned {
 public:
  // most: the number of kept points; even, at least 2. One more is incomplete.
  explicit Thinned(size_t most) : most_(most) {}

  void Add(const T& one) {
    if (open_) {
      open_->Merge(one);
    } else {
      open_ = one;
    }
    if (++in_open_ < each_) return;
    points_.push_back(*open_);
    open_.reset();
    in_open_ = 0;
    if (points_.size() >= most_) Halve();
  }

  // In order; the last point may cover fewer additions than the others.
  std::vector<T> points() const {
    std::vector<T> all = points_;
    if (open_) all.push_back(*open_);
    return all;
  }
  // Number of additions per point.
  size_t each() const { return each_; }

 private:
  void Halve() {
    for (size_t i = 0; i + 1 < points_.size(); i += 2) {
      points_[i].Merge(points_[i + 1]);
      points_[i / 2] = points_[i];
    }
    points_.resize(points_.size() / 2);
    each_ *= 2;
  }

  size_t most_;
  size_t each_ = 1, in_open_ = 0;
  std::vector<T> points_;
  std::optional<T> open_;
};

// A sum over the known ones of some values.
struct KnownSum {
  double sum = 0;
  int64_t count = 0;

  void Add(double value) {
    sum += value;
    ++count;
  }
  void Merge(const KnownSum& other) {
    sum += other.sum;
    count += other.count;
  }
  std::optional<double> mean() const {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  }
};

// A segment of the run.
struct HistoryPoint {
  double until_s = 0;  // its end
  double seconds = 0;  // its length
  int64_t round = 0;   // closed rounds at its end
  MetricSums sums;     // over all samples whose rounds closed in it
  KnownSum learning_rate;
  KnownSum compute_ms, wait_ms, network_ms;  // parts of a round, means over the workers
  int workers = 0;                           // at its end

  void Merge(const HistoryPoint& later);
};

struct HistoryEvaluation {
  double at_s = 0;
  int epoch = 0;
  std::vector<MetricFigure> figures;

  void Merge(const HistoryEvaluation& later) { *this = later; }
};

struct HistoryEvent {
  enum class Kind { kStart, kCheckpoint, kWentBack, kWorkerLost, kFailure, kEnd };
  Kind kind = Kind::kStart;
  double at_s = 0;
  int64_t round = 0;
  std::string text;  // for people
};

class RunHistory {
 public:
  static constexpr size_t kPoints = 512, kEvaluations = 256, kEvents = 128;

  // The metrics of the points' sums from now on.
  void SetMetrics(const MetricList& metrics) { metrics_ = metrics; }
  void Add(const HistoryPoint& point) { points_.Add(point); }
  void Add(const HistoryEvaluation& evaluation) { evaluations_.Add(evaluation); }
  // Checkpoints have a limit of their own; of each kind the latest are kept.
  void Add(HistoryEvent event);

  std::vector<HistoryPoint> points() const { return points_.points(); }
  std::vector<HistoryEvaluation> evaluations() const { return evaluations_.points(); }
  // In order of time.
  std::vector<HistoryEvent> events() const;

  // {"points":{"elapsed_time":[..],"main/loss":[..],...},"evaluations":{..},"events":[{..}]}: one
  // column per figure, under its common name; null for unknown values.
  std::string Json() const;

 private:
  std::string PointsJson() const;
  std::string EvaluationsJson() const;

  MetricList metrics_;
  Thinned<HistoryPoint> points_{kPoints};
  Thinned<HistoryEvaluation> evaluations_{kEvaluations};
  std::deque<HistoryEvent> checkpoints_, others_;
};

}  // namespace kumo
