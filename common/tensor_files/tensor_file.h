// Named tensors in files that other programs read and write: safetensors (Hugging Face's) and
// numpy's npz. Which of the two a file is, its name's ending says.
//
// Functions; nothing is kept between two calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"

namespace kumo {

enum class TensorFormat { kSafetensors, kNpz };

// By the ending: ".safetensors", ".npz".
std::optional<TensorFormat> TensorFormatOf(std::string_view path);

// One to be written; the numbers are borrowed.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> numbers;  // as many as the shape says, the last extent's side by side
};

// Writes all of them as float32, in this order, to a file that appears whole or not at all. The
// same tensors make the same bytes. Requires names that differ.
Status WriteTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                       std::span<const NamedTensor> tensors);

// One of a file that is read.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;  // each 0 or more
  int64_t size = 0;            // numbers
  std::string unreadable;      // why its numbers cannot be had: "its numbers are of type I64"

  std::string ShapeText() const;  // "[20, 1, 5, 5]"
};

// Says where a tensor's numbers go, as many floats as it has; nothing (an empty span) where they
// are not wanted.
using RoomForTensor = std::function<Result<std::span<float>>(const FileTensor& tensor)>;

// Shows each tensor of the file at `path` to `room`, and brings its numbers there, of float16,
// bfloat16, float32 or float64, which are rounded to float32. `room` is never asked for those of an
// unreadable one, but told of it.
//
// Takes no more memory than the room and a header, whatever the file says. NotFound where there is
// none; DataLoss where it is damaged or cut off, and InvalidArgument where it is no such file or a
// number is not finite, after a part of the room may have been written. Errors name the file.
Status ReadTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                      const RoomForTensor& room);

// A file may have no more tensors, no longer names, and no tensor of more extents.
inline constexpr int64_t kMostFileTensors = 100'000;
inline constexpr size_t kLongestTensorName = 1024;
inline constexpr size_t kMostExtents = 16;

}  // namespace kumo
