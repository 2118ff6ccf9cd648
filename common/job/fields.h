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
inline constexpr char kMaskField[] = "mask";
// Lists of the objects in an image.
inline constexpr char kBoxesField[] = "boxes";
inline constexpr char kClassesField[] = "classes";
inline constexpr char kDifficultField[] = "difficult";

// Content of a field, by which transforms change it together with the sample's pictures.
enum class FieldKind {
  kNumbers,  // unchanged by transforms of pictures
  kPicture,  // bytes, channels x height x width
  kMask,     // bytes, height x width: the class of each pixel, or kIgnoredClass
  kBoxes,    // a list of float32: left, top, right, bottom, in pixels of the picture
};

// Number of a mask's pixels that belong to no class.
inline constexpr uint8_t kIgnoredClass = 255;

// One field: the same name, element type and shape in each sample. Row-major. No extents: a scalar.
//
// A list has as many entries as the sample has objects; its first extent is the largest number of
// entries, the other extents are an entry's. All lists of a sample have the same length: entry i of
// each belongs to object i.
struct Field {
  std::string name;
  NumberType type = NumberType::kUint8;
  std::vector<int64_t> extents;
  FieldKind kind = FieldKind::kNumbers;
  bool list = false;

  int64_t numbers() const;  // of one sample in a minibatch, where lists are padded
  int64_t bytes() const { return numbers() * BytesOf(type); }
  bool operator==(const Field&) const = default;
};
using Fields = std::vector<Field>;

// "3x32x32"; "1" without extents.
std::string ExtentsText(std::span<const int64_t> extents);
// Index of the field of that name; -1 if there is none.
int FindField(const Fields& fields, std::string_view name);
// Indices of the lists of a sample's objects; -1: none. Fields of other kinds or types may have
// their names, as columns of a table do.
struct ObjectFields {
  int boxes = -1;      // FieldKind::kBoxes; if there are none, the others are -1, too
  int classes = -1;    // a list of int32
  int difficult = -1;  // a list of bytes
};
ObjectFields FindObjectFields(const Fields& fields);
// Bytes of one sample.
int64_t BytesOf(const Fields& fields);

// Minibatch, borrowed for the duration of a call.
struct SampleBatch {
  int size = 0;  // samples
  // By field: the elements of sample 0, then of sample 1, and so on, aligned for the element type.
  // The list of a sample is followed by zeros up to the first extent of the field.
  std::span<const std::span<const std::byte>> fields;
  // By field: the length of each sample's list; empty for a field that is no list. May be empty if
  // no field is a list.
  std::span<const std::span<const int32_t>> counts = {};
};

}  // namespace kumo
