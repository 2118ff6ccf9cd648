#include "data/content_hash.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/crc32c.h"

namespace kumo {
namespace {

// Labels, which are nearly always small, count as bytes.
bool IsOfBytes(const Field& field, const Dataset& dataset) {
  return field.name == kLabelField && field.type == NumberType::kInt32 && dataset.classes() <= 256;
}

// For samples of different extents.
bool IsOfAnySize(const Field& field) { return field.list || field.numbers() == 0; }

void AddLowBytes(std::span<const std::byte> numbers, HashedBytes* hashed) {
  for (size_t i = 0; i < numbers.size(); i += sizeof(int32_t)) {
    int32_t number = 0;
    std::memcpy(&number, numbers.data() + i, sizeof number);
    const auto low = static_cast<uint8_t>(number);
    hashed->Add(std::as_bytes(std::span(&low, 1)));
  }
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
  const Fields& fields = dataset.fields();
  Fnv1a hash;
  hash.Add(static_cast<uint64_t>(dataset.size()));
  for (const Field& field : fields) {
    for (const int64_t extent : field.extents) hash.Add(static_cast<uint64_t>(extent));
  }
  std::vector<HashedBytes> hashed(fields.size());
  const int64_t bytes = kumo::BytesOf(fields);
  const bool all = std::ranges::none_of(fields, IsOfAnySize) &&
                   dataset.size() <= kHashedBytes / std::max<int64_t>(1, bytes);
  const int64_t most = all ? dataset.size() : kHashedSamples;
  KUMO_RETURN_IF_ERROR(ForEachSample(dataset, most, [&](const Sample& sample) {
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::span<const std::byte> numbers = sample.field(static_cast<int>(f));
      if (IsOfAnySize(fields[f])) {
        hashed[f].Add(std::as_bytes(sample.extents(static_cast<int>(f))));
      }
      if (IsOfBytes(fields[f], dataset)) {
        AddLowBytes(numbers, &hashed[f]);
      } else {
        hashed[f].Add(numbers);
      }
    }
  }));
  for (HashedBytes& field : hashed) field.AddTo(&hash);
  return hash.value() == 0 ? 1 : hash.value();
}

}  // namespace kumo
