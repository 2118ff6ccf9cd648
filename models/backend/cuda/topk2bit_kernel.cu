// Codec topk2bit on the device: the CPU's order of sums, so the same bits (compiled without
// contraction of products and sums). A block of threads works on a group of 4,096 numbers.
//
// With levels of each group one kernel does it all. With levels of tensors three kernels do: the
// selection of each group, the statistics of each tensor over what was selected (a 64th of the
// numbers), and the codes of each group.
#include "models/backend/cuda/codec.cuh"

namespace kumo::cuda {
namespace {

using Topk2bit = on_device::Topk2bitFormula;

constexpr int kMostKept = static_cast<int>(Topk2bit::kMostKept);
constexpr int kLevels = Topk2bit::kLevels;
constexpr int kFullGroupBytes = 80;
constexpr uint16_t kNoPosition = 0xFFFF;

__device__ int KeptOf(int numbers) {
  return static_cast<int>(Topk2bit::Kept(static_cast<size_t>(numbers)));
}
__device__ int NumbersOf(int64_t n, int64_t begin) {
  return static_cast<int>(min(int64_t{kTopkGroup}, n - begin));
}

// Each thread a byte.
__device__ void PutPositions(const uint16_t* positions, int kept, std::byte* out) {
  for (int j = static_cast<int>(threadIdx.x); j < kept; j += kThreads) {
    unsigned byte = Topk2bit::LowBits(positions[j]);
    for (int i = 0; i < kept; ++i) {
      const size_t bit = Topk2bit::HighBit(static_cast<size_t>(i), positions[i]);
      if (static_cast<int>(bit / 2) == j) byte |= Topk2bit::MaskOf(bit);
    }
    out[j] = static_cast<std::byte>(byte);
  }
}

// And the zeros behind them.
__device__ void PutCodes(const uint32_t* codes, int kept, std::byte* out) {
  const int bytes = static_cast<int>(Topk2bit::GroupBytes(static_cast<size_t>(kept))) - kept;
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += kThreads) {
    unsigned byte = 0;
    for (int j = 4 * i; j < 4 * i + 4 && j < kept; ++j) byte |= codes[j] << (j % 4 * 2);
    out[i] = static_cast<std::byte>(byte);
  }
}

__device__ void PutLevels(const float* levels, std::byte* out) {
  for (int c = 0; c < kLevels; ++c) reinterpret_cast<float*>(out)[c] = levels[c];
}

// Group of a job.
struct GroupOfJob {
  const EncodeJob& job;
  int64_t group;
  int64_t begin;  // of the group's numbers, in the job's
  int kept;
};

// Selects the numbers that are sent of group `of_all` of all jobs, and keeps all in the residual.
// All threads see positions and values. Works in `sums`.
__device__ GroupOfJob Select(const EncodeJob* jobs, int count, int64_t of_all, int* sums,
                             uint16_t* positions, float* values) {
  const EncodeJob& job = JobOf(jobs, count, of_all);
  const int64_t group = of_all - job.first_group;
  const int64_t begin = group * kTopkGroup;
  const int numbers = NumbersOf(job.n, begin);
  const int kept = KeptOf(numbers);
  const GroupOfThread mine =
      SelectGroup(job, job.settings.residual_factor, begin, numbers, kept, sums, positions, values);
  for (int r = 0; job.residual != nullptr && r < kRun && mine.first + r < numbers; ++r) {
    job.residual[begin + mine.first + r] = mine.u[r] - (-0.0f);
  }
  __syncthreads();
  return {job, group, begin, kept};
}

// One after the other: 64 numbers at most.
__device__ TensorLevels LevelsOf(const float* values, int count) {
  TensorLevels levels;
  double sum = 0.0;
  for (int j = 0; j < count; ++j) sum += static_cast<double>(values[j]);
  levels.mean = Topk2bit::MeanOf(sum, count);
  double squares = 0.0;
  for (int j = 0; j < count; ++j) {
    const double far = static_cast<double>(values[j]) - levels.mean;
    squares += far * far;
  }
  levels.step = Topk2bit::StepOf(squares, count);
  double sums[kLevels] = {};
  int counts[kLevels] = {};
  for (int j = 0; j < count; ++j) {
    const uint32_t code = Topk2bit::CodeOf(values[j], levels.mean, levels.step);
    sums[code] += static_cast<double>(values[j]);
    ++counts[code];
  }
  for (int c = 0; c < kLevels; ++c) {
    levels.levels[c] = static_cast<float>(Topk2bit::MeanOf(sums[c], counts[c]));
  }
  return levels;
}

// Levels of each group.
__global__ void EncodeTopk2bitGroups(const EncodeJob* jobs, int count, int64_t groups) {
  __shared__ int sums[kThreads];
  __shared__ uint16_t positions[kMostKept];
  __shared__ float values[kMostKept];
  __shared__ uint32_t codes[kMostKept];
  __shared__ TensorLevels levels;
  const int me = static_cast<int>(threadIdx.x);
  for (int64_t of_all = blockIdx.x; of_all < groups; of_all += gridDim.x) {
    const auto [job, group, begin, kept] = Select(jobs, count, of_all, sums, positions, values);
    if (me == 0) levels = LevelsOf(values, kept);
    __syncthreads();
    for (int j = me; j < kept; j += kThreads) {
      codes[j] = Topk2bit::CodeOf(values[j], levels.mean, levels.step);
      if (job.residual != nullptr) {
        job.residual[begin + positions[j]] = values[j] - levels.levels[codes[j]];
      }
    }
    __syncthreads();
    std::byte* const out =
        job.out + group * (kFullGroupBytes + static_cast<int>(Topk2bit::kLevelBytes));
    if (me == 0) PutLevels(levels.levels, out);
    std::byte* const code = out + Topk2bit::kLevelBytes;
    PutPositions(positions, kept, code);
    PutCodes(codes, kept, code + kept);
    __syncthreads();  // the arrays are used again
  }
}

// --- Levels of tensors.

__global__ void SelectTopk2bit(const EncodeJob* jobs, int count, int64_t groups,
                               TensorTable table) {
  __shared__ int sums[kThreads];
  __shared__ uint16_t positions[kMostKept];
  __shared__ float values[kMostKept];
  for (int64_t of_all = blockIdx.x; of_all < groups; of_all += gridDim.x) {
    const auto [job, group, begin, kept] = Select(jobs, count, of_all, sums, positions, values);
    PutPositions(positions, kept, job.out + group * kFullGroupBytes);
    for (int j = static_cast<int>(threadIdx.x); j < kMostKept; j += kThreads) {
      table.positions[of_all * kMostKept + j] = j < kept ? positions[j] : kNoPosition;
      table.values[of_all * kMostKept + j] = j < kept ? values[j] : 0.0f;
    }
    __syncthreads();  // the arrays are used again
  }
}

// Adds up term(v, code) of a tensor's selected numbers: each thread the numbers of a group, the
// first thread the sums of the groups, in their order. The sum is valid in thread 0. Works in
// `parts`.
template <typename Term>
__device__ double SumOfTensor(const EncodedTensor& tensor, const TensorTable& table, double* parts,
                              int64_t* numbers, Term term) {
  const int me = static_cast<int>(threadIdx.x);
  const int64_t end = (tensor.end - 1) / kTopkGroup + 1;
  double sum = 0.0;
  for (int64_t first = tensor.begin / kTopkGroup; first < end; first += kThreads) {
    const int64_t group = first + me;
    double part = 0.0;
    for (int j = 0; group < end && j < kMostKept; ++j) {
      const uint16_t position = table.positions[group * kMostKept + j];
      const int64_t place = group * kTopkGroup + position;
      if (position == kNoPosition || place >= tensor.end) break;
      if (place < tensor.begin) continue;
      const float v = table.values[group * kMostKept + j];
      if (term.Counts(v)) {
        part += term.Of(static_cast<double>(v));
        ++*numbers;
      }
    }
    parts[me] = part;
    __syncthreads();
    for (int i = 0; me == 0 && i < kThreads && first + i < end; ++i) sum += parts[i];
    __syncthreads();
  }
  return sum;
}

struct ItselfTerm {
  __device__ bool Counts(float) const { return true; }
  __device__ double Of(double v) const { return v; }
};
struct SquareTerm {
  double mean;
  __device__ bool Counts(float) const { return true; }
  __device__ double Of(double v) const { return (v - mean) * (v - mean); }
};
struct OfCodeTerm {
  double mean;
  double step;
  uint32_t code;
  __device__ bool Counts(float v) const { return Topk2bit::CodeOf(v, mean, step) == code; }
  __device__ double Of(double v) const { return v; }
};

// A block of threads for each tensor.
__global__ void MeasureTopk2bit(TensorTable table) {
  __shared__ double parts[kThreads];
  __shared__ TensorLevels levels;
  const bool first = threadIdx.x == 0;
  for (int64_t t = blockIdx.x; t < table.count; t += gridDim.x) {
    const EncodedTensor& tensor = table.tensors[t];
    int64_t mine = 0;
    const double sum = SumOfTensor(tensor, table, parts, &mine, ItselfTerm());
    const int64_t count = SumOfBlock(mine);
    if (first) levels.mean = Topk2bit::MeanOf(sum, count);
    __syncthreads();
    const double squares = SumOfTensor(tensor, table, parts, &mine, SquareTerm{levels.mean});
    if (first) levels.step = Topk2bit::StepOf(squares, count);
    __syncthreads();
    for (uint32_t c = 0; c < kLevels; ++c) {
      int64_t of_code = 0;
      const double sum_of_code =
          SumOfTensor(tensor, table, parts, &of_code, OfCodeTerm{levels.mean, levels.step, c});
      const int64_t count_of_code = SumOfBlock(of_code);
      if (first) {
        levels.levels[c] = static_cast<float>(Topk2bit::MeanOf(sum_of_code, count_of_code));
      }
    }
    if (first) table.levels[t] = levels;
    __syncthreads();
  }
}

// The tensor of a place.
__device__ int TensorAt(const TensorTable& table, int64_t place) {
  int low = 0;
  for (int high = table.count; high - low > 1;) {
    const int middle = (low + high) / 2;
    (table.tensors[middle].begin <= place ? low : high) = middle;
  }
  return low;
}

__global__ void CodeTopk2bit(const EncodeJob* jobs, int count, int64_t groups, TensorTable table) {
  __shared__ uint32_t codes[kMostKept];
  const int me = static_cast<int>(threadIdx.x);
  for (int64_t of_all = blockIdx.x; of_all < groups; of_all += gridDim.x) {
    const EncodeJob& job = JobOf(jobs, count, of_all);
    const int64_t group = of_all - job.first_group;
    const int64_t begin = group * kTopkGroup;
    const int kept = KeptOf(NumbersOf(job.n, begin));
    for (int j = me; j < kept; j += kThreads) {
      const int64_t selected = of_all * kMostKept + j;
      const uint16_t position = table.positions[selected];
      const float v = table.values[selected];
      const TensorLevels& levels = table.levels[TensorAt(table, of_all * kTopkGroup + position)];
      codes[j] = Topk2bit::CodeOf(v, levels.mean, levels.step);
      job.residual[begin + position] = v - levels.levels[codes[j]];
    }
    __syncthreads();
    PutCodes(codes, kept, job.out + group * kFullGroupBytes + kept);
    if (group == 0) {
      const int64_t rest = job.n % kTopkGroup;
      const int64_t rest_bytes =
          rest == 0 ? 0 : static_cast<int64_t>(Topk2bit::GroupBytes(Topk2bit::Kept(rest)));
      std::byte* const out = job.out + job.n / kTopkGroup * kFullGroupBytes + rest_bytes;
      const int64_t place = of_all * kTopkGroup;
      const int first = TensorAt(table, place);
      for (int t = first + me; t < table.count && table.tensors[t].begin < place + job.n;
           t += kThreads) {
        PutLevels(table.levels[t].levels,
                  out + (t - first) * static_cast<int64_t>(Topk2bit::kLevelBytes));
      }
    }
    __syncthreads();
  }
}

__global__ void DecodeTopk2bitGroups(const std::byte* in, int64_t n, float* out) {
  const int me = static_cast<int>(threadIdx.x);
  const int64_t groups = (n + kTopkGroup - 1) / kTopkGroup;
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const int64_t begin = group * kTopkGroup;
    const int numbers = NumbersOf(n, begin);
    const int kept = KeptOf(numbers);
    const std::byte* const levels =
        in + group * (kFullGroupBytes + static_cast<int>(Topk2bit::kLevelBytes));
    const std::byte* const code = levels + Topk2bit::kLevelBytes;
    for (int i = me; i < numbers; i += kThreads) out[begin + i] = -0.0f;
    __syncthreads();
    for (int bit = me; bit < 2 * kept; bit += kThreads) {
      if (!Topk2bit::IsOne(code, static_cast<size_t>(bit))) continue;
      int j = 0;
      for (int before = 0; before < bit; ++before) {
        j += Topk2bit::IsOne(code, static_cast<size_t>(before)) ? 1 : 0;
      }
      if (j >= kept) continue;
      const size_t position =
          Topk2bit::PositionAt(code, static_cast<size_t>(bit), static_cast<size_t>(j));
      if (position >= static_cast<size_t>(numbers)) continue;
      out[begin + static_cast<int64_t>(position)] = reinterpret_cast<const float*>(
          levels)[Topk2bit::CodeAt(code + kept, static_cast<size_t>(j))];
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t EncodeTopk2bit(const Launch& launch, const EncodeJob* jobs, int count, int64_t groups,
                           const TensorTable& tensors) {
  const int blocks = BlocksFor(launch, groups * kThreads);
  if (tensors.count == 0) {
    return Queue(launch, EncodeTopk2bitGroups, blocks, jobs, count, groups);
  }
  cudaError_t error = Queue(launch, SelectTopk2bit, blocks, jobs, count, groups, tensors);
  if (error == cudaSuccess) {
    error = Queue(launch, MeasureTopk2bit, BlocksFor(launch, int64_t{tensors.count} * kThreads),
                  tensors);
  }
  if (error != cudaSuccess) return error;
  return Queue(launch, CodeTopk2bit, blocks, jobs, count, groups, tensors);
}

cudaError_t DecodeTopk2bit(const Launch& launch, const std::byte* in, int64_t n, float* out) {
  const int64_t groups = (n + kTopkGroup - 1) / kTopkGroup;
  return Queue(launch, DecodeTopk2bitGroups, BlocksFor(launch, groups * kThreads), in, n, out);
}

}  // namespace kumo::cuda
