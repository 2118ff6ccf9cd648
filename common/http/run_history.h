// What a page that is opened late shows of the run so far: how loss, rate and the rounds' parts
// went, what validations said, and what happened when. Bounded, however long a job is: points are
// merged (thinned.h), of what happened the latest is kept, and the first.
//
// A value; one thread. Times are the job's seconds, earlier runs included; the history itself is of
// this process.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/http/thinned.h"
#include "common/job/metric_list.h"

namespace kumo {

// A sum of values, some of which may not be known.
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

// A stretch of the run.
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
  std::string text;  // for a person
};

class RunHistory {
 public:
  static constexpr size_t kPoints = 512, kEvaluations = 256, kEvents = 128;

  // What the points' sums are of, from now on.
  void SetMetrics(const MetricList& metrics) { metrics_ = metrics; }
  void Add(const HistoryPoint& point) { points_.Add(point); }
  void Add(const HistoryEvaluation& evaluation) { evaluations_.Add(evaluation); }
  // Of checkpoints the latest are kept, and of all else.
  void Add(HistoryEvent event);

  std::vector<HistoryPoint> points() const { return points_.points(); }
  std::vector<HistoryEvaluation> evaluations() const { return evaluations_.points(); }
  // In order of time.
  std::vector<HistoryEvent> events() const;

  // {"points":{"elapsed_time":[..],"main/loss":[..],...},"evaluations":{..},"events":[{..}]}:
  // figures under their names everywhere, a column each; null where nothing is known.
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
