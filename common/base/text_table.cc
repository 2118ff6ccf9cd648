#include "common/base/text_table.h"

#include <algorithm>
#include <cstddef>

#include "common/base/terminal.h"

namespace kumo {
namespace {

using Rows = std::span<const std::vector<std::string>>;

constexpr int kGap = 2;           // blanks between columns
constexpr int kIndent = 4;        // of continuation lines
constexpr int kLeastFolded = 20;  // width of a folded column

struct CellPlace {
  size_t column = 0;  // in the header
  int width = 0;
  bool begins_line = false;  // starts a continuation line
};

// The columns with cells, as wide as their widest one.
std::vector<CellPlace> PlacesOf(std::span<const TextColumn> header, Rows rows) {
  std::vector<CellPlace> places;
  for (size_t i = 0; i < header.size(); ++i) {
    int widest = 0;
    for (const auto& row : rows) widest = std::max(widest, ColumnsOf(row[i]));
    if (widest == 0 && !rows.empty()) continue;
    places.push_back({i, std::max(widest, ColumnsOf(header[i].name))});
  }
  return places;
}

int WidthOf(const std::vector<CellPlace>& places) {
  int width = 0;
  for (const CellPlace& place : places) width += (width == 0 ? 0 : kGap) + place.width;
  return width;
}

// Fits the places into `columns`: narrows a last column of text, or else breaks lines.
void Fit(std::span<const TextColumn> header, int columns, std::vector<CellPlace>* places) {
  const int excess = WidthOf(*places) - columns;
  if (columns <= 0 || excess <= 0 || places->empty()) return;
  CellPlace& last = places->back();
  const TextColumn& column = header[last.column];
  if (!column.right && last.width - excess >= std::max(kLeastFolded, ColumnsOf(column.name))) {
    last.width -= excess;
    return;
  }
  int used = 0;  // columns of the line
  for (CellPlace& place : *places) {
    place.width = std::min(place.width, std::max(columns - kIndent, 3));
    place.begins_line = used > 0 && used + kGap + place.width > columns;
    used = place.begins_line ? kIndent + place.width : used + (used > 0 ? kGap : 0) + place.width;
  }
}

// Ends the last line; a continuation line without cells disappears.
void EndLine(std::string* text) {
  text->erase(text->find_last_not_of(' ') + 1);
  if (!text->ends_with('\n')) *text += '\n';
}

}  // namespace

int WidthOfTextTable(std::span<const TextColumn> header, Rows rows) {
  return WidthOf(PlacesOf(header, rows));
}

std::string FormatTextTable(std::span<const TextColumn> header, Rows rows, int columns) {
  std::vector<CellPlace> places = PlacesOf(header, rows);
  Fit(header, columns, &places);
  std::string text;
  const auto add_row = [&](const auto& cell_of) {
    int used = 0;
    for (const CellPlace& place : places) {
      if (place.begins_line) {
        EndLine(&text);
        used = 0;
      }
      const int gap = place.begins_line ? kIndent : used > 0 ? kGap : 0;
      text.append(gap, ' ');
      used += gap;
      std::string cell = cell_of(place.column);
      if (&place == &places.back() && !header[place.column].right && !place.begins_line) {
        // Continuation lines stand below the cell's first line.
        std::string lines = Folded(cell, place.width);
        for (size_t end = lines.find('\n'); end != std::string::npos;
             end = lines.find('\n', end + 1)) {
          lines.insert(end + 1, used, ' ');
        }
        text += lines;
        break;
      }
      cell = Shortened(cell, place.width);
      const std::string blanks(place.width - ColumnsOf(cell), ' ');
      text += header[place.column].right ? blanks + cell : cell + blanks;
      used += place.width;
    }
    EndLine(&text);
  };
  const bool named =
      std::ranges::any_of(header, [](const TextColumn& column) { return !column.name.empty(); });
  if (named) add_row([&](size_t i) { return header[i].name; });
  for (const auto& row : rows) add_row([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace kumo
