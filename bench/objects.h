// Objects in the images of a minibatch as JSON, for the Python side of a comparison.
#pragma once

#include <cstdint>
#include <cstring>
#include <ostream>
#include <span>

#include "common/job/fields.h"
#include "data/batch_stream.h"

namespace kumo {

template <typename T>
T NumberAt(std::span<const std::byte> field, int64_t at) {
  T number;
  std::memcpy(&number, field.data() + at * static_cast<int64_t>(sizeof number), sizeof number);
  return number;
}

inline bool HasObjects(const Fields& fields) { return FindObjectFields(fields).boxes >= 0; }

// A list for each sample: [class, left, top, right, bottom] of each object. Requires
// HasObjects(fields).
inline void WriteObjects(const Fields& fields, const Minibatch& batch, std::ostream& json) {
  const auto [boxes, classes, difficult] = FindObjectFields(fields);
  const int64_t room = fields[boxes].extents[0];
  json << "[";
  for (int64_t n = 0; n < batch.size; ++n) {
    json << (n > 0 ? ", [" : "[");
    for (int64_t i = n * room; i < n * room + batch.counts[boxes][n]; ++i) {
      json << (i > n * room ? ", [" : "[") << NumberAt<int32_t>(batch.fields[classes], i);
      for (int64_t side = 0; side < 4; ++side) {
        json << ", " << NumberAt<float>(batch.fields[boxes], 4 * i + side);
      }
      json << "]";
    }
    json << "]";
  }
  json << "]";
}

}  // namespace kumo
