// The formats' own parts of tensor_file.h, and what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/tensor_files/tensor_file.h"

namespace kumo {

Status WriteSafetensors(FileSystem& files, const std::string& path,
                        std::span<const NamedTensor> tensors);
Status ReadSafetensors(FileSystem& files, const std::string& path, const RoomForTensor& room);
Status WriteNpz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors);
Status ReadNpz(FileSystem& files, const std::string& path, const RoomForTensor& room);

// The numbers that can be read, little-endian.
enum class FileNumbers { kFloat16, kBfloat16, kFloat32, kFloat64 };
int64_t BytesOf(FileNumbers numbers);
// to[i] = the i-th of `bytes`. InvalidArgument where one is not finite, or is none in float32.
Status WidenNumbers(FileNumbers numbers, std::span<const std::byte> bytes, std::span<float> to);

// The product of extents; InvalidArgument where one is negative, or there are too many of them, or
// of numbers.
Result<int64_t> NumbersOfShape(std::span<const int64_t> shape);

// Asks `room` for the tensor's numbers, checks that these are as many, and fills them piece by
// piece: `read` brings the next bytes of the file.
Status FillRoom(const FileTensor& tensor, FileNumbers numbers, const RoomForTensor& room,
                const std::function<Status(std::span<std::byte>)>& read, bool* wanted);

// InvalidArgument for a tensor's name that no network has.
Status CheckTensorName(const std::string& name);

}  // namespace kumo
