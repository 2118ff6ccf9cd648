// Attention over a sequence. The weights are never in memory: Backward recomputes them from the
// logarithms of their sums.
//
// Kernels: one warp for each query of each head; for the gradients of keys and values, one warp for
// each key. A warp goes over the other positions 32 at a time. A lane holds one of them while
// products with it are computed, and every 32nd channel of the head while these products are
// summed.
//
// The softmax of a query is computed online, position by position (Milakov and Gimelshein 2018).
#include <cmath>
#include <cstdint>
#include <memory>

#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"
#include "models/ops/dropout/stream.cuh"

namespace kumo::cuda {
namespace {

// Shape, settings and arrays of a pass; see AttentionSpec.
struct AttentionNumbers {
  Precision precision = Precision::kFp32;
  int64_t batch = 0;
  int64_t channels = 0;  // of the output
  int64_t positions = 0;
  int64_t heads = 1;
  bool causal = false;
  float scale = 1;
  // Random stream that drops weights (see AttentionSpec); null: no weight is dropped.
  const StepBlock* step = nullptr;
  float dropout = 0;
  int layer = 0;
  float* log_sums = nullptr;  // [batch][heads][positions]: log sum exp(scale query . key)
  float* along = nullptr;     // likewise: sum of dy y

  __host__ __device__ int64_t per_head() const { return channels / heads; }
};
constexpr int64_t kMostOfHead = 256;  // channels

constexpr int kMostDims = static_cast<int>(kMostOfHead / kWarp);  // of a lane

__device__ inline float MostOfWarp(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// One head of one sample in an array of `thirds` times the output's channels.
template <typename T>
struct Head {
  int64_t first;    // channel 0 at position 0
  int64_t channel;  // numbers between channels
  int64_t position;

  __device__ Head(const AttentionNumbers& numbers, int64_t sample, int64_t head, int thirds,
                  int third) {
    const int64_t all = numbers.channels * thirds;
    const int64_t begin = third * numbers.channels + head * numbers.per_head();
    channel = kChannelsLast<T> ? 1 : numbers.positions;
    position = kChannelsLast<T> ? all : 1;
    first = sample * all * numbers.positions + begin * channel;
  }
  __device__ int64_t At(int64_t c, int64_t p) const { return first + c * channel + p * position; }
};

// A vector of a head, spread over the warp's lanes.
struct Spread {
  float at[kMostDims];

  __device__ void Clear() {
    for (int j = 0; j < kMostDims; ++j) at[j] = 0;
  }
  template <typename T>
  __device__ void Load(const T* from, const Head<T>& head, int64_t p, int64_t dims, int lane) {
    for (int j = 0; j < kMostDims; ++j) {
      const int64_t c = lane + j * kWarp;
      at[j] = c < dims ? ToFloat(from[head.At(c, p)]) : 0.0f;
    }
  }
  template <typename T>
  __device__ void StoreTo(T* to, const Head<T>& head, int64_t p, int64_t dims, int lane,
                          float factor) const {
    for (int j = 0; j < kMostDims; ++j) {
      const int64_t c = lane + j * kWarp;
      if (c < dims) Store(at[j] * factor, to + head.At(c, p));
    }
  }
  __device__ void Scale(float factor) {
    for (int j = 0; j < kMostDims; ++j) at[j] *= factor;
  }
  // The product with the vector at the lane's own position p, of any p.
  template <typename T>
  __device__ float Times(const T* from, const Head<T>& head, int64_t p, int64_t dims) const {
    float sum = 0;
    for (int j = 0; j < kMostDims; ++j) {
      for (int l = 0; l < kWarp && j * kWarp + l < dims; ++l) {
        sum += __shfl_sync(kAllLanes, at[j], l) * ToFloat(from[head.At(j * kWarp + l, p)]);
      }
    }
    return sum;
  }
  // Adds the vectors at `count` positions from p on, times each lane's weight.
  template <typename T>
  __device__ void Add(const T* from, const Head<T>& head, int64_t p, int count, float weight,
                      int64_t dims, int lane) {
    for (int l = 0; l < count; ++l) {
      const float factor = __shfl_sync(kAllLanes, weight, l);
      for (int j = 0; j < kMostDims; ++j) {
        const int64_t c = lane + j * kWarp;
        if (c < dims) at[j] += factor * ToFloat(from[head.At(c, p + l)]);
      }
    }
  }
};

// The warp's position, head and sample.
struct WarpPlace {
  int64_t row;  // (sample x heads + head) x positions + position
  int64_t sample;
  int64_t head;
  int64_t position;

  __device__ explicit WarpPlace(const AttentionNumbers& numbers)
      : row(FirstOfThread() / kWarp),
        sample(row / numbers.positions / numbers.heads),
        head(row / numbers.positions % numbers.heads),
        position(row % numbers.positions) {}
  __device__ bool IsBeyond(const AttentionNumbers& numbers) const {
    return row >= numbers.batch * numbers.heads * numbers.positions;
  }
};

// Input and output arrays of one head of one sample.
template <typename T>
struct Heads {
  Head<T> queries, keys, values, out;

  __device__ Heads(const AttentionNumbers& numbers, const WarpPlace& place)
      : queries(numbers, place.sample, place.head, 3, 0),
        keys(numbers, place.sample, place.head, 3, 1),
        values(numbers, place.sample, place.head, 3, 2),
        out(numbers, place.sample, place.head, 1, 0) {}
};

// Dropout's factor of the weight with which row `row` (WarpPlace) looks at position p.
__device__ inline float FactorOf(const AttentionNumbers& numbers, int64_t row, int64_t p) {
  if (numbers.step == nullptr) return 1;
  const DropoutNumbers drawn(numbers.step, numbers.layer);
  const auto number = static_cast<uint64_t>(row * numbers.positions + p);
  return drawn.At(number) < numbers.dropout ? 0.0f : 1.0f / (1.0f - numbers.dropout);
}

__device__ inline int CountFrom(int64_t first, int64_t end) {
  return end - first < kWarp ? static_cast<int>(end - first) : kWarp;
}

template <typename T>
__global__ void ForwardKernel(AttentionNumbers numbers, const T* x, T* y) {
  const WarpPlace place(numbers);
  if (place.IsBeyond(numbers)) return;  // a whole warp
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, place);
  Spread query, mean;
  query.Load(x, of.queries, place.position, dims, lane);
  mean.Clear();
  float top = -INFINITY;
  float sum = 0;
  const int64_t end = numbers.causal ? place.position + 1 : numbers.positions;
  for (int64_t first = 0; first < end; first += kWarp) {
    const int count = CountFrom(first, end);
    const int64_t own = first + (lane < count ? lane : 0);
    const float product = query.Times(x, of.keys, own, dims) * numbers.scale;
    const float score = lane < count ? product : -INFINITY;
    const float most = fmaxf(top, MostOfWarp(score));
    const float weight = lane < count ? expf(score - most) : 0.0f;
    const float shrink = first == 0 ? 0.0f : expf(top - most);
    sum = sum * shrink + SumOfWarp(weight);
    mean.Scale(shrink);
    mean.Add(x, of.values, first, count, weight * FactorOf(numbers, place.row, own), dims, lane);
    top = most;
  }
  mean.StoreTo(y, of.out, place.position, dims, lane, 1.0f / sum);
  if (lane == 0) numbers.log_sums[place.row] = top + logf(sum);
}

// With weights w = exp(score - log sum), which dropout multiplies by f, d = dy . value and a = dy .
// y, the scores' gradients are w (f d - a).
template <typename T>
__global__ void QueryKernel(AttentionNumbers numbers, const T* x, const T* y, const T* dy, T* dx) {
  const WarpPlace place(numbers);
  if (place.IsBeyond(numbers)) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, place);
  Spread query, gradient, output, sum;
  query.Load(x, of.queries, place.position, dims, lane);
  gradient.Load(dy, of.out, place.position, dims, lane);
  output.Load(y, of.out, place.position, dims, lane);
  float along = 0;
  for (int j = 0; j < kMostDims; ++j) along += gradient.at[j] * output.at[j];
  along = SumOfWarp(along);
  sum.Clear();
  const float log_sum = numbers.log_sums[place.row];
  const int64_t end = numbers.causal ? place.position + 1 : numbers.positions;
  for (int64_t first = 0; first < end; first += kWarp) {
    const int count = CountFrom(first, end);
    const int64_t own = first + (lane < count ? lane : 0);
    const float weight = expf(query.Times(x, of.keys, own, dims) * numbers.scale - log_sum);
    const float of_weight =
        FactorOf(numbers, place.row, own) * gradient.Times(x, of.values, own, dims);
    const float of_score = weight * (of_weight - along);
    sum.Add(x, of.keys, first, count, of_score, dims, lane);
  }
  sum.StoreTo(dx, of.queries, place.position, dims, lane, numbers.scale);
  if (lane == 0) numbers.along[place.row] = along;
}

// After the queries' kernel, which has left `along`.
template <typename T>
__global__ void KeyKernel(AttentionNumbers numbers, const T* x, const T* dy, T* dx) {
  const WarpPlace place(numbers);
  if (place.IsBeyond(numbers)) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, place);
  Spread key, value, of_key, of_value;
  key.Load(x, of.keys, place.position, dims, lane);
  value.Load(x, of.values, place.position, dims, lane);
  of_key.Clear();
  of_value.Clear();
  const int64_t rows = place.row - place.position;  // of the head's first query
  for (int64_t first = numbers.causal ? place.position : 0; first < numbers.positions;
       first += kWarp) {
    const int count = CountFrom(first, numbers.positions);
    const int64_t own = first + (lane < count ? lane : 0);
    const float score = key.Times(x, of.queries, own, dims) * numbers.scale;
    const float weight = expf(score - numbers.log_sums[rows + own]);
    const float factor = FactorOf(numbers, rows + own, place.position);
    const float of_weight = factor * value.Times(dy, of.out, own, dims);
    const float of_score = weight * (of_weight - numbers.along[rows + own]);
    of_value.Add(dy, of.out, first, count, factor * weight, dims, lane);
    of_key.Add(x, of.queries, first, count, of_score, dims, lane);
  }
  of_key.StoreTo(dx, of.keys, place.position, dims, lane, numbers.scale);
  of_value.StoreTo(dx, of.values, place.position, dims, lane, 1.0f);
}

int64_t BlocksOf(const AttentionNumbers& numbers) {
  constexpr int kRows = kThreads / kWarp;
  return (numbers.batch * numbers.heads * numbers.positions + kRows - 1) / kRows;
}

// y, with log_sums.
cudaError_t Attend(const Launch& launch, const AttentionNumbers& numbers, const void* x, void* y) {
  return WithNumber(numbers.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, ForwardKernel<T>, BlocksOf(numbers), numbers, static_cast<const T*>(x),
                 static_cast<T*>(y));
  });
}

// dx, with `along`.
cudaError_t AttendBackward(const Launch& launch, const AttentionNumbers& numbers, const void* x,
                           const void* y, const void* dy, void* dx) {
  return WithNumber(numbers.precision, [&](auto number) {
    using T = decltype(number);
    const cudaError_t queued =
        Queue(launch, QueryKernel<T>, BlocksOf(numbers), numbers, static_cast<const T*>(x),
              static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx));
    if (queued != cudaSuccess) return queued;
    return Queue(launch, KeyKernel<T>, BlocksOf(numbers), numbers, static_cast<const T*>(x),
                 static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

class Attention final : public UnaryOp {
 public:
  Attention(CudaEngine& engine, const AttentionSpec& spec, int max_batch)
      : engine_(engine),
        spec_(spec),
        log_sums_(engine, max_batch * spec.heads * spec.positions, "attention's sums"),
        along_(engine, max_batch * spec.heads * spec.positions, "attention's sums") {}

  bool reads_input() const override { return true; }
  bool reads_output() const override { return true; }
  int64_t bytes() const override { return log_sums_.bytes() + along_.bytes(); }

  void ForwardArray(const Pass& pass, const void* input, void* output) override {
    KUMO_CUDA(engine_, Attend(engine_.launch(), NumbersOf(pass), input, output));
  }

  void BackwardArray(const Pass& pass, const void* input, const void* output,
                     const void* grad_output, void* grad_input) override {
    if (grad_input == nullptr) return;
    KUMO_CUDA(engine_, AttendBackward(engine_.launch(), NumbersOf(pass), input, output, grad_output,
                                      grad_input));
  }

 private:
  AttentionNumbers NumbersOf(const Pass& pass) {
    AttentionNumbers numbers;
    numbers.precision = engine_.precision();
    numbers.batch = pass.batch;
    numbers.channels = spec_.channels;
    numbers.positions = spec_.positions;
    numbers.heads = spec_.heads;
    numbers.causal = spec_.causal;
    numbers.scale = 1.0f / std::sqrt(static_cast<float>(spec_.per_head()));
    if (spec_.dropout > 0 && pass.training) numbers.step = engine_.step();
    numbers.dropout = spec_.dropout;
    numbers.layer = spec_.layer;
    numbers.log_sums = log_sums_.data();
    numbers.along = along_.data();
    return numbers;
  }

  CudaEngine& engine_;
  AttentionSpec spec_;
  DeviceArray<float> log_sums_;
  DeviceArray<float> along_;
};

}  // namespace

Result<std::unique_ptr<Op>> MakeOp(CudaEngine& engine, const AttentionSpec& spec, int max_batch) {
  if (spec.per_head() > kMostOfHead) {
    return InvalidArgument("network.device=cuda has attention of heads of at most " +
                           std::to_string(kMostOfHead) + " channels, not " +
                           std::to_string(spec.per_head()));
  }
  return NewOp<Attention>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
