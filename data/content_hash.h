// What tells the contents of two data sets apart: processes that train together, and a job that
// goes on from a checkpoint, compare it. It is no proof against somebody who wants equal hashes.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/fnv.h"
#include "common/base/status.h"
#include "data/dataset.h"

namespace kumo {

// The hash of a set's samples as they are used, by the formula of docs/formats.md ("Hashes of
// data"): the same however the files are packed and wherever the samples lie. Of a set of up to
// kHashedBytes all samples count; of a larger one, or one of images of any size, kHashedSamples
// samples, evenly spread. Never 0, which stands for a hash that is not known. The error of
// Dataset::Read.
constexpr int64_t kHashedBytes = int64_t{1} << 30;
constexpr int64_t kHashedSamples = 4096;
Result<uint64_t> ContentHash(const Dataset& dataset);

// A long array's part of it: the checksums of its pieces of kPiece bytes, in order, however it is
// cut into calls.
class HashedBytes {
 public:
  static constexpr size_t kPiece = size_t{1} << 20;

  void Add(std::span<const std::byte> bytes);
  // Ends the last piece and adds them to `hash`, with the number of bytes.
  void AddTo(Fnv1a* hash);

 private:
  void EndPiece();

  Fnv1a pieces_;
  uint64_t bytes_ = 0;
  size_t in_piece_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace kumo
