#include "tests/data/image_bytes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>
#include <spng.h>
#include <zlib.h>

// Needs the headers above.
#include <jpeglib.h>

namespace kumo::test {
namespace {

Bytes Interleaved(const std::vector<int64_t>& extents, std::span<const uint8_t> pixels) {
  const int64_t plane = extents[1] * extents[2];
  Bytes interleaved;
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < extents[0]; ++c) interleaved.push_back(pixels[c * plane + i]);
  }
  return interleaved;
}

constexpr size_t kRecord = 512;

// An entry of POSIX's ustar.
void AppendEntry(Bytes* tar, const TarLink& entry, const Bytes& content) {
  std::array<char, kRecord> header{};
  std::ranges::copy(entry.name, header.begin());
  std::snprintf(&header[100], 8, "0000644");
  std::snprintf(&header[124], 12, "%011zo", content.size());
  header[156] = entry.kind;
  std::ranges::copy(entry.target, &header[157]);
  std::ranges::copy(std::string_view("ustar\00000", 8), &header[257]);
  std::fill_n(&header[148], 8, ' ');  // the checksum counts as spaces
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(&header[148], 8, "%06o", sum);
  tar->insert(tar->end(), header.begin(), header.end());
  tar->insert(tar->end(), content.begin(), content.end());
  tar->resize((tar->size() + kRecord - 1) / kRecord * kRecord);
}

// With the empty records at its end.
Bytes Tar(const NamedFiles& files, const std::vector<TarLink>& links) {
  Bytes tar;
  for (const auto& [name, content] : files) AppendEntry(&tar, {name, "", '0'}, content);
  for (const TarLink& link : links) AppendEntry(&tar, link, {});
  tar.resize(tar.size() + 2 * kRecord);
  return tar;
}

void Append(Bytes* bytes, size_t number, int size) {
  for (int i = 0; i < size; ++i) bytes->push_back(static_cast<uint8_t>(number >> (8 * i)));
}

// RFC 1951: what gzip wraps, without its 10 bytes before and 8 behind.
Bytes Deflated(const Bytes& bytes) {
  const Bytes packed = Gzip(bytes);
  return {packed.begin() + 10, packed.end() - 8};
}

// PKWARE's APPNOTE, with or without compression.
Bytes Zip(const NamedFiles& files, bool deflated, bool utf8 = false) {
  Bytes zip, directory;
  for (const auto& [name, content] : files) {
    const Bytes packed = deflated ? Deflated(content) : content;
    Bytes entry;            // what a file's header and its entry in the directory share
    Append(&entry, 20, 2);  // version
    Append(&entry, utf8 ? 0x800 : 0, 2);  // flags
    Append(&entry, deflated ? 8 : 0, 2);
    Append(&entry, 0, 2 + 2);  // time, date
    Append(&entry, crc32(0, content.data(), static_cast<uInt>(content.size())), 4);
    Append(&entry, packed.size(), 4);
    Append(&entry, content.size(), 4);
    Append(&entry, name.size(), 2);
    Append(&entry, 0, 2);  // extra
    Append(&directory, 0x02014b50, 4);
    Append(&directory, 0x0314, 2);  // made on Unix
    directory.insert(directory.end(), entry.begin(), entry.end());
    Append(&directory, 0, 2 + 2 + 2);              // comment, disk, text or not
    Append(&directory, size_t{0100644} << 16, 4);  // a regular file
    Append(&directory, zip.size(), 4);
    directory.insert(directory.end(), name.begin(), name.end());
    Append(&zip, 0x04034b50, 4);
    zip.insert(zip.end(), entry.begin(), entry.end());
    zip.insert(zip.end(), name.begin(), name.end());
    zip.insert(zip.end(), packed.begin(), packed.end());
  }
  const size_t begin = zip.size();
  zip.insert(zip.end(), directory.begin(), directory.end());
  Append(&zip, 0x06054b50, 4);
  Append(&zip, 0, 2 + 2);
  Append(&zip, files.size(), 2);
  Append(&zip, files.size(), 2);
  Append(&zip, directory.size(), 4);
  Append(&zip, begin, 4);
  Append(&zip, 0, 2);
  return zip;
}

}  // namespace

namespace {

// palette: indices of 2^bits colours instead of grey.
Bytes EncodePng(const std::vector<int64_t>& extents, std::span<const uint8_t> interleaved,
                uint8_t bits, bool palette = false) {
  spng_ctx* png = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.height = static_cast<uint32_t>(extents[1]);
  header.width = static_cast<uint32_t>(extents[2]);
  header.bit_depth = bits;
  header.color_type = extents[0] == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  if (palette) header.color_type = SPNG_COLOR_TYPE_INDEXED;
  spng_set_ihdr(png, &header);
  if (palette) {
    spng_plte colours{};
    colours.n_entries = 1u << bits;
    for (uint32_t i = 0; i < colours.n_entries; ++i) {
      colours.entries[i] = {static_cast<uint8_t>(255 - 3 * i), static_cast<uint8_t>(7 * i), 99,
                            255};
    }
    spng_set_plte(png, &colours);
  }
  EXPECT_EQ(spng_encode_image(png, interleaved.data(), interleaved.size(), SPNG_FMT_PNG,
                              SPNG_ENCODE_FINALIZE),
            0);
  size_t size = 0;
  int error = 0;
  auto* bytes = static_cast<uint8_t*>(spng_get_png_buffer(png, &size, &error));
  EXPECT_EQ(error, 0);
  Bytes result(bytes, bytes + size);
  std::free(bytes);
  spng_ctx_free(png);
  return result;
}

void AppendBigEndian(Bytes* bytes, size_t number, int size) {
  for (int i = size - 1; i >= 0; --i) bytes->push_back(static_cast<uint8_t>(number >> (8 * i)));
}

}  // namespace

Bytes Png(const std::vector<int64_t>& extents, std::span<const uint8_t> pixels) {
  return EncodePng(extents, Interleaved(extents, pixels), 8);
}

Bytes MaskPng(int64_t height, int64_t width, std::span<const uint8_t> numbers, MaskForm form,
              int bits) {
  Bytes packed;  // rows of whole bytes
  for (int64_t y = 0; y < height; ++y) {
    unsigned byte = 0;
    int filled = 0;
    for (int64_t x = 0; x < width; ++x) {
      byte = byte << bits | numbers[y * width + x];
      filled += bits;
      if (filled < 8 && x + 1 < width) continue;
      packed.push_back(static_cast<uint8_t>(byte << (8 - filled)));
      byte = 0;
      filled = 0;
    }
  }
  return EncodePng({1, height, width}, packed, static_cast<uint8_t>(bits),
                   form == MaskForm::kPalette);
}

Bytes DeepPng(const std::vector<int64_t>& extents, std::span<const uint16_t> pixels) {
  const int64_t plane = extents[1] * extents[2];
  std::vector<uint16_t> interleaved;  // the encoder expects the machine's byte order
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < extents[0]; ++c) interleaved.push_back(pixels[c * plane + i]);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(interleaved.data());
  return EncodePng(extents, {bytes, interleaved.size() * sizeof(uint16_t)}, 16);
}

Bytes Jpeg(const std::vector<int64_t>& extents, std::span<const uint8_t> pixels, JpegForm form) {
  Bytes interleaved = Interleaved(extents, pixels);
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // ends the test
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_height = static_cast<JDIMENSION>(extents[1]);
  jpeg.image_width = static_cast<JDIMENSION>(extents[2]);
  jpeg.input_components = static_cast<int>(extents[0]);
  jpeg.in_color_space = extents[0] == 1 ? JCS_GRAYSCALE : extents[0] == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  if (form == JpegForm::kInks) jpeg_set_colorspace(&jpeg, JCS_CMYK);
  if (form == JpegForm::kInkDifferences) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  if (form == JpegForm::kProgressive || form == JpegForm::kArithmeticProgressive) {
    jpeg_simple_progression(&jpeg);
  }
  if (form == JpegForm::kArithmetic || form == JpegForm::kArithmeticProgressive) {
    jpeg.arith_code = TRUE;
  }
  if (form == JpegForm::kRestarts) jpeg.restart_interval = 1;
  jpeg_set_quality(&jpeg, 95, TRUE);
  for (int i = 0; i < jpeg.num_components; ++i) {
    jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = 1;
  }
  jpeg_start_compress(&jpeg, TRUE);
  const size_t stride = extents[0] * extents[2];
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = interleaved.data() + jpeg.next_scanline * stride;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes result(bytes, bytes + size);
  std::free(bytes);
  return result;
}

Bytes WithOrientation(const Bytes& image, int orientation, bool little_endian) {
  Bytes tiff = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 2};               // a directory of two entries
  tiff.insert(tiff.end(), {1, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9});  // the width
  tiff.insert(tiff.end(), {1, 0x12, 0, 3, 0, 0, 0, 1, 0, static_cast<uint8_t>(orientation), 0, 0});
  if (little_endian) {
    tiff = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0};
    tiff.insert(tiff.end(), {static_cast<uint8_t>(orientation), 0, 0, 0});
  }
  Bytes segment;
  size_t at = 2;  // behind the start of a JPEG
  if (image[0] == 0xff) {
    segment = {0xff, 0xe1};
    AppendBigEndian(&segment, tiff.size() + 8, 2);
    segment.insert(segment.end(), {'E', 'x', 'i', 'f', 0, 0});
    segment.insert(segment.end(), tiff.begin(), tiff.end());
  } else {
    at = 33;  // behind a PNG's header
    AppendBigEndian(&segment, tiff.size(), 4);
    segment.insert(segment.end(), {'e', 'X', 'I', 'f'});
    segment.insert(segment.end(), tiff.begin(), tiff.end());
    AppendBigEndian(&segment, crc32(0, segment.data() + 4, static_cast<uInt>(tiff.size() + 4)), 4);
  }
  Bytes result = image;
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), segment.begin(), segment.end());
  return result;
}

Bytes Archive(Pack pack, const NamedFiles& files) {
  switch (pack) {
    case Pack::kTar:
      return Tar(files, {});
    case Pack::kTarGz:
      return Gzip(Tar(files, {}));
    case Pack::kZip:
      return Zip(files, /*deflated=*/false);
    case Pack::kDeflatedZip:
      return Zip(files, /*deflated=*/true);
    case Pack::kUtf8Zip:
      return Zip(files, /*deflated=*/false, /*utf8=*/true);
  }
  std::abort();
}

Bytes TarWithLinks(const NamedFiles& files, const std::vector<TarLink>& links) {
  return Tar(files, links);
}

void WriteFiles(const std::string& folder, const NamedFiles& files) {
  for (const auto& [name, content] : files) WriteFile(folder + "/" + name, content);
}

Bytes ImagePixels(int64_t index, const std::vector<int64_t>& extents) {
  Bytes pixels(extents[0] * extents[1] * extents[2]);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(index * 37 + static_cast<int64_t>(i * i) * 7);
  }
  return pixels;
}

NamedFiles ClassFolders(int64_t count, int classes, const std::vector<int64_t>& extents) {
  NamedFiles files;
  for (int64_t i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 4 - number.size(), '0');
    files.emplace_back("class" + std::to_string(i % classes) + "/" + number + ".png",
                       Png(extents, ImagePixels(i, extents)));
  }
  return files;
}

}  // namespace kumo::test
