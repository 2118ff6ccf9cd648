// What samples are made of: named fields, as readers, the pipeline and devices see them.
//
// Values.
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
// "bytes", "whole numbers", "numbers"
const char* NameOf(NumberType type);

// What readers call what they read, and networks what they take.
inline constexpr char kImageField[] = "image";
inline constexpr char kLabelField[] = "label";
inline constexpr char kTokensField[] = "tokens";

// What each sample has under a name. Numbers lie in the order of the extents, the last one's next
// to each other: an image is channels x height x width. Without extents it is one number.
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
// Place of the field of that name; -1 where there is none.
int FindField(const Fields& fields, std::string_view name);
// Bytes of one sample.
int64_t BytesOf(const Fields& fields);

// A minibatch, borrowed for the call that it is handed to.
struct SampleBatch {
  int size = 0;  // samples
  // By field: the samples' numbers, one sample after the other; where a field's numbers begin, any
  // of its type may lie.
  std::span<const std::span<const std::byte>> fields;
};

}  // namespace kumo
