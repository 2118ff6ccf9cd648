// Fields of a sample: named arrays, as readers, transforms, batching and devices see them. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kumo {

enum class NumberType { kUint8, kInt32, kFloat32 };
int64_t BytesOf(NumberType type);
// "bytes", "integers", "numbers"
const char* NameOf(NumberType type);

// Names of the fields that readers fill and networks take.
inline constexpr char kImageField[] = "image";
inline constexpr char kLabelField[] = "label";
inline constexpr char kTokensField[] = "tokens";

// One field: the same name, element type and shape in each sample. Row-major; an image has the
// extents channels x height x width. No extents: a scalar.
struct Field {
  std::string name;
  NumberType type = NumberType::kUint8;
  std::vector<int64_t> extents;

  int64_t numbers() const;  // of one sample
  int64_t bytes() const { return numbers() * BytesOf(type); }
  bool operator==(const Field&) const = default;
};
using Fields = std::vector<Field>;

// "3x32x32"; "1" without extents.
std::string ExtentsText(std::span<const int64_t> extents);
// Index of the field of that name; -1 if there is none.
int FindField(const Fields& fields, std::string_view name);
// Bytes of one sample.
int64_t BytesOf(const Fields& fields);

// Minibatch, borrowed for the duration of a call.
struct SampleBatch {
  int size = 0;  // samples
  // By field: the elements of sample 0, then of sample 1, and so on, aligned for the element type.
  std::span<const std::span<const std::byte>> fields;
};

}  // namespace kumo
