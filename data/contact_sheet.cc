#include "data/contact_sheet.h"

#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "common/base/file.h"
#include "data/samples/pixel_kernels.h"
#include "data/samples/resample.h"

namespace kumo {
namespace {

constexpr int64_t kGap = 2;          // pixels between images
constexpr int64_t kSmallSide = 64;   // smaller images are enlarged to about this
constexpr int64_t kLargeSide = 256;  // larger images are reduced to this

// Layout of the sheet.
struct Grid {
  std::vector<int64_t> extents;  // of an image, after reduction
  int64_t enlarged = 1;          // enlargement factor
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t row_height() const { return extents[1] * enlarged + kGap; }
  int64_t column_width() const { return extents[2] * enlarged + kGap; }
};

Grid GridFor(const Dataset& dataset, std::vector<int64_t> extents, int columns) {
  Grid grid;
  const int64_t side = std::max(extents[1], extents[2]);
  for (int64_t* extent : {&extents[1], &extents[2]}) {
    if (side > kLargeSide) *extent = std::max<int64_t>(1, *extent * kLargeSide / side);
  }
  grid.extents = std::move(extents);
  grid.enlarged = std::max<int64_t>(1, kSmallSide / side);
  grid.rows = std::min(dataset.classes(), kMostSheetRows);
  grid.columns = columns;
  return grid;
}

void Paste(const Grid& grid, std::span<const uint8_t> image, int64_t row, int64_t column,
           ContactSheet* sheet) {
  const int64_t height = grid.extents[1], width = grid.extents[2];
  for (int64_t y = 0; y < height * grid.enlarged; ++y) {
    for (int64_t x = 0; x < width * grid.enlarged; ++x) {
      const int64_t to = ((kGap + row * grid.row_height() + y) * sheet->width + kGap +
                          column * grid.column_width() + x) *
                         kColours;
      const int64_t from = y / grid.enlarged * width + x / grid.enlarged;
      for (int64_t c = 0; c < kColours; ++c) {
        const int64_t channel = std::min(c, grid.extents[0] - 1);
        sheet->pixels[to + c] = image[channel * height * width + from];
      }
    }
  }
}

struct FreePng {
  void operator()(spng_ctx* png) const { spng_ctx_free(png); }
};
struct FreeBytes {
  void operator()(void* bytes) const { std::free(bytes); }
};

}  // namespace

Result<ContactSheet> DrawContactSheet(const Datasets& sets, uint64_t seed, int columns) {
  const Dataset& dataset = *sets.train;
  const Fields fields = sets.fields();
  const int image = FindField(fields, kImageField);
  const int label = FindField(fields, kLabelField);
  if (image < 0 || label < 0 || fields[image].type != NumberType::kUint8 ||
      dataset.classes() == 0) {
    return FailedPrecondition(dataset.name() +
                              ": a contact sheet needs images in bytes with class labels");
  }
  const std::vector<int64_t>& extents = fields[image].extents;
  const Grid grid = GridFor(dataset, extents, columns);
  ContactSheet sheet;
  sheet.height = kGap + grid.rows * grid.row_height();
  sheet.width = kGap + grid.columns * grid.column_width();
  sheet.pixels.assign(sheet.height * sheet.width * kColours, 255);
  std::vector<int64_t> drawn(grid.rows);
  int64_t missing = grid.rows * grid.columns;
  Sample sample(dataset.fields());
  Resampler resampler;
  std::vector<uint8_t> small(grid.extents[0] * grid.extents[1] * grid.extents[2]);
  for (int64_t i = 0; i < dataset.size() && missing > 0; ++i) {
    sample.Reset(dataset.fields());
    KUMO_RETURN_IF_ERROR(dataset.Read(i, &sample));
    int32_t row = 0;
    std::memcpy(&row, sample.field(label).data(), sizeof row);
    if (row >= grid.rows || drawn[row] == columns) continue;
    KUMO_RETURN_IF_ERROR(ReadTransformed(dataset, sets.transforms, {seed, 0, i}, &sample));
    resampler.Resample(sample.pixels(image), extents[0], extents[1], extents[2],
                       {0, 0, extents[1], extents[2]}, grid.extents[1], grid.extents[2], small);
    Paste(grid, small, row, drawn[row]++, &sheet);
    --missing;
  }
  return sheet;
}

Status WritePng(const ContactSheet& sheet, const std::string& path) {
  const std::unique_ptr<spng_ctx, FreePng> png(spng_ctx_new(SPNG_CTX_ENCODER));
  if (png == nullptr) return ResourceExhausted("no memory to write a PNG");
  spng_ihdr header{};
  header.height = static_cast<uint32_t>(sheet.height);
  header.width = static_cast<uint32_t>(sheet.width);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int code = spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (code == 0) code = spng_set_ihdr(png.get(), &header);
  if (code == 0) {
    code = spng_encode_image(png.get(), sheet.pixels.data(), sheet.pixels.size(), SPNG_FMT_PNG,
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
