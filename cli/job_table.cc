#include "cli/job_table.h"

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "common/telemetry/human_readable.h"

namespace kumo {
namespace {

constexpr size_t kLongestText = 120;

std::string Shown(const std::string& text) {
  std::string shown = text.substr(0, kLongestText);
  for (char& c : shown) {
    if (c < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return shown;
}

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return text;
}

std::string Mebibytes(uint64_t bytes) {
  return Format("%.2f", static_cast<double>(bytes) / (1 << 20));
}

std::string Known(bool known, double value) { return known ? Format("%.4f", value) : "-"; }

// Sorted, with ranges: "0-3 7".
std::string Leases(const wire::WorkerReport& report) {
  std::vector<int> partitions(report.partitions().begin(), report.partitions().end());
  std::sort(partitions.begin(), partitions.end());
  std::string text;
  for (size_t i = 0; i < partitions.size();) {
    size_t j = i;
    while (j + 1 < partitions.size() && partitions[j + 1] == partitions[j] + 1) ++j;
    text += (text.empty() ? "" : " ") + std::to_string(partitions[i]);
    if (j > i) text += "-" + std::to_string(partitions[j]);
    i = j + 1;
  }
  return text.empty() ? "-" : text;
}

std::string Head(const wire::JobStatus& status) {
  std::string text =
      Format("job %s: %s, round %lld of %lld, epoch %d of %d, generation %u\n",
             Shown(status.job_name()).c_str(), Shown(status.phase()).c_str(),
             static_cast<long long>(status.round()), static_cast<long long>(status.rounds()),
             status.epoch(), status.epochs(), status.generation());
  text += Format("loss %s  accuracy %s  validation loss %s  validation accuracy %s\n",
                 Known(status.has_loss(), status.loss()).c_str(),
                 Known(status.has_accuracy(), status.accuracy()).c_str(),
                 Known(status.has_validation_loss(), status.validation_loss()).c_str(),
                 Known(status.has_validation_accuracy(), status.validation_accuracy()).c_str());
  text += Format("learning rate %g  %.0f samples/s  elapsed %s  left %s  last checkpoint %s\n",
                 status.learning_rate(), status.samples_per_second(),
                 HumanDuration(status.elapsed_seconds()).c_str(),
                 (status.has_eta_seconds() ? HumanDuration(status.eta_seconds()) : "-").c_str(),
                 status.last_checkpoint() < 0
                     ? "none"
                     : ("round " + std::to_string(status.last_checkpoint())).c_str());
  if (!status.waits_for().empty()) text += "waits for " + Shown(status.waits_for()) + "\n";
  return text;
}

std::string Workers(const wire::JobStatus& status) {
  std::string text = Format("\n%-16s %-14s %8s %-12s %8s %10s %8s %8s %8s %9s %9s  %s\n", "worker",
                            "host", "seen s", "partitions", "round", "samples/s", "comp ms",
                            "wait ms", "net ms", "sent MiB", "recv MiB", "state");
  for (const wire::JobStatus::Worker& worker : status.workers()) {
    const wire::WorkerReport& report = worker.report();
    text += Format(
        "%-16.40s %-14.40s %8.1f %-12.60s %8lld %10.0f %8.1f %8.1f %8.1f %9s %9s  ",
        Shown(worker.name()).c_str(), Shown(worker.host()).c_str(), worker.seen_seconds_ago(),
        Leases(report).c_str(), static_cast<long long>(report.round()), worker.samples_per_second(),
        report.compute_ms(), report.wait_ms(), report.network_ms(),
        Mebibytes(report.bytes_sent()).c_str(), Mebibytes(report.bytes_received()).c_str());
    text += Shown(report.failure().empty() ? report.state() : "failed: " + report.failure()) + "\n";
  }
  return text;
}

std::string Servers(const wire::JobStatus& status) {
  std::string text = Format("\n%-7s %-14s %8s %9s %8s %9s %9s  %s\n", "server", "host", "seen s",
                            "shard MiB", "version", "sent MiB", "recv MiB", "state");
  for (const wire::JobStatus::Server& server : status.servers()) {
    const wire::ServerReport& report = server.report();
    text +=
        Format("%-7d %-14.40s %8.1f %9s %8lld %9s %9s  ", server.index(),
               Shown(server.host()).c_str(), server.seen_seconds_ago(),
               Mebibytes(report.shard_bytes()).c_str(), static_cast<long long>(report.version()),
               Mebibytes(report.bytes_sent()).c_str(), Mebibytes(report.bytes_received()).c_str());
    std::string state = report.ready() ? "ready" : "starting";
    if (!report.waits_for().empty()) state = "waits for " + report.waits_for();
    if (!report.failure().empty()) state = "failed: " + report.failure();
    text += Shown(state) + "\n";
  }
  return text;
}

}  // namespace

std::string JobTable(const wire::JobStatus& status) {
  return Head(status) + Workers(status) + Servers(status);
}

}  // namespace kumo
