// Codecs on the device: the formulas of common/codec/formulas.h with the CPU's order of sums, so
// the same bits (compiled without contraction of products and sums).
//
// 16 threads work on a bucket, each on one of the codecs' 16 lanes: numbers 16 v + lane of the
// bucket. Encode reads x (and the array that is subtracted) and the residual once, and writes the
// residual and the packed bytes once: memory bandwidth is the limit.
#include "models/backend/cuda/codec.cuh"

namespace kumo::cuda {
namespace {

using on_device::BitsOf;
using on_device::BucketFacts;
using on_device::FloatOf;
using on_device::TopkLayout;

constexpr int kLanes = 16;
constexpr int kVectors = static_cast<int>(Codec::kBucket) / kLanes;

// The 16 threads of this bucket within their warp.
__device__ unsigned LanesMask() { return 0xFFFFu << (threadIdx.x % kWarp / kLanes * kLanes); }

// The sum of the lanes: halves added to halves, as SumOfLanes of common/base/lanes.h. In lane 0.
__device__ float SumOfLanes(float value) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    value += __shfl_down_sync(LanesMask(), value, width, kLanes);
  }
  return value;
}
__device__ int CountOfLanes(int value) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    value += __shfl_down_sync(LanesMask(), value, width, kLanes);
  }
  return value;
}
__device__ float FromLane0(float value) { return __shfl_sync(LanesMask(), value, 0, kLanes); }

// Codes are aligned to what they consist of.
template <typename T>
__device__ void Put(T value, std::byte* to) {
  *reinterpret_cast<T*>(to) = value;
}
template <typename T>
__device__ T Get(const std::byte* from) {
  return *reinterpret_cast<const T*>(from);
}

// One lane's numbers of a bucket, 0 beyond its end.
struct LaneOfBucket {
  int lane;
  int count;  // of the bucket: kBucket, or fewer at the chunk's end
  float u[kVectors];

  __device__ bool has(int v) const { return kLanes * v + lane < count; }
};

struct Fp32Format {
  static __host__ __device__ int64_t Bytes(int64_t count) { return 4 * count; }
  __device__ static void Encode(const LaneOfBucket& b, const BucketFacts&, float* residual,
                                std::byte* out) {
    for (int v = 0; v < kVectors; ++v) {
      if (!b.has(v)) continue;
      const int i = kLanes * v + b.lane;
      Put(b.u[v], out + 4 * i);
      if (residual != nullptr) residual[i] = 0.0f;
    }
  }
  __device__ static float Decode(const std::byte* in, int i) { return Get<float>(in + 4 * i); }
};

template <typename Half>
struct HalfFormat {
  static __host__ __device__ int64_t Bytes(int64_t count) { return 2 * count; }
  __device__ static void Encode(const LaneOfBucket& b, const BucketFacts&, float* residual,
                                std::byte* out) {
    for (int v = 0; v < kVectors; ++v) {
      if (!b.has(v)) continue;
      const int i = kLanes * v + b.lane;
      const uint16_t bits = Half::FromFloat(b.u[v]);
      Put(bits, out + 2 * i);
      if (residual != nullptr) residual[i] = b.u[v] - Half::ToFloat(bits);
    }
  }
  __device__ static float Decode(const std::byte* in, int i) {
    return Half::ToFloat(Get<uint16_t>(in + 2 * i));
  }
};

// common/codec/packed.cc: the numbers of a byte are all of one lane.
template <typename Formula>
struct PackedFormat {
  static constexpr int kPerByte = 8 / Formula::kBits;
  static constexpr int kStride = static_cast<int>(Codec::kBucket) / kPerByte;
  static constexpr int kCodesAt = 4;

  static __host__ __device__ int64_t Bytes(int64_t count) {
    return kCodesAt + (count < kStride ? count : kStride);
  }
  __device__ static void Encode(const LaneOfBucket& b, BucketFacts facts, float* residual,
                                std::byte* out) {
    if constexpr (Formula::kNeedsSquares) {
      const float unit = BucketFacts::UnitOf(facts.absmax_bits);
      float sum = 0.0f;
      for (int v = 0; v < kVectors; ++v) {
        const float x = b.u[v] * unit;
        sum += x * x;
      }
      facts.sum_of_squares = FromLane0(SumOfLanes(sum));
    }
    const Formula formula = Formula::Of(facts);
    if (b.lane == 0) Put(formula.scale, out);
    for (int v = 0; v < kVectors / kPerByte; ++v) {
      if (!b.has(v)) continue;
      uint32_t packed = 0;
      for (int k = 0; k < kPerByte; ++k) {
        const int at = v + k * (kVectors / kPerByte);
        if (!b.has(at)) continue;
        const int i = kLanes * at + b.lane;
        const uint32_t code = formula.CodeOf(b.u[at], i);
        packed |= (code & ((1u << Formula::kBits) - 1u)) << (k * Formula::kBits);
        if (residual != nullptr) residual[i] = b.u[at] - Formula::ValueOf(code) * formula.scale;
      }
      out[kCodesAt + kLanes * v + b.lane] = static_cast<std::byte>(packed);
    }
  }
  __device__ static float Decode(const std::byte* in, int i) {
    const auto codes = static_cast<uint32_t>(in[kCodesAt + i % kStride]);
    return Formula::ValueOf(codes >> (i / kStride * Formula::kBits)) * Get<float>(in);
  }
};

struct OneBitFormat : on_device::OneBitFormula {
  static constexpr int kWordsAt = 8;

  static __host__ __device__ int64_t Bytes(int64_t) { return kWordsAt + Codec::kBucket / 8; }
  __device__ static void Encode(const LaneOfBucket& b, const BucketFacts&, float* residual,
                                std::byte* out) {
    float below = 0.0f;
    float above = 0.0f;
    uint32_t word = 0;
    for (int v = 0; v < kVectors; ++v) {
      const float x = b.u[v];
      const bool one = x >= 0.0f;
      above += one ? x : 0.0f;
      below += one ? 0.0f : x;
      if (one && b.has(v)) word |= 1u << v;
    }
    const Levels levels =
        Means(b, SumOfLanes(below), SumOfLanes(above), CountOfLanes(__popc(word)));
    if (b.lane == 0) Put(levels, out);
    Put(word, out + kWordsAt + 4 * b.lane);
    if (residual == nullptr) return;
    for (int v = 0; v < kVectors; ++v) {
      if (!b.has(v)) continue;
      residual[kLanes * v + b.lane] = b.u[v] - (b.u[v] >= 0.0f ? levels.high : levels.low);
    }
  }
  __device__ static float Decode(const std::byte* in, int i) {
    const auto levels = Get<Levels>(in);
    const auto word = Get<uint32_t>(in + kWordsAt + 4 * (i % kLanes));
    return (word >> (i / kLanes) & 1u) != 0 ? levels.high : levels.low;
  }

 private:
  // below, above and ones: the bucket's, in lane 0. The result is every lane's.
  __device__ static Levels Means(const LaneOfBucket& b, float below, float above, int ones) {
    const bool huge = IsHuge(below) || IsHuge(above);
    const int zeros = b.count - ones;
    Levels levels = {MeanOf(below, zeros), MeanOf(above, ones)};
    if (__shfl_sync(LanesMask(), static_cast<int>(huge), 0, kLanes) != 0) {
      levels = MeansOfHugeNumbers(b, zeros, ones);
    }
    return {FromLane0(levels.low), FromLane0(levels.high)};
  }
  // Numbers whose sum, but not their mean, is beyond float32: in double, one after the other. Rare,
  // so lane 0 adds up what the others hand to it.
  __device__ static Levels MeansOfHugeNumbers(const LaneOfBucket& b, int zeros, int ones) {
    double below = 0.0;
    double above = 0.0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll 1
      for (int l = 0; l < kLanes; ++l) {
        const float x = __shfl_sync(LanesMask(), b.u[v], l, kLanes);
        if (kLanes * v + l < b.count) (x >= 0.0f ? above : below) += static_cast<double>(x);
      }
    }
    return {MeanOf(below, zeros), MeanOf(above, ones)};
  }
};

// Buckets before this thread's, and how many the whole grid takes at once.
__device__ int64_t FirstBucket() { return FirstOfThread() / kLanes; }
__device__ int64_t BucketsOfGrid() { return ThreadsOfGrid() / kLanes; }

template <typename Format>
__global__ void EncodeKernel(const EncodeJob* jobs, int count, int64_t buckets) {
  constexpr int64_t kBucket = Codec::kBucket;
  LaneOfBucket b;
  b.lane = static_cast<int>(threadIdx.x % kLanes);
  for (int64_t of_all = FirstBucket(); of_all < buckets; of_all += BucketsOfGrid()) {
    const EncodeJob& job = JobOf(jobs, count, of_all);
    const int64_t bucket = of_all - job.first_group;
    const float* __restrict__ x = job.x;
    const float* __restrict__ minus = job.minus;
    float* __restrict__ residual = job.residual;
    const int64_t begin = bucket * kBucket;
    b.count = static_cast<int>(min(kBucket, job.n - begin));
    // Array after array, so that many loads are on their way at once.
    const int64_t mine = begin + b.lane;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) b.u[v] = b.has(v) ? x[mine + kLanes * v] : 0.0f;
    if (minus != nullptr) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) b.u[v] -= b.has(v) ? minus[mine + kLanes * v] : 0.0f;
    }
    if (residual != nullptr) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) b.u[v] += b.has(v) ? residual[mine + kLanes * v] : 0.0f;
    }
    const uint32_t most = BitsOf(job.context.most);
    uint32_t top = 0;
    int bad = kVectors;
#pragma unroll
    for (int v = kVectors - 1; v >= 0; --v) {
      const uint32_t magnitude = BitsOf(b.u[v]) & on_device::kMagnitudeBits;
      if (magnitude > most) bad = v;
      top = max(top, magnitude);
    }
    if (bad < kVectors) {
      atomicMin(job.first_bad, static_cast<unsigned long long>(mine + kLanes * bad));
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      top = max(top, __shfl_xor_sync(LanesMask(), top, width, kLanes));
    }
    BucketFacts facts = BucketFacts::Of(job.settings, job.context, static_cast<uint64_t>(begin));
    facts.absmax_bits = top;
    facts.count = b.count;
    Format::Encode(b, facts, residual == nullptr ? nullptr : residual + begin,
                   job.out + bucket * Format::Bytes(kBucket));
  }
}

template <typename Format>
__global__ void DecodeKernel(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBucket = Codec::kBucket;
  for (int64_t i = FirstOfThread(); i < n; i += ThreadsOfGrid()) {
    out[i] =
        Format::Decode(in + i / kBucket * Format::Bytes(kBucket), static_cast<int>(i % kBucket));
  }
}

// --- topk: a block of threads for each group of 4,096 numbers, each thread with a run of them.

constexpr int kTopkMost = kTopkGroup / 2;  // of a group, as sync.topk_percent allows

// Bytes of a group of `count` numbers.
template <typename Format>
__device__ int64_t TopkBytes(const CodecSettings& settings, int64_t count) {
  const auto kept = static_cast<int64_t>(TopkLayout::Kept(settings, static_cast<size_t>(count)));
  constexpr int64_t kBucket = Codec::kBucket;
  const int64_t values = kept / kBucket * Format::Bytes(kBucket) +
                         (kept % kBucket == 0 ? 0 : Format::Bytes(kept % kBucket));
  return static_cast<int64_t>(TopkLayout::PositionBytes(static_cast<size_t>(kept)) +
                              TopkLayout::Aligned(static_cast<size_t>(values)));
}

template <typename Format>
__global__ void EncodeTopkKernel(const EncodeJob* jobs, int count, int64_t groups) {
  constexpr int kBucket = static_cast<int>(Codec::kBucket);
  __shared__ int sums[kThreads];
  __shared__ uint16_t positions[kTopkMost + 1];
  __shared__ float values[kTopkMost];
  __shared__ float errors[kTopkMost];
  const int me = static_cast<int>(threadIdx.x);
  for (int64_t of_all = blockIdx.x; of_all < groups; of_all += gridDim.x) {
    const EncodeJob& job = JobOf(jobs, count, of_all);
    const int64_t begin = (of_all - job.first_group) * kTopkGroup;
    const int numbers = static_cast<int>(min(int64_t{kTopkGroup}, job.n - begin));
    const int kept = static_cast<int>(TopkLayout::Kept(job.settings, static_cast<size_t>(numbers)));
    const GroupOfThread mine =
        SelectGroup(job, 1.0f, begin, numbers, kept, sums, positions, values);
    if (me == 0) positions[kept] = 0;  // the second of the last pair
    __syncthreads();

    std::byte* const out =
        job.out + begin / kTopkGroup * TopkBytes<Format>(job.settings, kTopkGroup);
    const auto values_at = static_cast<int>(TopkLayout::PositionBytes(static_cast<size_t>(kept)));
    const auto bytes = static_cast<int>(TopkBytes<Format>(job.settings, numbers));
    for (int pair = me; 3 * pair < values_at; pair += kThreads) {
      const uint32_t two =
          2 * pair < kept ? uint32_t{positions[2 * pair]} | uint32_t{positions[2 * pair + 1]} << 12
                          : 0u;
      for (int byte = 0; byte < 3 && 3 * pair + byte < values_at; ++byte) {
        out[3 * pair + byte] = static_cast<std::byte>(two >> (8 * byte));
      }
    }
    LaneOfBucket b;
    b.lane = me % kLanes;
    int end = values_at;
    for (int first = 0, bucket = 0; first < kept; first += kBucket, ++bucket) {
      b.count = min(kBucket, kept - first);
      std::byte* const code = out + values_at + bucket * Format::Bytes(kBucket);
      end = values_at + static_cast<int>(bucket * Format::Bytes(kBucket) + Format::Bytes(b.count));
      if (me / kLanes != bucket) continue;
      BucketFacts facts =
          BucketFacts::Of(job.settings, job.context, static_cast<uint64_t>(begin + first));
      for (int v = 0; v < kVectors; ++v) {
        b.u[v] = b.has(v) ? values[first + kLanes * v + b.lane] : 0.0f;
        facts.absmax_bits = max(facts.absmax_bits, Magnitude(b.u[v]));
      }
      for (int width = kLanes / 2; width > 0; width /= 2) {
        facts.absmax_bits =
            max(facts.absmax_bits, __shfl_xor_sync(LanesMask(), facts.absmax_bits, width, kLanes));
      }
      facts.count = b.count;
      Format::Encode(b, facts, job.residual == nullptr ? nullptr : errors + first, code);
    }
    for (int i = end + me; i < bytes; i += kThreads) out[i] = std::byte{0};
    __syncthreads();
    if (job.residual != nullptr) {
      int from = mine.first_sent;
      for (int r = 0; r < kRun; ++r) {
        if (mine.first + r >= numbers) break;
        job.residual[begin + mine.first + r] = mine.sent[r] ? errors[from++] : mine.u[r] - (-0.0f);
      }
    }
    __syncthreads();  // the arrays are used again
  }
}

template <typename Format>
__global__ void DecodeTopkKernel(CodecSettings settings, const std::byte* in, int64_t n,
                                 float* out) {
  constexpr int kBucket = static_cast<int>(Codec::kBucket);
  const int64_t groups = (n + kTopkGroup - 1) / kTopkGroup;
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const int64_t begin = group * kTopkGroup;
    const int numbers = static_cast<int>(min(int64_t{kTopkGroup}, n - begin));
    const int kept = static_cast<int>(TopkLayout::Kept(settings, static_cast<size_t>(numbers)));
    const std::byte* const code = in + group * TopkBytes<Format>(settings, kTopkGroup);
    const std::byte* const values = code + TopkLayout::PositionBytes(static_cast<size_t>(kept));
    for (int i = static_cast<int>(threadIdx.x); i < numbers; i += kThreads) out[begin + i] = -0.0f;
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < kept; j += kThreads) {
      const std::byte* const at = code + j / 2 * 3;
      const auto byte = [at](int i) { return static_cast<uint32_t>(at[i]); };
      const uint32_t position =
          j % 2 == 0 ? byte(0) | (byte(1) & 15u) << 8 : byte(1) >> 4 | byte(2) << 4;
      if (position >= static_cast<uint32_t>(numbers)) continue;
      out[begin + position] =
          Format::Decode(values + j / kBucket * Format::Bytes(kBucket), j % kBucket);
    }
  }
}

// Calls `launch` with the format of a codec of buckets. The one list of them; the CUDA tests want
// one of each.
template <typename LaunchFormat>
cudaError_t WithFormat(CodecId codec, LaunchFormat launch) {
  switch (codec) {
    case CodecId::kFp32:
      return launch(Fp32Format());
    case CodecId::kFp16:
      return launch(HalfFormat<on_device::Binary16>());
    case CodecId::kBf16:
      return launch(HalfFormat<on_device::BFloat16>());
    case CodecId::kInt8:
      return launch(PackedFormat<on_device::NearestFormula<8>>());
    case CodecId::kOneBit:
      return launch(OneBitFormat());
    case CodecId::kInt4:
      return launch(PackedFormat<on_device::NearestFormula<4>>());
    case CodecId::kE3m0:
      return launch(PackedFormat<on_device::E3m0Formula>());
    case CodecId::kTwoBit:
      return launch(PackedFormat<on_device::ThresholdFormula>());
    case CodecId::kInt8Stochastic:
      return launch(PackedFormat<on_device::StochasticFormula<8>>());
    case CodecId::kInt4Stochastic:
      return launch(PackedFormat<on_device::StochasticFormula<4>>());
    case CodecId::kInt8Cntk:
      return launch(PackedFormat<on_device::CntkFormula<8>>());
    case CodecId::kInt4Cntk:
      return launch(PackedFormat<on_device::CntkFormula<4>>());
    case CodecId::kTwoBitCntk:
      return launch(PackedFormat<on_device::CntkFormula<2>>());
    case CodecId::kTopk:
    case CodecId::kTopk2bit:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t Encode(const Launch& launch, const Codec& codec, const EncodeJob* jobs, int count,
                   int64_t groups, const TensorTable& tensors) {
  if (codec.traits().uses_tensors) return EncodeTopk2bit(launch, jobs, count, groups, tensors);
  if (codec.traits().selects) {
    return WithFormat(codec.settings().values, [&]<typename Format>(Format) {
      return Queue(launch, EncodeTopkKernel<Format>, BlocksFor(launch, groups * kThreads), jobs,
                   count, groups);
    });
  }
  return WithFormat(codec.id(), [&]<typename Format>(Format) {
    return Queue(launch, EncodeKernel<Format>, BlocksFor(launch, groups * kLanes), jobs, count,
                 groups);
  });
}

cudaError_t Decode(const Launch& launch, const Codec& codec, const std::byte* in, int64_t n,
                   float* out) {
  if (codec.traits().uses_tensors) return DecodeTopk2bit(launch, in, n, out);
  if (codec.traits().selects) {
    const int64_t groups = (n + kTopkGroup - 1) / kTopkGroup;
    return WithFormat(codec.settings().values, [&]<typename Format>(Format) {
      return Queue(launch, DecodeTopkKernel<Format>, BlocksFor(launch, groups * kThreads),
                   codec.settings(), in, n, out);
    });
  }
  return WithFormat(codec.id(), [&]<typename Format>(Format) {
    return Queue(launch, DecodeKernel<Format>, BlocksFor(launch, n), in, n, out);
  });
}

}  // namespace kumo::cuda
