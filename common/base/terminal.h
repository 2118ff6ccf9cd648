// The terminal that a person looks at: how wide it is, and text that fits it.
//
// Functions without state; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace kumo {

// Columns of the terminal behind a file descriptor; 0 when it is none: a file or a pipe has no
// limit. `wanted` is what $COLUMNS says, which goes over what the terminal says of itself; "" or
// nonsense for nothing. A terminal that says nothing has 80.
int TerminalColumns(int fd, std::string_view wanted = "");

// `text` with every line that is longer than `columns` broken, at a blank where there is one. What
// follows begins with the line's own blanks and `hanging` more. A column is a character of UTF-8.
// With columns = 0 it stays as it is.
std::string Folded(std::string_view text, int columns, int hanging = 0);

// Characters of UTF-8.
int ColumnsOf(std::string_view text);

// `text` in at most `columns` (at least 3), its middle replaced by "..." where it is longer.
std::string Shortened(std::string_view text, int columns);

}  // namespace kumo
