#include "common/job/telemetry/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "common/base/human_readable.h"
#include "common/job/telemetry/figures.h"

namespace kumo {
namespace {

std::string Number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// A part of the line, and how gladly it is given up when there is no room (0 never first).
struct Field {
  std::string text;
  int expendable;
};

std::string Times(const RoundProgress& p) {
  std::string text;
  const auto add = [&](std::string_view name, std::optional<double> milliseconds) {
    if (!milliseconds) return;
    text += (text.empty() ? "" : " | ") + std::string(name) + Number(" %.1f", *milliseconds);
  };
  add("compute", p.compute_ms);
  add("wait", p.wait_ms);
  add("network", p.network_ms);
  return text.empty() ? "" : text + " ms";
}

// "worker-1 silent for 4 s and 2 more"
std::string SilentOnes(const RoundProgress& p) {
  if (p.silent.empty()) return "";
  std::string text =
      p.silent[0].worker + " silent for " + Number("%.0f s", std::floor(p.silent[0].seconds));
  if (p.silent.size() > 1) text += " and " + std::to_string(p.silent.size() - 1) + " more";
  return text;
}

std::vector<Field> Fields(const RoundProgress& p) {
  const auto of = [](int64_t part, int64_t whole) {
    return std::to_string(part) + "/" + std::to_string(whole);
  };
  std::vector<Field> fields;
  const auto add = [&](std::string text, int expendable) {
    if (!text.empty()) fields.push_back({std::move(text), expendable});
  };
  const auto add_number = [&](const char* format, std::optional<double> value, int expendable) {
    if (value) add(Number(format, *value), expendable);
  };
  add("round " + of(p.round, p.rounds), 2);
  add("epoch " + of(p.epoch, p.epochs), 6);
  add_number("loss %.4f", p.loss, 3);
  add_number("accuracy %.4f", p.accuracy, 4);
  add_number("lr %.4g", p.learning_rate, 8);
  if (p.samples_per_second) add(HumanCount(*p.samples_per_second) + " samples/s", 7);
  add(Times(p), 10);
  add("sent " + HumanBytes(p.bytes_sent) + ", received " + HumanBytes(p.bytes_received), 12);
  add("workers " + std::to_string(p.workers), 9);
  add(SilentOnes(p), 1);
  if (p.slowest) add("slowest " + *p.slowest, 11);
  add("ETA " + (p.eta_seconds ? HumanDuration(*p.eta_seconds) : "-"), 5);
  return fields;
}

double DoneFraction(const RoundProgress& progress) {
  if (progress.total_samples <= 0) return 0;
  const double fraction =
      static_cast<double>(progress.samples) / static_cast<double>(progress.total_samples);
  return std::clamp(fraction, 0.0, 1.0);
}

// "[====>     ]" in `width` >= 3 columns.
std::string Bar(double fraction, int width) {
  const int inside = width - 2;
  const int filled = static_cast<int>(fraction * inside);
  std::string bar(filled, '=');
  if (filled < inside) bar += '>';
  bar.resize(inside, ' ');
  return "[" + bar + "]";
}

std::string Join(const std::vector<Field>& fields) {
  std::string line;
  for (const Field& field : fields) {
    if (!line.empty()) line += "  ";
    line += field.text;
  }
  return line;
}

constexpr size_t kGap = 2;  // blanks between columns

struct Column {
  std::string_view name;
  std::optional<double> value;
};

std::vector<Column> Columns(const EpochResult& result) {
  return {{figure::kEpoch, result.epoch},
          {figure::kLoss, result.loss},
          {figure::kValidationLoss, result.validation_loss},
          {figure::kAccuracy, result.accuracy},
          {figure::kValidationAccuracy, result.validation_accuracy},
          {figure::kElapsedTime, result.elapsed_seconds}};
}

std::string WithoutTrailingBlanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// "validation" over "/main/loss", or nothing over the name.
std::pair<std::string_view, std::string_view> InTwoLines(std::string_view name) {
  constexpr std::string_view kAbove = "validation";
  if (!name.starts_with(kAbove)) return {"", name};
  return {kAbove, name.substr(kAbove.size())};
}

// Of one column's cells.
size_t CellWidth(std::string_view name, bool in_two_lines) {
  const auto [above, below] = InTwoLines(name);
  const size_t widest = in_two_lines ? std::max(above.size(), below.size()) : name.size();
  return std::max(widest, size_t{10});
}

bool NeedsTwoLines(int width) {
  size_t whole = 0;
  for (const Column& column : Columns({})) {
    whole += (whole == 0 ? 0 : kGap) + CellWidth(column.name, false);
  }
  return width > 0 && whole > static_cast<size_t>(width);
}

template <typename TextOf>
std::string TableLine(const EpochResult& result, bool in_two_lines, const TextOf& text_of) {
  std::string line;
  for (const Column& column : Columns(result)) {
    std::string cell(text_of(column));
    cell.resize(std::max(cell.size(), CellWidth(column.name, in_two_lines)) + kGap, ' ');
    line += cell;
  }
  return WithoutTrailingBlanks(line);
}

}  // namespace

std::string FormatProgressLine(const RoundProgress& progress) { return Join(Fields(progress)); }

std::string FormatProgressBar(const RoundProgress& progress, int width) {
  constexpr int kLeastBar = 12;
  constexpr int kMostBar = 32;
  const double fraction = DoneFraction(progress);
  const std::string percent = Number("%5.1f%%", 100 * fraction);
  if (width < static_cast<int>(percent.size())) return "";
  std::vector<Field> fields = Fields(progress);
  // Bar, blank, percent, two blanks, fields.
  const auto room_for_bar = [&] {
    const std::string text = Join(fields);
    return width - static_cast<int>(percent.size() + 1 + (text.empty() ? 0 : text.size() + 2));
  };
  while (!fields.empty() && room_for_bar() < kLeastBar) {
    fields.erase(std::max_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
      return a.expendable < b.expendable;
    }));
  }
  const int bar = std::min(room_for_bar(), kMostBar);
  std::string line = bar >= 3 ? Bar(fraction, bar) + " " + percent : percent;
  if (!fields.empty()) line += "  " + Join(fields);
  return line;
}

std::string FormatEpochTableHeader(int width) {
  if (!NeedsTwoLines(width)) {
    return TableLine({}, false, [](const Column& column) { return column.name; });
  }
  return TableLine({}, true, [](const Column& c) { return InTwoLines(c.name).first; }) + "\n" +
         TableLine({}, true, [](const Column& c) { return InTwoLines(c.name).second; });
}

std::string FormatEpochTableRow(const EpochResult& result, int width) {
  return TableLine(result, NeedsTwoLines(width), [](const Column& column) {
    return column.value ? Number("%g", *column.value) : "";
  });
}

}  // namespace kumo
