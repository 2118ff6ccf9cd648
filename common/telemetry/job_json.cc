#include "common/telemetry/job_json.h"

#include <optional>

#include "common/base/json.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

template <typename T>
std::optional<T> Known(bool known, T value) {
  return known ? std::optional<T>(value) : std::nullopt;
}

std::optional<std::string> Said(const std::string& text) { return Known(!text.empty(), text); }

JsonFields Fields(const wire::JobStatus::Worker& worker) {
  const wire::WorkerReport& report = worker.report();
  JsonArray partitions;
  for (const int partition : report.partitions()) partitions.Add(partition);
  JsonFields fields;
  fields.Add("name", worker.name())
      .Add("host", worker.host())
      .Add("seen_seconds_ago", worker.seen_seconds_ago())
      .Add(figure::kSilent, Known(worker.has_silent_seconds(), worker.silent_seconds()))
      .Add("state", Known(!worker.has_silent_seconds(), report.state()))
      .Add("partitions", partitions)
      .Add(figure::kRound, report.round())
      .Add(figure::kSamples, report.samples())
      .Add(figure::kSamplesPerSecond,
           Known(worker.has_samples_per_second(), worker.samples_per_second()))
      .Add(figure::kCompute, Known(report.has_compute_ms(), report.compute_ms()))
      .Add(figure::kWait, Known(report.has_wait_ms(), report.wait_ms()))
      .Add(figure::kNetwork, Known(report.has_network_ms(), report.network_ms()))
      .Add(figure::kBytesSent, report.bytes_sent())
      .Add(figure::kBytesReceived, report.bytes_received())
      .Add("leaving", report.leaving())
      .Add("failure", Said(report.failure()));
  return fields;
}

JsonFields Fields(const wire::JobStatus::Server& server) {
  const wire::ServerReport& report = server.report();
  JsonFields fields;
  fields.Add("index", server.index())
      .Add("host", Said(server.host()))
      .Add("seen_seconds_ago", Known(server.has_seen_seconds_ago(), server.seen_seconds_ago()))
      .Add(figure::kSilent, Known(server.has_silent_seconds(), server.silent_seconds()))
      .Add("ready", report.ready())
      .Add("version", report.version())
      .Add("shard_bytes", report.shard_bytes())
      .Add(figure::kBytesSent, report.bytes_sent())
      .Add(figure::kBytesReceived, report.bytes_received())
      .Add("waits_for", Said(report.waits_for()))
      .Add("leaving", report.leaving())
      .Add("failure", Said(report.failure()));
  return fields;
}

}  // namespace

std::string JobJson(const wire::JobStatus& status) {
  JsonArray workers, servers;
  for (const auto& worker : status.workers()) workers.Add(Fields(worker));
  for (const auto& server : status.servers()) servers.Add(Fields(server));
  JsonFields fields;
  fields.Add("job_name", status.job_name())
      .Add("phase", status.phase())
      .Add("waits_for", Said(status.waits_for()))
      .Add("generation", status.generation())
      .Add(figure::kRound, status.round())
      .Add(figure::kRounds, Known(status.has_rounds(), status.rounds()))
      .Add(figure::kEpoch, Known(status.has_epoch(), status.epoch()))
      .Add(figure::kEpochs, status.epochs())
      .Add(figure::kSamples, Known(status.has_samples(), status.samples()))
      .Add(figure::kTotalSamples, Known(status.has_total_samples(), status.total_samples()));
  for (const MetricFigure& one : FiguresOf(status)) fields.Add(MainFigure(one.name), one.value);
  for (const MetricFigure& one : ValidationFiguresOf(status)) {
    fields.Add(ValidationFigure(one.name), one.value);
  }
  fields.Add(figure::kLearningRate, Known(status.has_learning_rate(), status.learning_rate()))
      .Add(figure::kSamplesPerSecond,
           Known(status.has_samples_per_second(), status.samples_per_second()))
      .Add(figure::kElapsedTime, status.elapsed_seconds())
      .Add(figure::kEta, Known(status.has_eta_seconds(), status.eta_seconds()))
      .Add("last_checkpoint", Known(status.last_checkpoint() >= 0, status.last_checkpoint()))
      .Add("trouble", Said(status.trouble()))
      .Add("checkpoint_failures", status.checkpoint_failures())
      .Add("checkpoint_failure", Said(status.checkpoint_failure()))
      .Add("curves_failure", Said(status.curves_failure()))
      .Add(figure::kWorkers, workers)
      .Add("workers_left_out", status.workers_left_out())
      .Add("servers", servers);
  return fields.object();
}

}  // namespace kumo
