// Images and archives as bytes: images by the libraries' other half, archives written out here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/test_files.h"

namespace kumo::test {

// Of channels x height x width pixels; 1 or 3 channels.
Bytes Png(const std::vector<int64_t>& extents, std::span<const uint8_t> pixels);
// In 16 bits.
Bytes DeepPng(const std::vector<int64_t>& extents, std::span<const uint16_t> pixels);
// A mask of height x width numbers of 1, 2, 4 or 8 bits: in grey, or as indices of a palette.
enum class MaskForm { kGrey, kPalette };
Bytes MaskPng(int64_t height, int64_t width, std::span<const uint8_t> numbers,
              MaskForm form = MaskForm::kPalette, int bits = 8);
// kInks: CMYK as Adobe's programs store it (4 channels, 255 means no ink), kInkDifferences: YCCK.
// kArithmetic, kArithmeticProgressive: arithmetic coding in place of Huffman's.
enum class JpegForm {
  kBaseline,
  kProgressive,
  kRestarts,
  kInks,
  kInkDifferences,
  kArithmetic,
  kArithmeticProgressive,
};
// Quality 95, colours of full resolution.
Bytes Jpeg(const std::vector<int64_t>& extents, std::span<const uint8_t> pixels,
           JpegForm form = JpegForm::kBaseline);
// The JPEG or PNG with an orientation in EXIF, in either byte order.
Bytes WithOrientation(const Bytes& image, int orientation, bool little_endian = true);

// kUtf8Zip: a zip with names that are marked as UTF-8.
enum class Pack { kTar, kTarGz, kZip, kDeflatedZip, kUtf8Zip };
using NamedFiles = std::vector<std::pair<std::string, Bytes>>;
Bytes Archive(Pack pack, const NamedFiles& files);
// A link in a tar archive. kind: '1' hard (its target counts from the archive's root), '2'
// symbolic, '5' a folder and '6' a pipe (no target).
struct TarLink {
  std::string name;
  std::string target;
  char kind = '2';
};
Bytes TarWithLinks(const NamedFiles& files, const std::vector<TarLink>& links);
// The same files below a folder.
void WriteFiles(const std::string& folder, const NamedFiles& files);

// `count` images, PNG, in the folders class0, class1, ... in turn: image i has the pixels of
// ImagePixels(i).
NamedFiles ClassFolders(int64_t count, int classes, const std::vector<int64_t>& extents);
Bytes ImagePixels(int64_t index, const std::vector<int64_t>& extents);

}  // namespace kumo::test
