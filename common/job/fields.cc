#include "common/job/fields.h"

#include <algorithm>
#include <cstdlib>

namespace kumo {

int64_t BytesOf(NumberType type) {
  switch (type) {
    case NumberType::kUint8:
      return 1;
    case NumberType::kInt32:
    case NumberType::kFloat32:
      return 4;
  }
  std::abort();
}

const char* NameOf(NumberType type) {
  switch (type) {
    case NumberType::kUint8:
      return "bytes";
    case NumberType::kInt32:
      return "integers";
    case NumberType::kFloat32:
      return "numbers";
  }
  std::abort();
}

int64_t Field::numbers() const {
  int64_t numbers = 1;
  for (const int64_t extent : extents) numbers *= extent;
  return numbers;
}

std::string ExtentsText(std::span<const int64_t> extents) {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

int FindField(const Fields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

ObjectFields FindObjectFields(const Fields& fields) {
  ObjectFields found;
  const auto boxes = std::ranges::find(fields, FieldKind::kBoxes, &Field::kind);
  if (boxes == fields.end()) return found;
  const auto list = [&](std::string_view name, NumberType type) {
    const int f = FindField(fields, name);
    return f >= 0 && fields[f].list && fields[f].type == type ? f : -1;
  };
  found.boxes = static_cast<int>(boxes - fields.begin());
  found.classes = list(kClassesField, NumberType::kInt32);
  found.difficult = list(kDifficultField, NumberType::kUint8);
  return found;
}

int64_t BytesOf(const Fields& fields) {
  int64_t bytes = 0;
  for (const Field& field : fields) bytes += field.bytes();
  return bytes;
}

}  // namespace kumo
