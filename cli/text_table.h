// A table of text that fits the terminal.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kumo {

struct TextColumn {
  std::string name;
  bool right = true;  // aligned to the right, as numbers are
};

// The columns' names and a line for each row; every column as wide as its widest cell, two blanks
// apart. Where that is wider than `columns` (0: no limit), names and rows go on in further lines,
// indented, each at the same column; a cell that is wider than that alone is shortened. Rows must
// have a cell for each column.
std::string FormatTextTable(std::span<const TextColumn> header,
                            std::span<const std::vector<std::string>> rows, int columns);

}  // namespace kumo
