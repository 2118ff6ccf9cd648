// Terminal output: width of the terminal, and text fitted to it.
//
// Stateless functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

// Columns of the terminal behind a file descriptor; 0 for a file or a pipe, which have no limit.
// `wanted` ($COLUMNS) overrides the terminal's width unless it is "" or invalid. A terminal that
// reports no width has 80.
int TerminalColumns(int fd, std::string_view wanted = "");

// Folds the lines of `text` that exceed `columns`, at a blank if possible. Continuation lines are
// indented like the line plus `hanging` blanks. A column is one UTF-8 character. With columns = 0
// the text is unchanged.
std::string Folded(std::string_view text, int columns, int hanging = 0);

// Number of UTF-8 characters.
int ColumnsOf(std::string_view text);

// Fits `text` into `columns` (at least 3) by replacing its middle with "...".
std::string Shortened(std::string_view text, int columns);

}  // namespace kumo
