#include "common/http/run_history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "common/base/json.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

// The digits that a curve can show.
double Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

class Column {
 public:
  void Add(std::optional<double> value) {
    if (!text_.empty()) text_ += ',';
    text_ += value ? ToJson(Short(*value)) : "null";
  }
  void AddWhole(int64_t value) {
    if (!text_.empty()) text_ += ',';
    text_ += ToJson(value);
  }
  std::string json() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

std::optional<double> Over(double sum, double count) {
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::string_view NameOf(HistoryEvent::Kind kind) {
  static constexpr std::string_view kNames[] = {"start",       "checkpoint", "went_back",
                                                "worker_lost", "failure",    "end"};
  return kNames[static_cast<int>(kind)];
}

using Columns = std::vector<std::pair<std::string, std::string>>;

std::string Object(const Columns& fields) {
  std::string text;
  for (const auto& [name, json] : fields) {
    text += (text.empty() ? "" : ",") + ToJson(name) + ":" + json;
  }
  return "{" + text + "}";
}

}  // namespace

void HistoryPoint::Merge(const HistoryPoint& later) {
  until_s = later.until_s;
  seconds += later.seconds;
  round = later.round;
  sums.Add(later.sums);
  learning_rate.Merge(later.learning_rate);
  compute_ms.Merge(later.compute_ms);
  wait_ms.Merge(later.wait_ms);
  network_ms.Merge(later.network_ms);
  workers = later.workers;
}

void RunHistory::Add(HistoryEvent event) {
  std::deque<HistoryEvent>& kept =
      event.kind == HistoryEvent::Kind::kCheckpoint ? checkpoints_ : others_;
  kept.push_back(std::move(event));
  if (kept.size() > kEvents) kept.erase(kept.begin() + 1);  // keep the first: the start
}

std::vector<HistoryEvent> RunHistory::events() const {
  std::vector<HistoryEvent> all;
  std::merge(checkpoints_.begin(), checkpoints_.end(), others_.begin(), others_.end(),
             std::back_inserter(all), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  return all;
}

std::string RunHistory::PointsJson() const {
  Column at, seconds, round, rate, lr, compute, wait, network, workers;
  std::vector<Column> figures(metrics_.metrics().size());
  for (const HistoryPoint& p : points()) {
    at.Add(p.until_s);
    seconds.Add(p.seconds);
    round.AddWhole(p.round);
    for (size_t i = 0; i < figures.size(); ++i) {
      figures[i].Add(MetricList::FigureOf(metrics_.metrics()[i], p.sums));
    }
    rate.Add(Over(static_cast<double>(p.sums.samples), p.seconds));
    lr.Add(p.learning_rate.mean());
    compute.Add(p.compute_ms.mean());
    wait.Add(p.wait_ms.mean());
    network.Add(p.network_ms.mean());
    workers.AddWhole(p.workers);
  }
  Columns columns = {{std::string(figure::kElapsedTime), at.json()},
                     {"seconds", seconds.json()},
                     {std::string(figure::kRound), round.json()}};
  for (size_t i = 0; i < figures.size(); ++i) {
    columns.emplace_back(MainFigure(metrics_.metrics()[i].name), figures[i].json());
  }
  columns.insert(columns.end(), {{std::string(figure::kSamplesPerSecond), rate.json()},
                                 {std::string(figure::kLearningRate), lr.json()},
                                 {std::string(figure::kCompute), compute.json()},
                                 {std::string(figure::kWait), wait.json()},
                                 {std::string(figure::kNetwork), network.json()},
                                 {std::string(figure::kWorkers), workers.json()}});
  return Object(columns);
}

std::string RunHistory::EvaluationsJson() const {
  Column at, epoch;
  std::vector<Column> figures(metrics_.metrics().size());
  for (const HistoryEvaluation& e : evaluations()) {
    at.Add(e.at_s);
    epoch.AddWhole(e.epoch);
    for (size_t i = 0; i < figures.size(); ++i) {
      figures[i].Add(FindFigure(e.figures, metrics_.metrics()[i].name));
    }
  }
  Columns columns = {{std::string(figure::kElapsedTime), at.json()},
                     {std::string(figure::kEpoch), epoch.json()}};
  for (size_t i = 0; i < figures.size(); ++i) {
    columns.emplace_back(ValidationFigure(metrics_.metrics()[i].name), figures[i].json());
  }
  return Object(columns);
}

std::string RunHistory::Json() const {
  JsonArray events_json;
  for (const HistoryEvent& event : events()) {
    JsonFields fields;
    fields.Add("kind", NameOf(event.kind))
        .Add(figure::kElapsedTime, Short(event.at_s))
        .Add(figure::kRound, event.round)
        .Add("text", event.text);
    events_json.Add(fields);
  }
  return Object({{"points", PointsJson()},
                 {"evaluations", EvaluationsJson()},
                 {"events", events_json.array()}});
}

}  // namespace kumo
