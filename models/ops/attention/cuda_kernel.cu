// Attention: a warp for each query of each head, and, for the gradients of keys and values, one for
// each key. A warp goes over the other positions 32 at a time: a lane has one of them where
// products with it are made, and every 32nd channel of the head where these are added up.
//
// The softmax of a query is taken as its positions come by (Milakov and Gimelshein 2018).
#include "models/backend/cuda/dropout_stream.cuh"
#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {
namespace {

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
struct Spot {
  int64_t row;  // (sample x heads + head) x positions + position
  int64_t sample;
  int64_t head;
  int64_t position;

  __device__ explicit Spot(const AttentionNumbers& numbers)
      : row(FirstOfThread() / kWarp),
        sample(row / numbers.positions / numbers.heads),
        head(row / numbers.positions % numbers.heads),
        position(row % numbers.positions) {}
  __device__ bool IsBeyond(const AttentionNumbers& numbers) const {
    return row >= numbers.batch * numbers.heads * numbers.positions;
  }
};

// Of one head of one sample: what comes in, and what goes out.
template <typename T>
struct Heads {
  Head<T> queries, keys, values, out;

  __device__ Heads(const AttentionNumbers& numbers, const Spot& spot)
      : queries(numbers, spot.sample, spot.head, 3, 0),
        keys(numbers, spot.sample, spot.head, 3, 1),
        values(numbers, spot.sample, spot.head, 3, 2),
        out(numbers, spot.sample, spot.head, 1, 0) {}
};

// What dropout multiplies the weight by with which row `row` (Spot) looks at position p.
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
  const Spot spot(numbers);
  if (spot.IsBeyond(numbers)) return;  // a whole warp
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, spot);
  Spread query, mean;
  query.Load(x, of.queries, spot.position, dims, lane);
  mean.Clear();
  float top = -INFINITY;
  float sum = 0;
  const int64_t end = numbers.causal ? spot.position + 1 : numbers.positions;
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
    mean.Add(x, of.values, first, count, weight * FactorOf(numbers, spot.row, own), dims, lane);
    top = most;
  }
  mean.StoreTo(y, of.out, spot.position, dims, lane, 1.0f / sum);
  if (lane == 0) numbers.log_sums[spot.row] = top + logf(sum);
}

// With weights w = exp(score - log sum), which dropout multiplies by f, d = dy . value and a = dy .
// y, the scores' gradients are w (f d - a).
template <typename T>
__global__ void QueryKernel(AttentionNumbers numbers, const T* x, const T* y, const T* dy, T* dx) {
  const Spot spot(numbers);
  if (spot.IsBeyond(numbers)) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, spot);
  Spread query, gradient, output, sum;
  query.Load(x, of.queries, spot.position, dims, lane);
  gradient.Load(dy, of.out, spot.position, dims, lane);
  output.Load(y, of.out, spot.position, dims, lane);
  float along = 0;
  for (int j = 0; j < kMostDims; ++j) along += gradient.at[j] * output.at[j];
  along = SumOfWarp(along);
  sum.Clear();
  const float log_sum = numbers.log_sums[spot.row];
  const int64_t end = numbers.causal ? spot.position + 1 : numbers.positions;
  for (int64_t first = 0; first < end; first += kWarp) {
    const int count = CountFrom(first, end);
    const int64_t own = first + (lane < count ? lane : 0);
    const float weight = expf(query.Times(x, of.keys, own, dims) * numbers.scale - log_sum);
    const float of_weight =
        FactorOf(numbers, spot.row, own) * gradient.Times(x, of.values, own, dims);
    const float of_score = weight * (of_weight - along);
    sum.Add(x, of.keys, first, count, of_score, dims, lane);
  }
  sum.StoreTo(dx, of.queries, spot.position, dims, lane, numbers.scale);
  if (lane == 0) numbers.along[spot.row] = along;
}

// After the queries' kernel, which has left `along`.
template <typename T>
__global__ void KeyKernel(AttentionNumbers numbers, const T* x, const T* dy, T* dx) {
  const Spot spot(numbers);
  if (spot.IsBeyond(numbers)) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t dims = numbers.per_head();
  const Heads<T> of(numbers, spot);
  Spread key, value, of_key, of_value;
  key.Load(x, of.keys, spot.position, dims, lane);
  value.Load(x, of.values, spot.position, dims, lane);
  of_key.Clear();
  of_value.Clear();
  const int64_t rows = spot.row - spot.position;  // of the head's first query
  for (int64_t first = numbers.causal ? spot.position : 0; first < numbers.positions;
       first += kWarp) {
    const int count = CountFrom(first, numbers.positions);
    const int64_t own = first + (lane < count ? lane : 0);
    const float score = key.Times(x, of.queries, own, dims) * numbers.scale;
    const float weight = expf(score - numbers.log_sums[rows + own]);
    const float factor = FactorOf(numbers, rows + own, spot.position);
    const float of_weight = factor * value.Times(dy, of.out, own, dims);
    const float of_score = weight * (of_weight - numbers.along[rows + own]);
    of_value.Add(dy, of.out, first, count, factor * weight, dims, lane);
    of_key.Add(x, of.queries, first, count, of_score, dims, lane);
  }
  of_key.StoreTo(dx, of.keys, spot.position, dims, lane, numbers.scale);
  of_value.StoreTo(dx, of.values, spot.position, dims, lane, 1.0f);
}

int64_t BlocksOf(const AttentionNumbers& numbers) {
  constexpr int kRows = kThreads / kWarp;
  return (numbers.batch * numbers.heads * numbers.positions + kRows - 1) / kRows;
}

}  // namespace

cudaError_t Attend(const Launch& launch, const AttentionNumbers& numbers, const void* x, void* y) {
  return WithNumber(numbers.precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, ForwardKernel<T>, BlocksOf(numbers), numbers, static_cast<const T*>(x),
                 static_cast<T*>(y));
  });
}

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

}  // namespace kumo::cuda
