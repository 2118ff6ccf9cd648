// One sample on its way through the pipeline: a view of each field's numbers, either borrowed of
// the data set that it came from or in the sample's own memory, which is used again for the next.
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
#include "data/resample.h"

namespace kumo {

// Which sample, and what names its random streams.
struct SampleKey {
  uint64_t seed = 1;
  int64_t epoch = 0;
  int64_t sample = 0;
};

class Sample {
 public:
  explicit Sample(const Fields& fields) : values_(fields.size()) { Reset(fields); }

  // Makes its fields' extents those of `fields`, before it is read into once more.
  void Reset(const Fields& fields);

  std::span<const std::byte> field(int field) const { return values_[field].bytes; }
  std::span<const uint8_t> pixels(int field) const {
    return {reinterpret_cast<const uint8_t*>(values_[field].bytes.data()),
            values_[field].bytes.size()};
  }

  // Of the field's value, which transforms may change.
  std::span<const int64_t> extents(int field) const { return values_[field].extents; }
  void SetExtents(int field, std::span<const int64_t> extents);

  // `bytes` is the field's value: they outlive its use.
  void Borrow(int field, std::span<const std::byte> bytes) { values_[field].bytes = bytes; }
  // Room for the field's next value, for the caller to fill; what the value was until now can be
  // read until the next call for that field.
  std::span<std::byte> Make(int field, size_t bytes);
  // The same for an image in bytes, channels x height x width, whose extents become these.
  std::span<uint8_t> MakePixels(int field, std::span<const int64_t> extents);

  // Another sample of a set with these fields, to be read; valid until the next call.
  Sample& Partner(const Fields& fields);

  // For whoever makes images of another size of the sample's.
  Resampler& resampler() { return resampler_; }

 private:
  struct Value {
    std::span<const std::byte> bytes;
    std::vector<int64_t> extents;
    std::array<std::vector<std::byte>, 2> own;
    int next = 0;  // of `own`: the one that `bytes` is not in
  };
  std::vector<Value> values_;
  Resampler resampler_;
  std::unique_ptr<Sample> partner_;
};

}  // namespace kumo
