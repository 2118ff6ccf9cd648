#include "cli/job_table.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <vector>

#include "common/base/printable.h"
#include "common/base/terminal.h"
#include "common/job/metric_list.h"
#include "common/telemetry/figures.h"

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

// `text`, or "-" if the value is unknown.
std::string Known(bool known, const std::string& text) { return known ? text : "-"; }
std::string Known(bool known, double value) { return Known(known, FigureText(value)); }
std::string Tenths(bool known, double value) { return Known(known, Format("%.1f", value)); }

std::string Named(const Figure& figure, const std::string& value) {
  return std::string(figure.name) + " " + value;
}

std::string Line(std::initializer_list<std::string> parts) {
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "" : "  ") + part;
  return line + "\n";
}

std::string SilentFor(double seconds) {
  return Format("silent for %.0f s", std::floor(std::clamp(seconds, 0.0, 1e9)));
}

// The sorted partitions as ranges: "0-3 7".
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

std::string Done(const wire::JobStatus& status) {
  std::string text = "samples " + Known(status.has_samples(), std::to_string(status.samples())) +
                     " of " +
                     Known(status.has_total_samples(), std::to_string(status.total_samples()));
  if (status.total_samples() > 0) {
    text += Format(" (%.1f %%)", 100 * static_cast<double>(status.samples()) /
                                     static_cast<double>(status.total_samples()));
  }
  return text + "\n";
}

// The metrics of the network; before they are known, the usual ones.
std::string Metrics(const wire::JobStatus& status) {
  const std::vector<MetricFigure> training = FiguresOf(status);
  const std::vector<MetricFigure> validation = ValidationFiguresOf(status);
  std::vector<std::string> names;
  for (const auto* figures : {&training, &validation}) {
    for (const MetricFigure& figure : *figures) {
      if (std::count(names.begin(), names.end(), figure.name) == 0) names.push_back(figure.name);
    }
  }
  if (names.empty()) names = {"loss", "accuracy"};
  std::string text;
  const auto add = [&](const std::string& name, std::optional<double> value) {
    text += (text.empty() ? "" : "  ") + Shown(name) + " " + Known(bool{value}, value.value_or(0));
  };
  for (const std::string& name : names) add(MainFigure(name), FindFigure(training, name));
  for (const std::string& name : names) add(ValidationFigure(name), FindFigure(validation, name));
  return text + "\n";
}

std::string Head(const wire::JobStatus& status) {
  std::string text = Format("job %s: %s, round %lld of %s, epoch %s of %d, generation %u\n",
                            Shown(status.job_name()).c_str(), Shown(status.phase()).c_str(),
                            static_cast<long long>(status.round()),
                            Known(status.has_rounds(), std::to_string(status.rounds())).c_str(),
                            Known(status.has_epoch(), std::to_string(status.epoch())).c_str(),
                            status.epochs(), status.generation());
  text += Done(status);
  text += Metrics(status);
  text += Line({
      Named(figure::kLearningRate,
            Known(status.has_learning_rate(), Format("%g", status.learning_rate()))),
      Named(figure::kSamplesPerSecond,
            Known(status.has_samples_per_second(), Format("%.0f", status.samples_per_second()))),
      Named(figure::kElapsedTime, HumanDuration(status.elapsed_seconds())),
      Named(figure::kEta, Known(status.has_eta_seconds(), HumanDuration(status.eta_seconds()))),
      status.last_checkpoint() < 0
          ? "last checkpoint none"
          : "last checkpoint round " + std::to_string(status.last_checkpoint()),
  });
  if (!status.trouble().empty()) text += "trouble: " + Shown(status.trouble()) + "\n";
  if (!status.checkpoint_failure().empty()) {
    text += "failed checkpoints since: " + std::to_string(status.checkpoint_failures()) + ", " +
            Shown(status.checkpoint_failure()) + "\n";
  }
  if (!status.waits_for().empty()) text += "waits for " + Shown(status.waits_for()) + "\n";
  return text;
}

std::string StateOf(const wire::JobStatus::Worker& worker) {
  const wire::WorkerReport& report = worker.report();
  if (!report.failure().empty()) return "failed: " + report.failure();
  if (worker.has_silent_seconds()) return SilentFor(worker.silent_seconds());
  return report.state();
}

std::string StateOf(const wire::JobStatus::Server& server) {
  const wire::ServerReport& report = server.report();
  if (!report.failure().empty()) return "failed: " + report.failure();
  if (!server.has_seen_seconds_ago()) return "not joined yet";
  if (server.has_silent_seconds()) return SilentFor(server.silent_seconds());
  if (!report.waits_for().empty()) return "waits for " + report.waits_for();
  return report.ready() ? "ready" : "starting";
}

using Rows = std::vector<std::vector<std::string>>;

std::string Workers(const wire::JobStatus& status, int columns) {
  const std::vector<TextColumn> header = {{"worker", false},
                                          {"host", false},
                                          {"seen s"},
                                          {"partitions", false},
                                          {"round"},
                                          {"samples/s"},
                                          {std::string(figure::kCompute.name)},
                                          {std::string(figure::kWait.name)},
                                          {std::string(figure::kNetwork.name)},
                                          {"sent MiB"},
                                          {"recv MiB"},
                                          {"state", false}};
  Rows rows;
  for (const wire::JobStatus::Worker& worker : status.workers()) {
    const wire::WorkerReport& report = worker.report();
    rows.push_back(
        {Shown(worker.name()), Shown(worker.host()), Tenths(true, worker.seen_seconds_ago()),
         Shown(Leases(report)), std::to_string(report.round()),
         Known(worker.has_samples_per_second(), Format("%.0f", worker.samples_per_second())),
         Tenths(report.has_compute_ms(), report.compute_ms()),
         Tenths(report.has_wait_ms(), report.wait_ms()),
         Tenths(report.has_network_ms(), report.network_ms()), Mebibytes(report.bytes_sent()),
         Mebibytes(report.bytes_received()), Shown(StateOf(worker))});
  }
  const std::string left_out =
      status.workers_left_out() > 0
          ? "and " + std::to_string(status.workers_left_out()) + " more workers\n"
          : "";
  return FormatTextTable(header, rows, columns) + left_out;
}

std::string Servers(const wire::JobStatus& status, int columns) {
  const std::vector<TextColumn> header = {{"server", false}, {"host", false}, {"seen s"},
                                          {"shard MiB"},     {"version"},     {"sent MiB"},
                                          {"recv MiB"},      {"state", false}};
  Rows rows;
  for (const wire::JobStatus::Server& server : status.servers()) {
    const wire::ServerReport& report = server.report();
    rows.push_back({std::to_string(server.index()),
                    Known(!server.host().empty(), Shown(server.host())),
                    Tenths(server.has_seen_seconds_ago(), server.seen_seconds_ago()),
                    Mebibytes(report.shard_bytes()), std::to_string(report.version()),
                    Mebibytes(report.bytes_sent()), Mebibytes(report.bytes_received()),
                    Shown(StateOf(server))});
  }
  return FormatTextTable(header, rows, columns);
}

}  // namespace

std::string JobTable(const wire::JobStatus& status, int columns) {
  return Folded(Head(status), columns, 2) + "\n" + Workers(status, columns) + "\n" +
         Servers(status, columns);
}

namespace {

constexpr int kGap = 2;     // blanks between columns
constexpr int kIndent = 4;  // of continuation lines

struct CellPlace {
  int width = 0;
  bool begins_line = false;  // starts a continuation line
};

std::vector<CellPlace> Places(std::span<const TextColumn> header,
                              std::span<const std::vector<std::string>> rows, int columns) {
  std::vector<CellPlace> places;
  int used = 0;  // columns of the line
  for (size_t i = 0; i < header.size(); ++i) {
    CellPlace place{ColumnsOf(header[i].name)};
    for (const auto& row : rows) place.width = std::max(place.width, ColumnsOf(row[i]));
    if (columns > 0) place.width = std::min(place.width, std::max(columns - kIndent, 3));
    place.begins_line = i > 0 && columns > 0 && used + kGap + place.width > columns;
    used = place.begins_line ? kIndent + place.width : used + (i > 0 ? kGap : 0) + place.width;
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::string FormatTextTable(std::span<const TextColumn> header,
                            std::span<const std::vector<std::string>> rows, int columns) {
  const std::vector<CellPlace> places = Places(header, rows, columns);
  std::string text;
  const auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  const auto add_row = [&](const auto& cell_of) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].begins_line) end_line();
      text.append(places[i].begins_line ? kIndent : i > 0 ? kGap : 0, ' ');
      const std::string cell = Shortened(cell_of(i), places[i].width);
      const std::string blanks(places[i].width - ColumnsOf(cell), ' ');
      text += header[i].right ? blanks + cell : cell + blanks;
    }
    end_line();
  };
  add_row([&](size_t i) { return header[i].name; });
  for (const auto& row : rows) add_row([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace kumo
