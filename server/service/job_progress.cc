#include "server/service/job_progress.h"

#include <algorithm>

#include "common/telemetry/metric_figures.h"

namespace kumo {
namespace {

// A mean over those who know.
class Mean {
 public:
  void Add(bool known, double value) {
    if (!known) return;
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional<double>(sum_ / count_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

template <typename T>
std::optional<T> Known(bool known, T value) {
  return known ? std::optional<T>(value) : std::nullopt;
}

// What the workers say of themselves.
void AddWorkers(const wire::JobStatus& status, RoundProgress* progress) {
  Mean compute, wait, network;
  double slowest = 0;
  for (const auto& worker : status.workers()) {
    const wire::WorkerReport& report = worker.report();
    compute.Add(report.has_compute_ms(), report.compute_ms());
    wait.Add(report.has_wait_ms(), report.wait_ms());
    network.Add(report.has_network_ms(), report.network_ms());
    progress->bytes_sent += report.bytes_sent();
    progress->bytes_received += report.bytes_received();
    // Whoever waits least is the one that the others wait for.
    const double busy = report.compute_ms() + report.network_ms();
    if (status.workers_size() > 1 && busy > slowest) {
      slowest = busy;
      progress->slowest = worker.name();
    }
    if (worker.has_silent_seconds()) {
      progress->silent.push_back({worker.name(), worker.silent_seconds()});
    }
  }
  progress->compute_ms = compute.value();
  progress->wait_ms = wait.value();
  progress->network_ms = network.value();
  std::sort(progress->silent.begin(), progress->silent.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

}  // namespace

RoundProgress ProgressOf(const wire::JobStatus& status) {
  RoundProgress progress;
  progress.round = status.round();
  progress.rounds = status.rounds();
  progress.samples = status.samples();
  progress.total_samples = status.total_samples();
  progress.epoch = status.epoch();
  progress.epochs = status.epochs();
  progress.figures = FiguresOf(status);
  progress.learning_rate = Known(status.has_learning_rate(), status.learning_rate());
  progress.samples_per_second = Known(status.has_samples_per_second(), status.samples_per_second());
  progress.workers = status.workers_size();
  progress.elapsed_seconds = status.elapsed_seconds();
  progress.eta_seconds = Known(status.has_eta_seconds(), status.eta_seconds());
  AddWorkers(status, &progress);
  return progress;
}

}  // namespace kumo
