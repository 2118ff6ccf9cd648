#include "common/job/fields.h"

#include <algorithm>
#include <charconv>
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
      return "whole numbers";
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

Result<std::vector<int64_t>> ParseImageExtents(std::string_view text) {
  std::vector<int64_t> extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && extents.size() < 3) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1 || extent > kMaxImageSide) break;
    extents.push_back(extent);
    at = next;
    if (extents.size() < 3 && at != end && *at == 'x') ++at;
  }
  if (at == end && extents.size() == 3 && (extents[0] == 1 || extents[0] == 3)) return extents;
  return InvalidArgument("must be channels (1 or 3) x height x width, sides of 1 .. " +
                         std::to_string(kMaxImageSide) + " pixels, as 3x224x224");
}

int FindField(const Fields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

int64_t BytesOf(const Fields& fields) {
  int64_t bytes = 0;
  for (const Field& field : fields) bytes += field.bytes();
  return bytes;
}

}  // namespace kumo
