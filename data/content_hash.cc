#include "data/content_hash.h"

#include <algorithm>
#include <vector>

#include "common/base/crc32c.h"

namespace kumo {
namespace {

constexpr int64_t kSamplesAtOnce = 64;  // where they have to be read

void AddExtents(const Dataset& dataset, Fnv1a* hash) {
  const SampleShape shape = dataset.shape();
  for (const int64_t extent : {dataset.size(), shape.channels, shape.height, shape.width}) {
    hash->Add(static_cast<uint64_t>(extent));
  }
}

// Of a set that is not in memory: samples that are spread evenly over it. Labels as bytes, as a set
// in memory has them, where they fit.
Status AddSamples(const Dataset& dataset, HashedBytes* pixels, HashedBytes* labels) {
  const int64_t count = std::min(kHashedSamples, dataset.size());
  const int64_t size = dataset.shape().size();
  std::vector<uint8_t> images(kSamplesAtOnce * size);
  std::vector<int32_t> classes(kSamplesAtOnce);
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < count; first += kSamplesAtOnce) {
    indices.clear();
    for (int64_t i = first; i < std::min(first + kSamplesAtOnce, count); ++i) {
      indices.push_back(i * dataset.size() / count);
    }
    const std::span some_images = std::span(images).first(indices.size() * size);
    const std::span some_classes = std::span(classes).first(indices.size());
    KUMO_RETURN_IF_ERROR(dataset.Read(indices, some_images, some_classes));
    pixels->Add(std::as_bytes(some_images));
    for (const int32_t label : some_classes) {
      const auto byte = static_cast<uint8_t>(label);
      labels->Add(std::as_bytes(std::span(&byte, 1)));
    }
  }
  return OkStatus();
}

}  // namespace

void HashedBytes::Add(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kPiece - in_piece_);
    crc_ = ExtendCrc32c(crc_, bytes.first(count));
    in_piece_ += count;
    bytes = bytes.subspan(count);
    if (in_piece_ == kPiece) EndPiece();
  }
}

void HashedBytes::EndPiece() {
  pieces_.Add(uint64_t{crc_});
  crc_ = 0;
  in_piece_ = 0;
}

void HashedBytes::AddTo(Fnv1a* hash) {
  if (in_piece_ > 0) EndPiece();
  hash->Add(bytes_);
  hash->Add(pieces_.value());
}

Result<uint64_t> ContentHash(const Dataset& dataset) {
  Fnv1a hash;
  AddExtents(dataset, &hash);
  HashedBytes pixels, labels;
  if (const std::optional<RawSamples> raw = dataset.raw()) {
    for (std::span rest = raw->pixels; !rest.empty();) {
      const std::span piece = rest.first(std::min(rest.size(), HashedBytes::kPiece));
      pixels.Add(std::as_bytes(piece));
      dataset.LetGo(piece);
      rest = rest.subspan(piece.size());
    }
    labels.Add(std::as_bytes(raw->labels));
  } else {
    KUMO_RETURN_IF_ERROR(AddSamples(dataset, &pixels, &labels));
  }
  pixels.AddTo(&hash);
  labels.AddTo(&hash);
  return hash.value() == 0 ? 1 : hash.value();
}

}  // namespace kumo
