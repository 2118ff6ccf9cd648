#include "data/pictures/png_file.h"

#include <spng.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "common/base/file.h"

namespace kumo {
namespace {

struct FreePng {
  void operator()(spng_ctx* png) const { spng_ctx_free(png); }
};
struct FreeBytes {
  void operator()(void* bytes) const { std::free(bytes); }
};

// palette: null for colours.
Result<std::vector<std::byte>> Encode(int64_t height, int64_t width,
                                      std::span<const uint8_t> pixels, spng_plte* palette) {
  const std::unique_ptr<spng_ctx, FreePng> png(spng_ctx_new(SPNG_CTX_ENCODER));
  if (png == nullptr) return ResourceExhausted("no memory to write a PNG");
  spng_ihdr header{};
  header.height = static_cast<uint32_t>(height);
  header.width = static_cast<uint32_t>(width);
  header.bit_depth = 8;
  header.color_type = palette == nullptr ? SPNG_COLOR_TYPE_TRUECOLOR : SPNG_COLOR_TYPE_INDEXED;
  int code = spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (code == 0) code = spng_set_ihdr(png.get(), &header);
  if (code == 0 && palette != nullptr) code = spng_set_plte(png.get(), palette);
  if (code == 0) {
    code = spng_encode_image(png.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG,
                             SPNG_ENCODE_FINALIZE);
  }
  size_t size = 0;
  std::unique_ptr<void, FreeBytes> bytes;
  if (code == 0) bytes.reset(spng_get_png_buffer(png.get(), &size, &code));
  if (code != 0) return Internal(std::string("libspng: ") + spng_strerror(code));
  const auto* const begin = static_cast<const std::byte*>(bytes.get());
  return std::vector<std::byte>(begin, begin + size);
}

Status WriteAtomically(const Result<std::vector<std::byte>>& bytes, const std::string& path) {
  if (!bytes.ok()) return bytes.status().WithContext(path);
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(files, path));
  KUMO_RETURN_IF_ERROR(file->Append(*bytes));
  return file->Commit();
}

}  // namespace

Result<std::vector<std::byte>> EncodePng(const Canvas& canvas) {
  return Encode(canvas.height, canvas.width, canvas.pixels, nullptr);
}

Result<std::vector<std::byte>> EncodeMaskPng(int64_t height, int64_t width,
                                             std::span<const uint8_t> classes) {
  constexpr uint32_t kEntries = 256;
  spng_plte palette{};
  palette.n_entries = kEntries;
  for (uint32_t i = 1; i < kEntries; ++i) {
    const Colour colour = ColourOfClass(i - 1);
    palette.entries[i] = {colour[0], colour[1], colour[2], 255};
  }
  return Encode(height, width, classes, &palette);
}

Status WritePng(const Canvas& canvas, const std::string& path) {
  return WriteAtomically(EncodePng(canvas), path);
}

Status WriteMaskPng(int64_t height, int64_t width, std::span<const uint8_t> classes,
                    const std::string& path) {
  return WriteAtomically(EncodeMaskPng(height, width, classes), path);
}

}  // namespace kumo
