#include "data/readers/table_columns.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/job/fields.h"
#include "common/settings/option_value.h"

namespace kumo {
namespace {

constexpr size_t kNamedColumns = 12;  // in a message
constexpr std::string_view kRange = "..";
constexpr char kForm[] =
    "; write FIELD:KIND:COLUMN, or FIELD:numbers:COLUMN+COLUMN, joined by commas, where KIND is "
    "picture, mask, class or numbers";

std::string CellQuoted(std::string_view name) { return "\"" + Printable(name, 60) + "\""; }

std::string ColumnsListed(std::span<const std::string> header) {
  std::vector<std::string> names;
  for (const std::string& name : header.first(std::min(header.size(), kNamedColumns))) {
    names.push_back(Printable(name, 40));
  }
  return Join(names) + (header.size() > kNamedColumns ? ", ..." : "");
}

std::vector<std::string_view> PartsOf(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(Trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<int> ColumnsThat(std::span<const std::string> header,
                             const std::function<bool(const std::string&)>& fits) {
  std::vector<int> columns;
  for (size_t i = 0; i < header.size(); ++i) {
    if (fits(header[i])) columns.push_back(static_cast<int>(i));
  }
  return columns;
}

Result<int> ColumnNamed(std::string_view name, std::span<const std::string> header) {
  const std::vector<int> columns =
      ColumnsThat(header, [&](const std::string& other) { return other == name; });
  if (columns.empty()) {
    return InvalidArgument("there is no column " + CellQuoted(name) + "; there are " +
                           ColumnsListed(header));
  }
  if (columns.size() == 1) return columns.front();
  return InvalidArgument(std::to_string(columns.size()) + " columns have the name " +
                         CellQuoted(name) + "; rename all but one");
}

// The columns with a name, with what precedes '*' in it, or from one name to another.
Result<std::vector<int>> ColumnsNamed(std::string_view name, std::span<const std::string> header) {
  std::vector<int> columns;
  if (name.ends_with('*')) {
    name.remove_suffix(1);
    columns =
        ColumnsThat(header, [&](const std::string& other) { return other.starts_with(name); });
    if (!columns.empty()) return columns;
    return InvalidArgument("there is no column " + CellQuoted(name) +
                           " followed by more; there are " + ColumnsListed(header));
  }
  const size_t range = name.find(kRange);
  if (range == name.npos || std::ranges::find(header, name) != header.end()) {
    KUMO_ASSIGN_OR_RETURN(const int column, ColumnNamed(name, header));
    return std::vector<int>{column};
  }
  KUMO_ASSIGN_OR_RETURN(const int first, ColumnNamed(Trimmed(name.substr(0, range)), header));
  KUMO_ASSIGN_OR_RETURN(const int last,
                        ColumnNamed(Trimmed(name.substr(range + kRange.size())), header));
  if (last < first) {
    return InvalidArgument(CellQuoted(name) + " begins behind its end; swap the two columns");
  }
  columns.resize(last - first + 1);
  std::iota(columns.begin(), columns.end(), first);
  return columns;
}

Result<TableField> FieldIn(std::string_view text, std::span<const std::string> header) {
  const std::vector<std::string_view> parts = PartsOf(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty()) {
    return InvalidArgument(CellQuoted(text) + " names no field" + kForm);
  }
  const std::optional<ColumnKind> kind = FindChoice<ColumnKind>(parts[1]);
  if (!kind) {
    return InvalidArgument(CellQuoted(parts[1]) + " is no kind of " + CellQuoted(text) + kForm);
  }
  TableField field{std::string(parts[0]), *kind, {}};
  const std::string_view names = parts.size() == 2 ? parts[0] : parts[2];
  for (const std::string_view name : PartsOf(names, '+')) {
    KUMO_ASSIGN_OR_RETURN(const std::vector<int> columns, ColumnsNamed(name, header));
    field.columns.insert(field.columns.end(), columns.begin(), columns.end());
  }
  if (field.kind != ColumnKind::kNumbers && field.columns.size() > 1) {
    return InvalidArgument(CellQuoted(text) + " has " + std::to_string(field.columns.size()) +
                           " columns, but a " + std::string(WordOf(field.kind)) +
                           " is in one; make a field of each");
  }
  return field;
}

ColumnKind KindOfColumn(std::string_view name) {
  if (name == kImageField) return ColumnKind::kPicture;
  if (name == kMaskField) return ColumnKind::kMask;
  return name == kLabelField ? ColumnKind::kClass : ColumnKind::kNumbers;
}

Result<std::vector<TableField>> FieldsByName(std::span<const std::string> header) {
  std::vector<TableField> fields;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) {
      return InvalidArgument("column " + std::to_string(i + 1) +
                             " has no name; name it, or name the columns to read with "
                             "data.columns");
    }
    fields.push_back({header[i], KindOfColumn(header[i]), {static_cast<int>(i)}});
  }
  return fields;
}

}  // namespace

Result<std::vector<TableField>> FieldsOfTable(const std::string& setting,
                                              std::span<const std::string> header) {
  std::vector<TableField> fields;
  const std::string context = "data.columns = " + Printable(setting);
  if (setting.empty()) {
    KUMO_ASSIGN_OR_RETURN(fields, FieldsByName(header));
  } else {
    for (const std::string_view part : PartsOf(setting, ',')) {
      const Result<TableField> field = FieldIn(part, header);
      if (!field.ok()) return field.status().WithContext(context);
      fields.push_back(*field);
    }
  }
  std::ranges::stable_sort(fields, {}, &TableField::kind);
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto same = [&](const TableField& other) { return other.name == fields[i].name; };
    if (std::ranges::count_if(fields, same) == 1) continue;
    return InvalidArgument((setting.empty() ? "" : context + ": ") + "the field " +
                           CellQuoted(fields[i].name) + " occurs more than once; " +
                           (setting.empty() ? "rename a column" : "give each a name of its own"));
  }
  const ColumnKind first = fields.front().kind;
  if (first == ColumnKind::kPicture || (!setting.empty() && first != ColumnKind::kMask)) {
    return fields;
  }
  return InvalidArgument(
      (setting.empty() ? "no column has the name image, and data.columns is empty; rename the "
                         "column of the pictures, or name the columns in data.columns, such as "
                         "image:picture:COLUMN or features:numbers:COLUMN+COLUMN (columns: "
                       : context + ": no field is a picture, to which the mask belongs; add one, "
                                   "such as image:picture:COLUMN (columns: ") +
      ColumnsListed(header) + ")");
}

std::string PartOfNumbers(const std::string& setting, std::string_view field) {
  for (const std::string_view part : PartsOf(setting, ',')) {
    const std::vector<std::string_view> pieces = PartsOf(part, ':');
    if (pieces.size() < 2 || pieces[0] != field) continue;
    return FindChoice<ColumnKind>(pieces[1]) == ColumnKind::kNumbers ? std::string(part) : "";
  }
  return "";
}

}  // namespace kumo
