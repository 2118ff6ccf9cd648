// Tensor files: named tensors in formats of other programs, safetensors (Hugging Face) and numpy's
// npz. The file name's ending selects the format.
//
// Stateless functions.
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

// The format for the endings ".safetensors" and ".npz"; none for others.
std::optional<TensorFormat> TensorFormatOf(std::string_view path);

// A tensor to write; its elements are not copied.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> numbers;  // elements in C order
};

// Atomically writes all tensors as float32, in this order. Equal tensors give equal bytes. Requires
// unique names.
Status WriteTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                       std::span<const NamedTensor> tensors);

// A tensor of a file that is read.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;  // each extent >= 0
  int64_t size = 0;            // number of elements
  std::string unreadable;      // why its elements cannot be read: "its elements are of type I64"

  std::string ShapeText() const;  // "[20, 1, 5, 5]"
};

// Returns the destination of a tensor's elements, as many floats as it has; an empty span to skip
// it.
using RoomForTensor = std::function<Result<std::span<float>>(const FileTensor& tensor)>;

// Passes each tensor of the file to `room`, and reads its elements (float16, bfloat16, float32 or
// float64) into the returned destination, rounded to float32. `room` is also called with unreadable
// tensors; its result is then ignored.
//
// Memory is bounded by the destinations and one header, whatever the file claims. NotFound if there
// is no file; DataLoss if it is damaged or truncated; InvalidArgument if it is of another format or
// an element is not finite; destinations may then be partly written. Errors name the file.
Status ReadTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                      const RoomForTensor& room);

// Limits of a file: number of tensors, length of names, number of extents.
inline constexpr int64_t kMostFileTensors = 100'000;
inline constexpr size_t kLongestTensorName = 1024;
inline constexpr size_t kMostExtents = 16;

}  // namespace kumo
