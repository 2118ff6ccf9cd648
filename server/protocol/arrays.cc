#include "server/protocol/arrays.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "common/codec/codec.h"

namespace kumo {

FloatArray MakeArray(size_t numbers) { return std::make_shared<Buffer<float>>(numbers); }

FloatArray CopyFloats(std::span<const std::byte> bytes) {
  FloatArray array = MakeArray(bytes.size() / sizeof(float));
  std::memcpy(array->data(), bytes.data(), bytes.size());
  return array;
}

Payload BytesOf(const FloatArray& array) {
  return {array, std::as_bytes(std::as_const(*array).span())};
}

Status CheckFloats(std::span<const std::byte> bytes, size_t numbers) {
  KUMO_ASSIGN_OR_RETURN(const Codec* fp32, FindCodec(static_cast<uint32_t>(CodecId::kFp32)));
  return fp32->Check(bytes, numbers);
}

}  // namespace kumo
