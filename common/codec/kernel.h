// Codec kernel: the traits and functions of one codec, plain functions over whole buckets, compiled
// per instruction-set level. A codec's file holds its format (one struct) and one line that makes
// the kernel; bucket.h has the loops over buckets. For sources that cannot include codec.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kumo {

constexpr size_t kCodecBucket = 512;  // Codec::kBucket
// Unit of ranges in which a codec whose numbers stand by themselves decodes: two lines of float32.
constexpr size_t kShortGranule = 32;

// Numbers of the wire format and of checkpoints: never renumber.
enum class CodecId : uint32_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kInt8 = 4,
  kOneBit = 5,
  kInt4 = 6,
  kE3m0 = 7,
  kTwoBit = 8,
  kInt8Stochastic = 9,
  kInt4Stochastic = 10,
  kInt8Cntk = 11,
  kInt4Cntk = 12,
  kTwoBitCntk = 13,
  kTopk = 14,
  kTopk2bit = 15,
};

// Settings of codecs that have some; every process of a job has the same.
struct CodecSettings {
  float threshold = 0.5f;           // CodecTraits::has_threshold
  int kept = 41;                    // numbers of 4,096; CodecTraits::selects
  CodecId values = CodecId::kInt8;  // codec of these numbers; one with a group of kCodecBucket
  float residual_factor = 0.95f;    // CodecTraits::decays_residual

  friend bool operator==(const CodecSettings&, const CodecSettings&) = default;
};

// Inputs of an encoding beside the numbers.
struct EncodeContext {
  float most = 0x1.fffffep127f;  // largest magnitude that is accepted
  uint64_t key = 0;              // of the random numbers
  uint64_t first = 0;            // position of the first number in the flat vector
};

struct CodecTraits {
  bool codes_pulls = true;      // makes sense for pulls, too
  bool needs_feedback = false;  // contributions are lost without error feedback
  bool sparse = false;          // most numbers are not sent, and decode to one that adds nothing
  bool has_threshold = false;   // encodes by CodecSettings::threshold
  bool selects = false;         // sends CodecSettings::kept numbers, the largest, coded as `values`
  // u = x + CodecSettings::residual_factor * residual
  bool decays_residual = false;
  bool uses_tensors = false;  // contributions are coded tensor by tensor: Codec::ForTensors
};

struct CodecKernel {
  CodecId id;
  const char* name;  // in experiment files
  const char* help;  // a few words for people
  bool lossless;
  bool codes_weights;                    // Codec::codes_weights()
  float largest;                         // Codec::largest()
  size_t granule;                        // Codec::granule()
  bool plain;                            // Codec::plain()
  size_t (*bucket_bytes)(size_t count);  // encoded length of a bucket of 1 .. kBucket numbers
  // Codec::EncodeIn with the lengths already checked; residual may be null.
  int64_t (*encode)(const CodecSettings& settings, const EncodeContext& context, const float* x,
                    float* residual, size_t n, unsigned char* out);
  // Both decode n numbers from a bucket's start on.
  void (*decode)(const unsigned char* in, size_t n, float* out);
  void (*decode_add)(const unsigned char* in, size_t n, float scale, float* sum);
  // The first bucket that holds a number that is not finite, or -1.
  int64_t (*first_bad_bucket)(const unsigned char* in, size_t n);
  CodecTraits traits;
};

}  // namespace kumo
