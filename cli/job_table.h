// Status table of a running job (`kumo status`).
//
// Pure function; thread-safe. The status comes from a peer: only printable characters of its
// strings reach the terminal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "proto/wire.pb.h"

namespace kumo {

// A column of a text table.
struct TextColumn {
  std::string name;
  bool right = true;  // right-aligned, for numbers
};

// Formats a text table: a header line and a line per row; each column is as wide as its widest
// cell, two blanks apart. If that exceeds `columns` (0: no limit), header and rows continue on
// further, indented lines, all broken at the same columns; a cell that is still too wide is
// shortened. Rows must have one cell per column.
std::string FormatTextTable(std::span<const TextColumn> header,
                            std::span<const std::vector<std::string>> rows, int columns);

// columns: width of the terminal, a limit for all lines; 0: no limit.
std::string JobTable(const wire::JobStatus& status, int columns);

}  // namespace kumo
