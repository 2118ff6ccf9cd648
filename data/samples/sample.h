// Sample: one sample in the pipeline, with a view of each field's value, which is borrowed from the
// data set or in the sample's own, reused memory.
//
// Owned and used by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/job/fields.h"
#include "data/samples/resample.h"

namespace kumo {

// Identifies a sample and its random streams.
struct SampleKey {
  uint64_t seed = 1;
  int64_t epoch = 0;
  int64_t sample = 0;
};

class Sample {
 public:
  explicit Sample(const Fields& fields) : values_(fields.size()) { Reset(fields); }

  // Restores the extents of `fields`, before the next read.
  void Reset(const Fields& fields);

  std::span<const std::byte> field(int field) const { return values_[field].bytes; }
  std::span<const uint8_t> pixels(int field) const {
    return {reinterpret_cast<const uint8_t*>(values_[field].bytes.data()),
            values_[field].bytes.size()};
  }

  // The extents of a field's value, which transforms may change. The first extent of a list is its
  // length in this sample, once the sample was read.
  std::span<const int64_t> extents(int field) const { return values_[field].extents; }
  void SetExtents(int field, std::span<const int64_t> extents);

  // Sets a field's value; `bytes` must stay valid while it is used.
  void Borrow(int field, std::span<const std::byte> bytes) { values_[field].bytes = bytes; }
  // Returns memory for a field's next value, to be filled by the caller; the previous value stays
  // readable until the next call for the field.
  std::span<std::byte> Make(int field, size_t bytes);
  // The same for an image in bytes, channels x height x width, and sets its extents.
  std::span<uint8_t> MakePixels(int field, std::span<const int64_t> extents);
  // Leaves only some entries of a list, by their numbers, ascending.
  void KeepEntries(int field, std::span<const int64_t> kept);

  // A second sample with these fields, to be read; valid until the next call.
  Sample& Partner(const Fields& fields);

  // Scratch resampler for transforms.
  Resampler& resampler() { return resampler_; }

 private:
  struct Value {
    std::span<const std::byte> bytes;
    std::vector<int64_t> extents;
    std::array<std::vector<std::byte>, 2> own;
    int next = 0;  // the element of `own` that `bytes` is not in
  };
  std::vector<Value> values_;
  Resampler resampler_;
  std::unique_ptr<Sample> partner_;
};

}  // namespace kumo
