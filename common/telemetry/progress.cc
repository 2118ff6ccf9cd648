#include "common/telemetry/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/base/printable.h"
#include "common/telemetry/figures.h"

namespace kumo {
namespace {

std::string Number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// A field of the line, and its priority for removal if there is no room (0: never, then highest
// first).
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
  for (size_t i = 0; i < p.figures.size(); ++i) {
    constexpr int kExpendable[] = {3, 4};  // of the first two metrics
    add(Described(p.figures[i]), i < std::size(kExpendable) ? kExpendable[i] : 13);
  }
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
  std::string name;
  std::optional<double> value;
  size_t expendable = 0;  // priority for removal if there is no room; 0: never
};

// Expendable are all columns but those of the first metric and the next one: the first that only
// evaluations have, or else the second of training.
std::vector<Column> AllColumns(const EpochResult& result) {
  std::vector<Column> columns = {{std::string(figure::kEpoch), result.epoch}};
  const size_t metrics = result.figures.size();
  const size_t evaluated = result.evaluated.size();
  const size_t kept = evaluated > 0 ? 1 : 2;
  for (size_t i = 0; i < metrics; ++i) {
    const MetricFigure& figure = result.figures[i];
    const size_t order = i < kept ? 0 : evaluated + i;
    columns.push_back({MainFigure(figure.name), figure.value, order == 0 ? 0 : order + metrics});
    columns.push_back(
        {ValidationFigure(figure.name), FindFigure(result.validation, figure.name), order});
  }
  for (size_t i = 0; i < evaluated; ++i) {
    const std::string& name = result.evaluated[i];
    columns.push_back({ValidationFigure(name), FindFigure(result.validation, name), i});
  }
  columns.push_back({std::string(figure::kElapsedTime), result.elapsed_seconds});
  return columns;
}

std::string WithoutTrailingBlanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// "validation" above "/main/loss"; other names have nothing above.
std::pair<std::string_view, std::string_view> InTwoLines(std::string_view name) {
  constexpr std::string_view kAbove = "validation";
  if (!name.starts_with(kAbove)) return {"", name};
  return {kAbove, name.substr(kAbove.size())};
}

// Cells of one column.
size_t CellWidth(std::string_view name, bool in_two_lines) {
  const auto [above, below] = InTwoLines(name);
  const size_t widest = in_two_lines ? std::max(above.size(), below.size()) : name.size();
  return std::max(widest, size_t{10});
}

// Columns of a table, and the layout of their names.
struct Table {
  std::vector<Column> columns;
  bool in_two_lines = false;

  size_t Width() const {
    size_t whole = 0;
    for (const Column& column : columns) {
      whole += (whole == 0 ? 0 : kGap) + CellWidth(column.name, in_two_lines);
    }
    return whole;
  }
  template <typename TextOf>
  std::string Line(const TextOf& text_of) const {
    std::string line;
    for (const Column& column : columns) {
      std::string cell(text_of(column));
      cell.resize(std::max(cell.size(), CellWidth(column.name, in_two_lines)) + kGap, ' ');
      line += cell;
    }
    return WithoutTrailingBlanks(line);
  }
};

Table TableOf(const EpochResult& result, int width) {
  Table table = {AllColumns(result)};
  const auto is_too_wide = [&] { return width > 0 && table.Width() > static_cast<size_t>(width); };
  table.in_two_lines = is_too_wide();
  while (is_too_wide()) {
    const auto least = std::max_element(
        table.columns.begin(), table.columns.end(),
        [](const Column& a, const Column& b) { return a.expendable < b.expendable; });
    if (least->expendable == 0) break;
    table.columns.erase(least);
  }
  return table;
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
  // Layout: bar, blank, percentage, two blanks, fields.
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

std::string FormatEpochTableHeader(const EpochResult& result, int width) {
  const Table table = TableOf(result, width);
  if (!table.in_two_lines) {
    return table.Line([](const Column& column) { return column.name; });
  }
  return table.Line([](const Column& column) { return InTwoLines(column.name).first; }) + "\n" +
         table.Line([](const Column& column) { return InTwoLines(column.name).second; });
}

std::string FormatEpochTableRow(const EpochResult& result, int width) {
  return TableOf(result, width).Line([](const Column& column) {
    return column.value ? Number("%g", *column.value) : "";
  });
}

}  // namespace kumo
