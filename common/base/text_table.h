// Text table: aligned columns for a terminal.
//
// Pure function; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kumo {

struct TextColumn {
  std::string name;
  bool right = true;  // right-aligned, for numbers
};

// Formats a table: a header line, unless all names are empty, and a line per row. Each column is as
// wide as its widest cell, two blanks apart; columns whose cells are all empty are left out.
//
// If the table exceeds `columns` (0: no limit), a last column of text is folded inside its column.
// If that does not suffice, header and rows continue on further, indented lines, all broken at the
// same columns; a cell that is still too wide is shortened.
//
// Requires one cell per column in each row.
std::string FormatTextTable(std::span<const TextColumn> header,
                            std::span<const std::vector<std::string>> rows, int columns);

// Width of the table without a limit.
int WidthOfTextTable(std::span<const TextColumn> header,
                     std::span<const std::vector<std::string>> rows);

}  // namespace kumo
