// Content hash of a data set: processes that train together, and a job that resumes from a
// checkpoint, compare it. Not resistant to chosen collisions.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/fnv.h"
#include "common/base/status.h"
#include "data/samples/dataset.h"

namespace kumo {

// Hash of the samples as they are used (docs/formats.md, "Hashes of data"), independent of the
// packing and location of the files. All samples of a set of up to kHashedBytes count; of a larger
// set, and of images of any size, kHashedSamples evenly spaced samples. Never 0, which means an
// unknown hash. The errors of Dataset::Read.
constexpr int64_t kHashedBytes = int64_t{1} << 30;
constexpr int64_t kHashedSamples = 4096;
Result<uint64_t> ContentHash(const Dataset& dataset);

// A long array's contribution to the hash: the checksums of its pieces of kPiece bytes, independent
// of how calls split the array.
class HashedBytes {
 public:
  static constexpr size_t kPiece = size_t{1} << 20;

  void Add(std::span<const std::byte> bytes);
  // Ends the last piece and adds all checksums and the number of bytes to `hash`.
  void AddTo(Fnv1a* hash);

 private:
  void EndPiece();

  Fnv1a pieces_;
  uint64_t bytes_ = 0;
  size_t in_piece_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace kumo
