// A file of an image, or an archive of images in class folders: the first byte says which.
#include <algorithm>

#include "data/readers/image_decoder.h"
#include "data/readers/image_folder.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void OpenArchive(std::string_view bytes, bool skip_damaged) {
  static kumo::fuzz::InputFile archive;
  archive.Hold(bytes);
  kumo::ReaderRequest request;
  request.images = archive.path();
  request.classes = 2;
  request.limit = 8;
  request.image_size = {3, 4, 4};
  request.skip_damaged = skip_damaged;
  const auto dataset = kumo::OpenImageFolder(request);
  if (!dataset.ok()) return;
  const kumo::Dataset& set = **dataset;
  kumo::fuzz::Require(set.size() > 0 && set.size() <= 8, "another number of samples");
  kumo::Sample sample(set.fields());
  kumo::fuzz::Require(set.Read(set.size() - 1, &sample).ok(), "a sample that cannot be read");
  kumo::fuzz::Require(std::ssize(sample.field(0)) == 48, "another image");
}

void Decode(std::string_view bytes) {
  static kumo::ImageDecoder decoder;
  const std::span file(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto header = decoder.ReadHeader(file);
  // A small file may promise much, which takes the time that so many pixels take.
  if (!header.ok() || header->height * header->width > 1 << 16) return;
  for (const int channels : {1, 3}) {
    const auto pixels = decoder.Decode(file, channels);
    if (!pixels.ok()) continue;
    kumo::fuzz::Require(std::ssize(*pixels) == channels * header->height * header->width,
                        "another number of pixels");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes = kumo::fuzz::AsText(data + 1, size - 1);
  if (data[0] % 4 < 2) {
    OpenArchive(bytes, data[0] % 2 == 1);
  } else {
    Decode(bytes);
  }
  return 0;
}
