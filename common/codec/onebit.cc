// Codec 1bit: the sign of each number and two means per bucket (Seide et al., "1-bit stochastic
// gradient descent", Interspeech 2014; CNTK's zero threshold).
//
// Bit v of word l belongs to number 16 v + l: sixteen lanes shift their own word, so neither side
// ever gathers bits across lanes.
#include <cstdint>

#include "common/base/lanes.h"
#include "common/codec/bucket.h"

namespace kumo::KUMO_ISA {

struct OneBit : OneBitFormula {
  static constexpr CodecId kId = CodecId::kOneBit;
  static constexpr const char* kName = "1bit";
  static constexpr const char* kHelp = "1 bit a number, two means per 512";
  static constexpr bool kLossless = false;
  static constexpr bool kCodesWeights = false;
  static constexpr float kLargest = kLargestFloat;
  static constexpr size_t kWordsAt = 8;
  static constexpr size_t kBucketsAhead = 4;  // a bucket has hardly more than one line
  static constexpr int kVectors = kBucket / kLanes;
  static constexpr size_t Bytes(size_t) { return kWordsAt + kBucket / 8; }

  KUMO_ALWAYS_INLINE static void Encode(const float* u, size_t count, uint32_t, float* residual,
                                        unsigned char* out) {
    if (count == kBucket) {
      EncodeFull(u, count, residual, out);
      return;
    }
    alignas(64) float padded[kBucket] = {};
    alignas(64) float error[kBucket];
    __builtin_memcpy(padded, u, count * sizeof(float));
    EncodeFull(padded, count, residual == nullptr ? nullptr : error, out);
    if (residual != nullptr) __builtin_memcpy(residual, error, count * sizeof(float));
  }

  // Encodes kBucket numbers, of which those from `count` on are 0 and not part of the chunk.
  KUMO_ALWAYS_INLINE static void EncodeFull(const float* u, size_t count, float* residual,
                                            unsigned char* out) {
    FloatLanes below, above;
    IntLanes words;
    for (int v = 0; v < kVectors; ++v) {
      const int32_t bit = static_cast<int32_t>(1u << v);
      for (int p = 0; p < kParts; ++p) {
        const FloatPart x = LoadPart(u + kLanes * v + kPartLanes * p);
        const IntPart one = x >= 0.0f;
        above.part[p] += one ? x : FloatPart{};
        below.part[p] += one ? FloatPart{} : x;
        words.part[p] |= one & bit;
      }
    }
    uint32_t packed[kLanes];
    __builtin_memcpy(packed, words.part, sizeof(packed));
    for (size_t i = count; i < kBucket; ++i) packed[i % kLanes] &= ~(1u << (i / kLanes));
    const Levels levels = Means(u, count, packed, SumOfLanes(below), SumOfLanes(above));
    __builtin_memcpy(out, &levels, kWordsAt);
    __builtin_memcpy(out + kWordsAt, packed, sizeof(packed));
    if (residual == nullptr) return;
    const FloatPart low = FloatPart{} + levels.low;
    const FloatPart high = FloatPart{} + levels.high;
    for (int i = 0; i < static_cast<int>(kBucket); i += kPartLanes) {
      const FloatPart x = LoadPart(u + i);
      StorePart(x - ((x >= 0.0f) ? high : low), residual + i);
    }
  }

  KUMO_ALWAYS_INLINE static Levels Means(const float* u, size_t count, const uint32_t* words,
                                         float below, float above) {
    int ones = 0;
    for (int l = 0; l < kLanes; ++l) ones += __builtin_popcount(words[l]);
    const int zeros = static_cast<int>(count) - ones;
    if (IsHuge(below) || IsHuge(above)) return MeansOfHugeNumbers(u, count, zeros, ones);
    return {MeanOf(below, zeros), MeanOf(above, ones)};
  }

  // Numbers whose sum, but not their mean, is beyond float32.
  [[gnu::noinline]] static Levels MeansOfHugeNumbers(const float* u, size_t count, int zeros,
                                                     int ones) {
    double below = 0.0;
    double above = 0.0;
    for (size_t i = 0; i < count; ++i) (u[i] >= 0.0f ? above : below) += static_cast<double>(u[i]);
    return {MeanOf(below, zeros), MeanOf(above, ones)};
  }

  // Hands each part of the bucket's numbers to use(position, part).
  template <typename Use>
  KUMO_ALWAYS_INLINE static void ForEachPart(const unsigned char* in, Use use) {
    Levels levels;
    __builtin_memcpy(&levels, in, sizeof(levels));
    for (size_t line = 0; line < 2 * 64; line += 64) {
      PrefetchLine(in + kBucketsAhead * Bytes(kBucket) + line);
    }
    const FloatPart low = FloatPart{} + levels.low;
    const FloatPart high = FloatPart{} + levels.high;
    IntLanes words;
    __builtin_memcpy(words.part, in + kWordsAt, sizeof(words.part));
    for (int v = 0; v < kVectors; ++v) {
      const int32_t bit = static_cast<int32_t>(1u << v);
      for (int p = 0; p < kParts; ++p) {
        use(kLanes * v + kPartLanes * p, ((words.part[p] & bit) != 0) ? high : low);
      }
    }
  }

  KUMO_ALWAYS_INLINE static void Decode(const unsigned char* in, size_t count, float* out) {
    if (count == kBucket) {
      ForEachPart(in, [out](int i, FloatPart x) { StorePart(x, out + i); });
      return;
    }
    alignas(64) float decoded[kBucket];
    ForEachPart(in, [&decoded](int i, FloatPart x) { StorePart(x, decoded + i); });
    __builtin_memcpy(out, decoded, count * sizeof(float));
  }

  KUMO_ALWAYS_INLINE static void DecodeAdd(const unsigned char* in, size_t count, float scale,
                                           float* sum) {
    if (count == kBucket) {
      ForEachPart(in, [scale, sum](int i, FloatPart x) {
        StorePart(LoadPart(sum + i) + scale * x, sum + i);
      });
      return;
    }
    alignas(64) float decoded[kBucket];
    ForEachPart(in, [&decoded](int i, FloatPart x) { StorePart(x, decoded + i); });
    for (size_t i = 0; i < count; ++i) sum[i] += scale * decoded[i];
  }

  KUMO_ALWAYS_INLINE static bool Finite(const unsigned char* in, size_t) {
    uint32_t bits[2];
    __builtin_memcpy(bits, in, sizeof(bits));
    return (bits[0] & kInfinityBits) != kInfinityBits && (bits[1] & kInfinityBits) != kInfinityBits;
  }
};

extern const CodecKernel kOneBit;
constinit const CodecKernel kOneBit = KernelOf<OneBit>();

}  // namespace kumo::KUMO_ISA
