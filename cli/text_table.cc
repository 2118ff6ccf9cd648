#include "cli/text_table.h"

#include <algorithm>
#include <cstddef>

#include "common/base/terminal.h"

namespace kumo {
namespace {

constexpr int kGap = 2;     // blanks between columns
constexpr int kIndent = 4;  // of the further lines of a row

struct Place {
  int width = 0;
  bool begins_line = false;  // a further line of the row
};

std::vector<Place> Places(std::span<const TextColumn> header,
                          std::span<const std::vector<std::string>> rows, int columns) {
  std::vector<Place> places;
  int used = 0;  // of the line
  for (size_t i = 0; i < header.size(); ++i) {
    Place place{ColumnsOf(header[i].name)};
    for (const auto& row : rows) place.width = std::max(place.width, ColumnsOf(row[i]));
    if (columns > 0) place.width = std::min(place.width, std::max(columns - kIndent, 3));
    place.begins_line = i > 0 && columns > 0 && used + kGap + place.width > columns;
    used = place.begins_line ? kIndent + place.width : used + (i > 0 ? kGap : 0) + place.width;
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::string FormatTextTable(std::span<const TextColumn> header,
                            std::span<const std::vector<std::string>> rows, int columns) {
  const std::vector<Place> places = Places(header, rows, columns);
  std::string text;
  const auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  const auto add_row = [&](const auto& cell_of) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].begins_line) end_line();
      text.append(places[i].begins_line ? kIndent : i > 0 ? kGap : 0, ' ');
      const std::string cell = Shortened(cell_of(i), places[i].width);
      const std::string blanks(places[i].width - ColumnsOf(cell), ' ');
      text += header[i].right ? blanks + cell : cell + blanks;
    }
    end_line();
  };
  add_row([&](size_t i) { return header[i].name; });
  for (const auto& row : rows) add_row([&](size_t i) { return row[i]; });
  return text;
}

}  // namespace kumo
