// Columns of a table: the fields of a sample that the columns of a CSV file make (data.columns).
//
//   FIELD:KIND:COLUMN+COLUMN,...     left:picture:first,right:picture:second,tags:numbers:digit_*
//   FIELD:KIND                       the column with the field's name
//
// A name that ends with '*' stands for all columns that begin so, and FIRST..LAST for the columns
// from one to another. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/choice.h"
#include "common/base/status.h"

namespace kumo {

enum class ColumnKind { kPicture, kMask, kClass, kNumbers };
inline constexpr Choice<ColumnKind> kColumnKinds[] = {
    {ColumnKind::kPicture, "picture"},
    {ColumnKind::kMask, "mask"},
    {ColumnKind::kClass, "class"},
    {ColumnKind::kNumbers, "numbers"},
};
constexpr std::span<const Choice<ColumnKind>> ChoicesOf(ColumnKind) { return kColumnKinds; }

// A field and its columns: one, or of numbers any.
struct TableField {
  std::string name;
  ColumnKind kind = ColumnKind::kNumbers;
  std::vector<int> columns;  // indices in the header
};

// The fields that `setting`, the value of data.columns, makes of the columns of a header, in the
// order of their kinds. Without a setting a column "image" is a picture, "mask" a mask, "label" a
// class, and each other column a field of one number. InvalidArgument names the setting or the
// column: the setting cannot be read, a column is missing or has no name or another column's, a
// field occurs twice, or there is no picture for a mask, or without a setting.
Result<std::vector<TableField>> FieldsOfTable(const std::string& setting,
                                              std::span<const std::string> header);

// The part of the setting that makes this field of numbers; "" if there is none.
std::string PartOfNumbers(const std::string& setting, std::string_view field);

}  // namespace kumo
