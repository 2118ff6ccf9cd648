// What one codec hands to codec.cc: plain functions over whole buckets, compiled per
// instruction-set level. A codec's file holds its format (one struct) and one line that makes the
// table; bucket.h has the loops over buckets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo {

constexpr size_t kCodecBucket = 512;  // Codec::kBucket, for sources that cannot include codec.h

struct CodecKernel {
  uint32_t id;  // CodecId
  const char* name;
  bool lossy;
  float largest;                         // Codec::largest()
  size_t (*bucket_bytes)(size_t count);  // encoded length of a bucket of 1 .. kBucket numbers
  // Codec::EncodeUpTo with the lengths already checked; residual may be null.
  int64_t (*encode)(const float* x, float* residual, size_t n, float most, unsigned char* out);
  // Both decode n numbers from a bucket's start on.
  void (*decode)(const unsigned char* in, size_t n, float* out);
  void (*decode_add)(const unsigned char* in, size_t n, float scale, float* sum);
  // The first bucket that holds a number that is not finite, or -1.
  int64_t (*first_bad_bucket)(const unsigned char* in, size_t n);
};

}  // namespace kumo
