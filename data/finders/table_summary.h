// Table summary: the cells of each column of a CSV file, counted by their kind (table_finder.h).
//
// Values and functions of the disk's contents; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace kumo {

struct TableCell {
  std::string text;  // without blanks around it
  int64_t line = 0;
};

// Kind of nearly all cells of a column; the others are mistakes.
enum class CellKind { kNumbers, kImages, kWords };

struct TableColumn {
  std::string name;
  int64_t cells = 0;
  int64_t numbers = 0, whole = 0;                        // finite ones; integers
  float least = std::numeric_limits<float>::infinity();  // of the numbers
  float most = -std::numeric_limits<float>::infinity();
  int64_t images = 0;                                   // paths with the ending of images
  std::optional<TableCell> no_number, no_image, empty;  // the first ones
  // Different cells, at most one more than kMostDifferentCells.
  std::set<std::string, std::less<>> different;
  // A cell occurs again. Behind the kept different cells that is noticed only of integers, if there
  // are more cells than integers between the least and the most.
  bool repeats = false;

  void Add(std::string_view cell, int64_t line);
  CellKind kind() const;
};

inline constexpr size_t kMostDifferentCells = 1000;

struct TableSummary {
  std::string path;
  std::vector<TableColumn> columns;
  int64_t rows = 0;

  // InvalidArgument: "PATH:LINE: WHAT", and "PATH:LINE: column "NAME": "CELL" WHAT".
  Status Error(int64_t line, const std::string& what) const;
  Status Error(const TableColumn& column, const TableCell& cell, const std::string& what) const;
};

// A part of a table in a message: in quotes, printable and shortened.
std::string QuotedPart(std::string_view text);

// InvalidArgument if the first row has a number or the path of an image in the place of a name, if
// columns are not separated by commas, a row has another number of cells than the first, or there
// are no rows; the errors of CsvReader.
Result<TableSummary> SummariseTable(const std::string& path);

// The names in the first row. The same errors.
Result<std::vector<std::string>> NamesOfColumns(const std::string& path);

// Calls `see` with each cell of a column, until that returns false. The same errors.
Status ReadColumn(const std::string& path, size_t column,
                  const std::function<bool(const TableCell& cell)>& see);

}  // namespace kumo
