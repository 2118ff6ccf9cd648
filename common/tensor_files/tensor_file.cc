#include "common/tensor_files/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <glog/logging.h>

#include "common/base/printable.h"
#include "common/codec/codec.h"
#include "common/tensor_files/formats.h"

namespace kumo {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written in memory order");

constexpr int64_t kMostNumbersOfTensor = int64_t{1} << 36;
constexpr int64_t kPieceNumbers = 64 << 10;

Status NotFinite() { return InvalidArgument("has an element that is not finite (in float32)"); }

}  // namespace

std::string FileTensor::ShapeText() const {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::optional<TensorFormat> TensorFormatOf(std::string_view path) {
  if (path.ends_with(".safetensors")) return TensorFormat::kSafetensors;
  if (path.ends_with(".npz")) return TensorFormat::kNpz;
  return std::nullopt;
}

Status WriteTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                       std::span<const NamedTensor> tensors) {
  for (const NamedTensor& tensor : tensors) {
    const Result<int64_t> size = NumbersOfShape(tensor.shape);
    CHECK(size.ok() && *size == std::ssize(tensor.numbers)) << tensor.name;
  }
  return format == TensorFormat::kSafetensors ? WriteSafetensors(files, path, tensors)
                                              : WriteNpz(files, path, tensors);
}

Status ReadTensorFile(FileSystem& files, const std::string& path, TensorFormat format,
                      const RoomForTensor& room) {
  const Status read = format == TensorFormat::kSafetensors ? ReadSafetensors(files, path, room)
                                                           : ReadNpz(files, path, room);
  if (read.ok() || read.message().find(path) != std::string::npos) return read;
  return read.WithContext(path);
}

int64_t BytesOf(FileNumbers numbers) {
  switch (numbers) {
    case FileNumbers::kFloat16:
    case FileNumbers::kBfloat16:
      return 2;
    case FileNumbers::kFloat32:
      return 4;
    case FileNumbers::kFloat64:
      break;
  }
  return 8;
}

Status WidenNumbers(FileNumbers numbers, std::span<const std::byte> bytes, std::span<float> to) {
  CHECK_EQ(std::ssize(bytes), std::ssize(to) * BytesOf(numbers));
  if (numbers == FileNumbers::kFloat64) {
    for (size_t i = 0; i < to.size(); ++i) {
      double number = 0;
      std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
      // A conversion of a value beyond float32 is undefined.
      if (!(std::abs(number) <= double{std::numeric_limits<float>::max()})) return NotFinite();
      to[i] = static_cast<float>(number);
    }
    return OkStatus();
  }
  const CodecId id = numbers == FileNumbers::kFloat16    ? CodecId::kFp16
                     : numbers == FileNumbers::kBfloat16 ? CodecId::kBf16
                                                         : CodecId::kFp32;
  KUMO_ASSIGN_OR_RETURN(const Codec* const codec, FindCodec(static_cast<uint32_t>(id)));
  if (!codec->Check(bytes, to.size()).ok()) return NotFinite();
  codec->Decode(bytes, to.size(), 0, to);
  return OkStatus();
}

Result<int64_t> NumbersOfShape(std::span<const int64_t> shape) {
  if (shape.size() > kMostExtents) {
    return InvalidArgument("has " + std::to_string(shape.size()) + " extents; the limit is " +
                           std::to_string(kMostExtents));
  }
  // A product that returns to 0 is small, whatever the extents before were.
  int64_t numbers = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMostNumbersOfTensor ||
        (extent > 0 && numbers > kMostNumbersOfTensor / extent)) {
      return InvalidArgument("the shape is negative or exceeds 2^36 elements");
    }
    numbers *= extent;
  }
  return numbers;
}

Status FillRoom(const FileTensor& tensor, FileNumbers numbers, const RoomForTensor& room,
                const std::function<Status(std::span<std::byte>)>& read, bool* wanted) {
  KUMO_ASSIGN_OR_RETURN(std::span<float> to, room(tensor));
  *wanted = !to.empty();
  if (to.empty()) return OkStatus();
  CHECK_EQ(std::ssize(to), tensor.size) << tensor.name;
  std::vector<std::byte> piece(std::min(tensor.size, kPieceNumbers) * BytesOf(numbers));
  while (!to.empty()) {
    const std::span<float> some = to.first(std::min<size_t>(to.size(), kPieceNumbers));
    const std::span<std::byte> bytes = std::span(piece).first(some.size() * BytesOf(numbers));
    KUMO_RETURN_IF_ERROR(read(bytes));
    KUMO_RETURN_IF_ERROR(WidenNumbers(numbers, bytes, some));
    to = to.subspan(some.size());
  }
  return OkStatus();
}

Status CheckTensorName(const std::string& name) {
  if (!name.empty() && name.size() <= kLongestTensorName) return OkStatus();
  return InvalidArgument(name.empty() ? "a tensor has no name"
                                      : "tensor " + Printable(name) + " has a name of more than " +
                                            std::to_string(kLongestTensorName) + " bytes");
}

}  // namespace kumo
