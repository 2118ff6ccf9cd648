// A file of an image, or an archive of images in class folders: the first byte says which.
#include <algorithm>

#include "data/readers/all.h"
#include "data/readers/image_decoder.h"
#include "tests/fuzz/fuzzer.h"

namespace {

kumo::ReaderRequest RequestFor(std::string_view bytes) {
  static kumo::fuzz::InputFile archive;
  archive.Hold(bytes);
  kumo::ReaderRequest request;
  request.images = archive.path();
  request.classes = 2;
  request.limit = 8;
  request.image_size = {3, 4, 4};
  return request;
}

void OpenArchive(std::string_view bytes, bool skip_damaged) {
  kumo::ReaderRequest request = RequestFor(bytes);
  request.skip_damaged = skip_damaged;
  request.decode = kumo::DecodeImages::kAtStart;
  const auto dataset = kumo::OpenImageFolder(request);
  if (!dataset.ok()) return;
  const kumo::Dataset& set = **dataset;
  kumo::fuzz::Require(set.size() > 0 && set.size() <= 8, "another number of samples");
  kumo::Sample sample(set.fields());
  kumo::fuzz::Require(set.Read(set.size() - 1, &sample).ok(), "a sample that cannot be read");
  kumo::fuzz::Require(std::ssize(sample.field(0)) == 48, "another image");
}

// What is decoded on demand may be damaged, which is an error of its sample; what is not, is what
// the same archive gives when it is decoded at the start.
void ReadOnDemand(std::string_view bytes, bool originals) {
  kumo::ReaderRequest request = RequestFor(bytes);
  request.decode = kumo::DecodeImages::kOnDemand;
  request.originals = originals;
  const auto dataset = kumo::OpenImageFolder(request);
  if (!dataset.ok()) return;
  const kumo::Dataset& set = **dataset;
  kumo::Sample sample(set.fields());
  int64_t whole = 0;
  for (int64_t i = 0; i < set.size(); ++i) {
    sample.Reset(set.fields());
    if (!set.Read(i, &sample).ok()) continue;
    ++whole;
    const auto extents = sample.extents(0);
    kumo::fuzz::Require(std::ssize(sample.field(0)) == extents[0] * extents[1] * extents[2],
                        "another image");
  }
  if (originals || whole < set.size()) return;
  request.decode = kumo::DecodeImages::kAtStart;
  const auto at_start = kumo::OpenImageFolder(request);
  if (!at_start.ok()) return;  // of zip, checksums are compared there
  kumo::Sample other(set.fields());
  for (int64_t i = 0; i < set.size(); ++i) {
    (void)set.Read(i, &sample);
    (void)(*at_start)->Read(i, &other);
    kumo::fuzz::Require(std::ranges::equal(sample.field(0), other.field(0)), "other pixels");
  }
}

void Decode(std::string_view bytes) {
  static kumo::ImageDecoder decoder;
  const std::span file(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto header = kumo::ImageDecoder::ReadHeader(file);
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
  if (data[0] % 8 < 2) {
    OpenArchive(bytes, data[0] % 2 == 1);
  } else if (data[0] % 8 == 4 || data[0] % 8 == 5) {
    ReadOnDemand(bytes, data[0] % 2 == 1);
  } else {
    Decode(bytes);
  }
  return 0;
}
