#include "common/job/http/run_history.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "common/base/json.h"
#include "common/job/telemetry/figures.h"

namespace kumo {
namespace {

// As many digits as a curve shows.
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

std::string Object(const std::vector<std::pair<std::string_view, std::string>>& fields) {
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
  samples += later.samples;
  loss_sum += later.loss_sum;
  correct += later.correct;
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
  if (kept.size() > kEvents) kept.erase(kept.begin() + 1);  // the first tells how it began
}

std::vector<HistoryEvent> RunHistory::events() const {
  std::vector<HistoryEvent> all;
  std::merge(checkpoints_.begin(), checkpoints_.end(), others_.begin(), others_.end(),
             std::back_inserter(all), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  return all;
}

std::string RunHistory::Json() const {
  Column at, seconds, round, loss, accuracy, rate, lr, compute, wait, network, workers;
  for (const HistoryPoint& p : points()) {
    const auto samples = static_cast<double>(p.samples);
    at.Add(p.until_s);
    seconds.Add(p.seconds);
    round.AddWhole(p.round);
    loss.Add(Over(p.loss_sum, samples));
    accuracy.Add(Over(static_cast<double>(p.correct), samples));
    rate.Add(Over(samples, p.seconds));
    lr.Add(p.learning_rate.mean());
    compute.Add(p.compute_ms.mean());
    wait.Add(p.wait_ms.mean());
    network.Add(p.network_ms.mean());
    workers.AddWhole(p.workers);
  }
  Column evaluated_at, epoch, validation_loss, validation_accuracy;
  for (const HistoryEvaluation& e : evaluations()) {
    evaluated_at.Add(e.at_s);
    epoch.AddWhole(e.epoch);
    validation_loss.Add(e.loss);
    validation_accuracy.Add(e.accuracy);
  }
  JsonArray events_json;
  for (const HistoryEvent& event : events()) {
    JsonFields fields;
    fields.Add("kind", NameOf(event.kind))
        .Add(figure::kElapsedTime, Short(event.at_s))
        .Add(figure::kRound, event.round)
        .Add("text", event.text);
    events_json.Add(fields);
  }
  const std::string points_json = Object({{figure::kElapsedTime, at.json()},
                                          {"seconds", seconds.json()},
                                          {figure::kRound, round.json()},
                                          {figure::kLoss, loss.json()},
                                          {figure::kAccuracy, accuracy.json()},
                                          {figure::kSamplesPerSecond, rate.json()},
                                          {figure::kLearningRate, lr.json()},
                                          {figure::kCompute, compute.json()},
                                          {figure::kWait, wait.json()},
                                          {figure::kNetwork, network.json()},
                                          {figure::kWorkers, workers.json()}});
  const std::string evaluations_json =
      Object({{figure::kElapsedTime, evaluated_at.json()},
              {figure::kEpoch, epoch.json()},
              {figure::kValidationLoss, validation_loss.json()},
              {figure::kValidationAccuracy, validation_accuracy.json()}});
  return Object({{"points", points_json},
                 {"evaluations", evaluations_json},
                 {"events", events_json.array()}});
}

}  // namespace kumo
