#include "cli/job_table.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/printable.h"
#include "common/base/terminal.h"
#include "common/base/text_table.h"
#include "common/job/metric_list.h"
#include "common/telemetry/figures.h"

namespace kumo {

namespace {

constexpr size_t kLongestText = 120;
constexpr size_t kLongestSentence = 1000;
constexpr int kSentenceIndent = 2;

std::string Shown(const std::string& text) { return Printable(text, kLongestText); }

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

// The parts in one line, or in more if one would exceed `columns`; no part is broken.
std::string Line(const std::vector<std::string>& parts, int columns) {
  constexpr std::string_view kGap = "  ";
  std::string text, line;
  for (const std::string& part : parts) {
    if (line.empty()) {
      line = part;
    } else if (columns > 0 && ColumnsOf(line) + ColumnsOf(kGap) + ColumnsOf(part) > columns) {
      text += line + "\n";
      line = std::string(kGap) + part;
    } else {
      line += std::string(kGap) + part;
    }
  }
  return text + line + "\n";
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
  return text;
}

// The metrics of the network, in the order of the epoch table; before they are known, the usual
// ones.
std::vector<std::string> Metrics(const wire::JobStatus& status) {
  const std::vector<MetricFigure> training = FiguresOf(status);
  const std::vector<MetricFigure> validation = ValidationFiguresOf(status);
  std::vector<std::string> names;
  for (const auto* figures : {&training, &validation}) {
    for (const MetricFigure& figure : *figures) {
      if (std::count(names.begin(), names.end(), figure.name) == 0) names.push_back(figure.name);
    }
  }
  if (names.empty()) names = {"loss", "accuracy"};
  std::vector<std::string> parts;
  const auto add = [&](const std::string& name, std::optional<double> value) {
    parts.push_back(Shown(name) + " " + Known(bool{value}, value.value_or(0)));
  };
  for (const std::string& name : names) {
    add(MainFigure(name), FindFigure(training, name));
    add(ValidationFigure(name), FindFigure(validation, name));
  }
  return parts;
}

std::string Head(const wire::JobStatus& status, int columns) {
  std::string text = Format("job %s: %s, round %lld of %s, epoch %s of %d, generation %u\n",
                            Shown(status.job_name()).c_str(), Shown(status.phase()).c_str(),
                            static_cast<long long>(status.round()),
                            Known(status.has_rounds(), std::to_string(status.rounds())).c_str(),
                            Known(status.has_epoch(), std::to_string(status.epoch())).c_str(),
                            status.epochs(), status.generation());
  const std::string checkpoint =
      status.last_checkpoint() < 0 ? "none" : "round " + std::to_string(status.last_checkpoint());
  text += Line({Done(status), "last checkpoint " + checkpoint}, columns);
  text += Line(Metrics(status), columns);
  text += Line(
      {Named(figure::kLearningRate,
             Known(status.has_learning_rate(), Format("%g", status.learning_rate()))),
       Named(figure::kSamplesPerSecond,
             Known(status.has_samples_per_second(), Format("%.0f", status.samples_per_second()))),
       Named(figure::kElapsedTime, HumanDuration(status.elapsed_seconds())),
       Named(figure::kEta, Known(status.has_eta_seconds(), HumanDuration(status.eta_seconds())))},
      columns);
  const auto say = [&](const std::string& what, const std::string& sentence) {
    if (sentence.empty()) return;
    text += Folded(what + Printable(sentence, kLongestSentence), columns, kSentenceIndent) + "\n";
  };
  say("trouble: ", status.trouble());
  say("failed checkpoints since: " + std::to_string(status.checkpoint_failures()) + ", ",
      status.checkpoint_failure());
  say("curves cannot be written: ", status.curves_failure());
  say("waits for ", status.waits_for());
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

// The table of some columns, by their indices.
std::string TableOfColumns(const std::vector<size_t>& which, const std::vector<TextColumn>& header,
                           const Rows& rows, int columns) {
  const auto chosen = [&](const auto& cells) {
    auto some = cells;
    some.clear();
    for (const size_t i : which) some.push_back(cells[i]);
    return some;
  };
  Rows parts;
  for (const auto& row : rows) parts.push_back(chosen(row));
  return FormatTextTable(chosen(header), parts, columns);
}

// One table, or two if one would exceed `columns`: places and states, then figures.
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
  std::string text = columns > 0 && WidthOfTextTable(header, rows) > columns
                         ? TableOfColumns({0, 1, 2, 3, 11}, header, rows, columns) + "\n" +
                               TableOfColumns({0, 4, 5, 6, 7, 8, 9, 10}, header, rows, columns)
                         : FormatTextTable(header, rows, columns);
  if (status.workers_left_out() == 0) return text;
  return text + "and " + std::to_string(status.workers_left_out()) + " more workers\n";
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
  return Folded(Head(status, columns), columns, 2) + "\n" + Workers(status, columns) + "\n" +
         Servers(status, columns);
}

}  // namespace kumo
