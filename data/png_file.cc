#include "data/png_file.h"

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

}  // namespace

Status WritePng(const Canvas& canvas, const std::string& path) {
  const std::unique_ptr<spng_ctx, FreePng> png(spng_ctx_new(SPNG_CTX_ENCODER));
  if (png == nullptr) return ResourceExhausted("no memory to write a PNG");
  spng_ihdr header{};
  header.height = static_cast<uint32_t>(canvas.height);
  header.width = static_cast<uint32_t>(canvas.width);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int code = spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (code == 0) code = spng_set_ihdr(png.get(), &header);
  if (code == 0) {
    code = spng_encode_image(png.get(), canvas.pixels.data(), canvas.pixels.size(), SPNG_FMT_PNG,
                             SPNG_ENCODE_FINALIZE);
  }
  size_t size = 0;
  std::unique_ptr<void, FreeBytes> bytes;
  if (code == 0) bytes.reset(spng_get_png_buffer(png.get(), &size, &code));
  if (code != 0) return Internal(path + ": libspng: " + spng_strerror(code));
  PosixFileSystem files;
  KUMO_ASSIGN_OR_RETURN(const auto file, AtomicFile::Create(files, path));
  KUMO_RETURN_IF_ERROR(file->Append({static_cast<const std::byte*>(bytes.get()), size}));
  return file->Commit();
}

}  // namespace kumo
