// Format implementations behind tensor_file.h, and their common parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/tensor_files/tensor_file.h"

namespace kumo {

Status WriteSafetensors(FileSystem& files, const std::string& path,
                        std::span<const NamedTensor> tensors);
Status ReadSafetensors(FileSystem& files, const std::string& path, const RoomForTensor& room);
Status WriteNpz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors);
Status ReadNpz(FileSystem& files, const std::string& path, const RoomForTensor& room);

// Readable element types, little-endian.
enum class FileNumbers { kFloat16, kBfloat16, kFloat32, kFloat64 };
int64_t BytesOf(FileNumbers numbers);
// to[i] = the i-th element of `bytes`. InvalidArgument if an element is not finite, also after
// conversion to float32.
Status WidenNumbers(FileNumbers numbers, std::span<const std::byte> bytes, std::span<float> to);

// The product of the extents; InvalidArgument if an extent is negative, or if there are too many
// extents or elements.
Result<int64_t> NumbersOfShape(std::span<const int64_t> shape);

// Asks `room` for the destination of the tensor's elements, checks its size, and fills it piece by
// piece; `read` provides the next bytes of the file.
Status FillRoom(const FileTensor& tensor, FileNumbers numbers, const RoomForTensor& room,
                const std::function<Status(std::span<std::byte>)>& read, bool* wanted);

// InvalidArgument if no network can have a tensor of this name.
Status CheckTensorName(const std::string& name);

}  // namespace kumo
