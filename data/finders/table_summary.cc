#include "data/finders/table_summary.h"

#include <algorithm>
#include <cmath>

#include "common/base/file.h"
#include "common/base/nearest_float.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "data/readers/csv.h"
#include "data/readers/image_files.h"

namespace kumo {
namespace {

constexpr uint64_t kMostSummarisedBytes = uint64_t{4} << 30;
constexpr double kMistakes = 0.05;  // share of cells of another kind; one at least
constexpr size_t kLongestQuoted = 60;
constexpr float kMostExact = 1 << 24;  // integers below are exact in float32

std::optional<float> NumberIn(std::string_view cell) {
  const std::optional<float> number = NearestFloat(cell);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Status CheckNames(const TableSummary& table, int64_t line) {
  for (const TableColumn& column : table.columns) {
    const bool number = NumberIn(column.name).has_value();
    if (!number && !IsImageName(column.name)) continue;
    return table.Error(
        line, "the first row must have the names of the columns, but " + QuotedPart(column.name) +
                  (number ? " is a number" : " is an image") +
                  "; rename the columns, or, if this row is a sample, write a row with names above "
                  "it, such as a,b,label");
  }
  const std::string& first = table.columns.front().name;
  if (table.columns.size() > 1 || first.find_first_of(";\t") == first.npos) return OkStatus();
  return table.Error(line, "the row of names is one column, " + QuotedPart(first) +
                               "; separate columns by commas");
}

// see: called with each row below the names, which are in table->columns then, until that returns
// false.
Status ReadRows(
    const std::string& path, TableSummary* table,
    const std::function<bool(const std::vector<std::string>& cells, int64_t line)>& see) {
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kMostSummarisedBytes));
  table->path = path;
  CsvReader reader(text);
  std::vector<std::string> cells;
  const auto next = [&]() -> Result<bool> {
    Result<bool> more = reader.Next(&cells);
    if (more.ok()) return more;
    return more.status().WithContext(path + ":" +
                                     std::to_string(std::max<int64_t>(1, reader.line())));
  };
  KUMO_ASSIGN_OR_RETURN(const bool any, next());
  if (!any) return table->Error(1, "is empty; write a row with the names of the columns");
  for (const std::string& name : cells) {
    table->columns.emplace_back().name = std::string(Trimmed(name));
  }
  KUMO_RETURN_IF_ERROR(CheckNames(*table, reader.line()));
  for (;;) {
    KUMO_ASSIGN_OR_RETURN(const bool more, next());
    if (!more) return OkStatus();
    const Status width = CheckCsvFields(cells.size(), table->columns.size());
    if (!width.ok()) return table->Error(reader.line(), width.message());
    if (!see(cells, reader.line())) return OkStatus();
  }
}

}  // namespace

void TableColumn::Add(std::string_view cell, int64_t line) {
  const auto note = [&](std::optional<TableCell>* first) {
    if (!*first) *first = TableCell{std::string(cell), line};
  };
  ++cells;
  if (cell.empty()) note(&empty);
  if (const std::optional<float> number = NumberIn(cell)) {
    ++numbers;
    if (*number == std::floor(*number)) ++whole;
    least = std::min(least, *number);
    most = std::max(most, *number);
  } else {
    note(&no_number);
  }
  if (IsImageName(cell)) {
    ++images;
  } else {
    note(&no_image);
  }
  // Integers in this range cannot all differ if there are more cells than values.
  if (whole == cells && -kMostExact < least &&
      most<kMostExact&& static_cast<float>(cells)> most - least + 1) {
    repeats = true;
  }
  const bool full = different.size() > kMostDifferentCells;
  if (full && (repeats || whole < cells)) return;
  if (different.contains(cell)) {
    repeats = true;
  } else if (!full) {
    different.emplace(cell);
  }
}

CellKind TableColumn::kind() const {
  const auto mistakes = std::max(1.0, kMistakes * static_cast<double>(cells));
  const auto are = [&](int64_t of_kind) {
    return static_cast<double>(cells - of_kind) <= mistakes && 2 * of_kind > cells;
  };
  if (are(images)) return CellKind::kImages;
  return are(numbers) ? CellKind::kNumbers : CellKind::kWords;
}

Status TableSummary::Error(int64_t line, const std::string& what) const {
  return InvalidArgument(path + ":" + std::to_string(line) + ": " + what);
}

Status TableSummary::Error(const TableColumn& column, const TableCell& cell,
                           const std::string& what) const {
  return Error(cell.line,
               "column " + QuotedPart(column.name) + ": " + QuotedPart(cell.text) + " " + what);
}

std::string QuotedPart(std::string_view text) {
  return "\"" + Printable(text, kLongestQuoted) + "\"";
}

Result<TableSummary> SummariseTable(const std::string& path) {
  TableSummary table;
  KUMO_RETURN_IF_ERROR(
      ReadRows(path, &table, [&](const std::vector<std::string>& cells, int64_t line) {
        for (size_t i = 0; i < cells.size(); ++i) table.columns[i].Add(Trimmed(cells[i]), line);
        ++table.rows;
        return true;
      }));
  if (table.rows == 0) return table.Error(1, "has no rows below the names of the columns");
  return table;
}

Result<std::vector<std::string>> NamesOfColumns(const std::string& path) {
  TableSummary table;
  KUMO_RETURN_IF_ERROR(
      ReadRows(path, &table, [](const std::vector<std::string>&, int64_t) { return false; }));
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) names.push_back(column.name);
  return names;
}

Status ReadColumn(const std::string& path, size_t column,
                  const std::function<bool(const TableCell& cell)>& see) {
  TableSummary table;
  return ReadRows(path, &table, [&](const std::vector<std::string>& cells, int64_t line) {
    return see({std::string(Trimmed(cells[column])), line});
  });
}

}  // namespace kumo
