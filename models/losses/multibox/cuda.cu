// Loss of a single-shot detector. Kernels, in order: matching (a block for each sample, the greedy
// search of MatchBoxes), hardness of each default box (a thread for each), choice of the negatives
// (a block for each sample), sums of the minibatch (one thread), gradients (a thread for each
// default box). The sums stay on the device.
//
// Choice. The k hardest negatives are those above the k-th largest hardness, and of equal ones the
// first. The bits of a number of one sign order like an integer, so that hardness is found bit by
// bit: a bit is 1 if at least k numbers are as large as the number with that bit.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/detection/boxes.h"
#include "models/backend/cuda/numbers.cuh"
#include "models/backend/cuda/ops.h"

namespace kumo::cuda {
namespace {

constexpr float kLeastMatch = 1e-6f;
constexpr uint8_t kPositive = 1;
constexpr uint8_t kNegative = 2;
constexpr int kOfSample = 3;  // sums: of offsets, of classes, positives

struct MultiboxMap {
  const void* offsets = nullptr;
  const void* scores = nullptr;
  void* grad_offsets = nullptr;
  void* grad_scores = nullptr;
  int64_t plane = 0;
  int64_t per_cell = 0;
  int64_t first = 0;  // default box
};
struct MultiboxMaps {
  int count = 0;
  int64_t boxes = 0;
  int64_t scores = 0;  // of a box
  int batch = 0;
  MultiboxMap of[MultiboxSpec::kMostMaps];
};
struct MultiboxTargets {
  const int32_t* classes = nullptr;
  const Box* boxes = nullptr;
  const int32_t* counts = nullptr;
  int64_t room = 0;
};
// Arrays between the kernels: [batch][default boxes], and [batch][kMostObjects] of `overlaps` and
// `best`.
struct MultiboxWork {
  const Box* defaults = nullptr;
  float* overlaps = nullptr;
  int32_t* best = nullptr;
  int32_t* matches = nullptr;
  float* log_sums = nullptr;
  float* hardness = nullptr;
  uint8_t* chosen = nullptr;
  double* of_samples = nullptr;  // [batch][kOfSample]
};

__device__ float OverlapOf(const Box& a, const Box& b) {
  const float width = fminf(a.right, b.right) - fmaxf(a.left, b.left);
  const float height = fminf(a.bottom, b.bottom) - fmaxf(a.top, b.top);
  if (!(width > 0 && height > 0)) return 0;
  const float both = width * height;
  return both /
         ((a.right - a.left) * (a.bottom - a.top) + (b.right - b.left) * (b.bottom - b.top) - both);
}

// The largest overlap of the block's threads and the first place that has it, in all threads.
__device__ void LargestOfBlock(float* overlap, int32_t* place) {
  __shared__ float overlaps[kThreads];
  __shared__ int32_t places[kThreads];
  __syncthreads();  // may still be read from the call before
  overlaps[threadIdx.x] = *overlap;
  places[threadIdx.x] = *place;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = static_cast<int>(threadIdx.x) + half;
    if (static_cast<int>(threadIdx.x) >= half) continue;
    const bool larger =
        overlaps[other] > overlaps[threadIdx.x] ||
        (overlaps[other] == overlaps[threadIdx.x] && places[other] < places[threadIdx.x]);
    if (!larger) continue;
    overlaps[threadIdx.x] = overlaps[other];
    places[threadIdx.x] = places[other];
  }
  __syncthreads();
  *overlap = overlaps[0];
  *place = places[0];
}

// Sets the object's default box of the largest overlap among those without object.
__device__ void FindBest(const Box& object, const Box* defaults, int64_t boxes,
                         const int32_t* matches, float* overlap, int32_t* best) {
  float most = 0;
  int32_t place = INT32_MAX;
  for (int64_t d = threadIdx.x; d < boxes; d += kThreads) {
    const float here = matches[d] == kNoObject ? OverlapOf(defaults[d], object) : 0;
    if (here <= most) continue;
    most = here;
    place = static_cast<int32_t>(d);
  }
  LargestOfBlock(&most, &place);
  if (threadIdx.x == 0) {
    *overlap = most;
    *best = place;
  }
}

__global__ void MatchKernel(int64_t boxes, float threshold, MultiboxTargets targets,
                            MultiboxWork work) {
  const int64_t sample = blockIdx.x;
  int32_t* const matches = work.matches + sample * boxes;
  float* const overlaps = work.overlaps + sample * MultiboxSpec::kMostObjects;
  int32_t* const best = work.best + sample * MultiboxSpec::kMostObjects;
  const Box* const objects = targets.boxes + sample * targets.room;
  const int count = min(targets.counts[sample], MultiboxSpec::kMostObjects);
  for (int64_t d = threadIdx.x; d < boxes; d += kThreads) matches[d] = kNoObject;
  __syncthreads();
  for (int o = 0; o < count; ++o) {
    FindBest(objects[o], work.defaults, boxes, matches, overlaps + o, best + o);
  }
  for (int round = 0; round < count; ++round) {
    __syncthreads();
    float most = 0;
    int32_t object = INT32_MAX;
    for (int o = static_cast<int>(threadIdx.x); o < count; o += kThreads) {
      if (overlaps[o] <= most) continue;
      most = overlaps[o];
      object = o;
    }
    LargestOfBlock(&most, &object);
    if (most <= kLeastMatch) break;  // in all threads
    const int32_t taken = best[object];
    __syncthreads();
    if (threadIdx.x == 0) {
      matches[taken] = object;
      overlaps[object] = 0;
      best[object] = INT32_MAX;
    }
    __syncthreads();
    for (int o = 0; o < count; ++o) {
      if (best[o] == taken) {
        FindBest(objects[o], work.defaults, boxes, matches, overlaps + o, best + o);
      }
      __syncthreads();
    }
  }
  __syncthreads();
  for (int64_t d = threadIdx.x; d < boxes; d += kThreads) {
    if (matches[d] != kNoObject) continue;
    float most = 0;
    for (int o = 0; o < count; ++o) {
      const float here = OverlapOf(work.defaults[d], objects[o]);
      if (here < threshold || here <= most) continue;
      most = here;
      matches[d] = o;
    }
  }
}

// One number (a coordinate or a class) of a default box of a sample, in an array of `numbers` for
// each box of a cell.
template <typename T>
struct BoxPlace {
  ChannelsAt<T> at;
  int64_t first;

  __device__ BoxPlace(const MultiboxMaps& maps, const MultiboxMap& map, int64_t numbers,
                      int64_t sample, int64_t box)
      : at({Precision::kFp32, maps.batch, map.per_cell * numbers, map.plane},
           sample * map.plane + (box - map.first) % map.plane),
        first((box - map.first) / map.plane * numbers) {}
  __device__ int64_t At(int64_t i) const { return at.At(first + i); }
};

__device__ const MultiboxMap& MapOf(const MultiboxMaps& maps, int64_t box) {
  int map = 0;
  while (map + 1 < maps.count && maps.of[map + 1].first <= box) ++map;
  return maps.of[map];
}

// The class that a default box is to have; 0: the background.
__device__ int64_t WantedClass(const MultiboxTargets& targets, int64_t sample, int32_t match) {
  return match == kNoObject ? 0 : targets.classes[sample * targets.room + match] + 1;
}

template <typename T>
__global__ void HardnessKernel(MultiboxMaps maps, MultiboxTargets targets, MultiboxWork work) {
  for (int64_t i = FirstOfThread(); i < maps.batch * maps.boxes; i += ThreadsOfGrid()) {
    const int64_t sample = i / maps.boxes;
    const MultiboxMap& map = MapOf(maps, i % maps.boxes);
    const BoxPlace<T> place(maps, map, maps.scores, sample, i % maps.boxes);
    const T* const scores = static_cast<const T*>(map.scores);
    float top = ToFloat(scores[place.At(0)]);
    for (int64_t c = 1; c < maps.scores; ++c) top = fmaxf(top, ToFloat(scores[place.At(c)]));
    float sum = 0;
    for (int64_t c = 0; c < maps.scores; ++c) sum += expf(ToFloat(scores[place.At(c)]) - top);
    const float log_sum = top + logf(sum);
    const int64_t wanted = WantedClass(targets, sample, work.matches[i]);
    work.log_sums[i] = log_sum;
    work.hardness[i] = log_sum - ToFloat(scores[place.At(wanted)]);
  }
}

// Differences of a matched box's offsets and those that it is to have (EncodeBox).
struct OffsetDifferences {
  float of[MultiboxSpec::kCoordinates];
};
template <typename T>
__device__ OffsetDifferences DifferencesOf(const MultiboxMaps& maps, const MultiboxTargets& targets,
                                           const MultiboxWork& work, int64_t i) {
  const int64_t sample = i / maps.boxes;
  const MultiboxMap& map = MapOf(maps, i % maps.boxes);
  const BoxPlace<T> place(maps, map, MultiboxSpec::kCoordinates, sample, i % maps.boxes);
  const T* const offsets = static_cast<const T*>(map.offsets);
  const Box box = targets.boxes[sample * targets.room + work.matches[i]];
  const Box of = work.defaults[i % maps.boxes];
  const float width = of.right - of.left;
  const float height = of.bottom - of.top;
  const float wanted[] = {
      ((box.left + box.right) / 2 - (of.left + of.right) / 2) / width / kCentreVariance,
      ((box.top + box.bottom) / 2 - (of.top + of.bottom) / 2) / height / kCentreVariance,
      logf((box.right - box.left) / width) / kSizeVariance,
      logf((box.bottom - box.top) / height) / kSizeVariance};
  OffsetDifferences differences;
  for (int c = 0; c < MultiboxSpec::kCoordinates; ++c) {
    differences.of[c] = ToFloat(offsets[place.At(c)]) - wanted[c];
  }
  return differences;
}

// Orders hardness like integers; what is no number is the hardest.
__device__ uint32_t OrderOf(float hardness) {
  if (isnan(hardness)) return UINT32_MAX;
  const uint32_t bits = __float_as_uint(hardness);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// In all threads.
__device__ int SumForAll(int value) {
  __shared__ int total;
  const int sum = SumOfBlock(value);
  if (threadIdx.x == 0) total = sum;
  __syncthreads();
  const int result = total;
  __syncthreads();
  return result;
}

template <typename T>
__global__ void ChooseKernel(MultiboxMaps maps, float negatives, MultiboxTargets targets,
                             MultiboxWork work) {
  const int64_t sample = blockIdx.x;
  const int64_t begin = sample * maps.boxes;
  // A range of neighbouring boxes for each thread.
  const int64_t piece = (maps.boxes + kThreads - 1) / kThreads;
  const int64_t first = begin + min(threadIdx.x * piece, maps.boxes);
  const int64_t end = begin + min((threadIdx.x + 1) * piece, maps.boxes);
  const auto count_if = [&](auto holds) {
    int count = 0;
    for (int64_t i = first; i < end; ++i) {
      if (work.matches[i] == kNoObject && holds(OrderOf(work.hardness[i]))) ++count;
    }
    return count;
  };
  const int without = SumForAll(count_if([](uint32_t) { return true; }));
  const int positives = static_cast<int>(maps.boxes) - without;
  // In double: the product may exceed any integer.
  const int wanted =
      static_cast<int>(min(static_cast<double>(negatives) * static_cast<double>(positives),
                           static_cast<double>(without)));
  uint32_t least = 0;  // the wanted-th largest
  for (int bit = 31; bit >= 0 && wanted > 0; --bit) {
    const uint32_t candidate = least | (uint32_t{1} << bit);
    const int reached = SumForAll(count_if([&](uint32_t order) { return order >= candidate; }));
    if (reached >= wanted) least = candidate;
  }
  const int above = SumForAll(count_if([&](uint32_t order) { return order > least; }));
  __shared__ int equals[kThreads];
  const int equal = count_if([&](uint32_t order) { return order == least; });
  equals[threadIdx.x] = equal;
  __syncthreads();
  int left = wanted - above;  // of the equal ones, less the ones of the threads before
  for (int t = 0; t < static_cast<int>(threadIdx.x); ++t) left -= equals[t];
  double of_offsets = 0;
  double of_classes = 0;
  for (int64_t i = first; i < end; ++i) {
    uint8_t chosen = 0;
    if (work.matches[i] != kNoObject) {
      chosen = kPositive;
      const OffsetDifferences differences = DifferencesOf<T>(maps, targets, work, i);
      for (const float difference : differences.of) {
        const double far = static_cast<double>(fabsf(difference));
        of_offsets += far < 1 ? far * far / 2 : far - 0.5;
      }
    } else if (wanted > 0) {
      const uint32_t order = OrderOf(work.hardness[i]);
      if (order > least || (order == least && left-- > 0)) chosen = kNegative;
    }
    if (chosen != 0) of_classes += static_cast<double>(work.hardness[i]);
    work.chosen[i] = chosen;
  }
  of_offsets = SumOfBlock(of_offsets);
  of_classes = SumOfBlock(of_classes);
  if (threadIdx.x != 0) return;
  double* const of_sample = work.of_samples + sample * kOfSample;
  of_sample[0] = of_offsets;
  of_sample[1] = of_classes;
  of_sample[2] = positives;
}

__global__ void AddSamplesKernel(int batch, const double* of_samples, double* positives,
                                 double* sums) {
  if (FirstOfThread() > 0) return;
  double total = 0;
  for (int n = 0; n < batch; ++n) {
    const double* const of = of_samples + int64_t{n} * kOfSample;
    sums[MultiboxSpec::kLossSum] += of[0] + of[1];
    sums[MultiboxSpec::kOffsetSum] += of[0];
    sums[MultiboxSpec::kClassSum] += of[1];
    total += of[2];
  }
  sums[MultiboxSpec::kPositivesSum] += total;
  *positives = total;
}

template <typename T>
__global__ void GradientKernel(MultiboxMaps maps, float weight, const LossScale* loss_scale,
                               const double* positives, MultiboxTargets targets,
                               MultiboxWork work) {
  const float factor =
      *positives > 0 ? loss_scale->scale * weight / static_cast<float>(*positives) : 0;
  for (int64_t i = FirstOfThread(); i < maps.batch * maps.boxes; i += ThreadsOfGrid()) {
    const int64_t sample = i / maps.boxes;
    const MultiboxMap& map = MapOf(maps, i % maps.boxes);
    const uint8_t chosen = work.chosen[i];
    if (map.grad_offsets != nullptr) {
      const BoxPlace<T> place(maps, map, MultiboxSpec::kCoordinates, sample, i % maps.boxes);
      OffsetDifferences differences = {};
      if (chosen == kPositive) differences = DifferencesOf<T>(maps, targets, work, i);
      for (int c = 0; c < MultiboxSpec::kCoordinates; ++c) {
        const float difference = differences.of[c];
        const float held = difference > 1 ? 1 : difference < -1 ? -1 : difference;
        Store(factor * held, static_cast<T*>(map.grad_offsets) + place.At(c));
      }
    }
    if (map.grad_scores == nullptr) continue;
    const BoxPlace<T> place(maps, map, maps.scores, sample, i % maps.boxes);
    const int64_t wanted = WantedClass(targets, sample, work.matches[i]);
    for (int64_t c = 0; c < maps.scores; ++c) {
      float gradient = 0;
      if (chosen != 0) {
        const float score = ToFloat(static_cast<const T*>(map.scores)[place.At(c)]);
        gradient = factor * (expf(score - work.log_sums[i]) - (c == wanted ? 1.0f : 0.0f));
      }
      Store(gradient, static_cast<T*>(map.grad_scores) + place.At(c));
    }
  }
}

class MultiboxOp final : public LossOp {
 public:
  MultiboxOp(CudaEngine& engine, const MultiboxSpec& spec, int max_batch)
      : engine_(engine), spec_(spec), of_default_(DefaultBoxes(spec.grids)) {
    const auto boxes = std::ssize(of_default_);
    const int64_t all = max_batch * boxes;
    constexpr char kWork[] = "a detector's matching";
    defaults_ = DeviceArray<Box>(engine, boxes, kWork);
    overlaps_ = DeviceArray<float>(engine, int64_t{max_batch} * MultiboxSpec::kMostObjects, kWork);
    best_ = DeviceArray<int32_t>(engine, int64_t{max_batch} * MultiboxSpec::kMostObjects, kWork);
    matches_ = DeviceArray<int32_t>(engine, all, kWork);
    log_sums_ = DeviceArray<float>(engine, all, kWork);
    hardness_ = DeviceArray<float>(engine, all, kWork);
    chosen_ = DeviceArray<uint8_t>(engine, all, kWork);
    of_samples_ = DeviceArray<double>(engine, int64_t{max_batch} * kOfSample, kWork);
    positives_ = DeviceArray<double>(engine, 1, kWork);
    if (defaults_.empty()) return;
    KUMO_CUDA(engine_, cudaMemcpyAsync(defaults_.data(), of_default_.data(),
                                       static_cast<size_t>(defaults_.bytes()),
                                       cudaMemcpyHostToDevice, engine_.stream()));
  }

  void Run(int batch, const LossArrays& arrays, double* sums) override {
    const MultiboxMaps maps = MapsOf(batch, arrays);
    const MultiboxTargets targets = {static_cast<const int32_t*>(arrays.targets[0].values),
                                     static_cast<const Box*>(arrays.targets[1].values),
                                     arrays.targets[1].counts, arrays.targets[1].room};
    const MultiboxWork work = {defaults_.data(), overlaps_.data(),  best_.data(),
                               matches_.data(),  log_sums_.data(),  hardness_.data(),
                               chosen_.data(),   of_samples_.data()};
    const Launch launch = engine_.launch();
    const int64_t blocks = BlocksFor(launch, batch * maps.boxes);
    KUMO_CUDA(engine_,
              Queue(launch, MatchKernel, batch, maps.boxes, spec_.threshold, targets, work));
    KUMO_CUDA(engine_, WithNumber(engine_.precision(), [&](auto number) {
                using T = decltype(number);
                return Queue(launch, HardnessKernel<T>, blocks, maps, targets, work);
              }));
    KUMO_CUDA(engine_, WithNumber(engine_.precision(), [&](auto number) {
                using T = decltype(number);
                return Queue(launch, ChooseKernel<T>, batch, maps, spec_.negatives, targets, work);
              }));
    KUMO_CUDA(engine_, Queue(launch, AddSamplesKernel, 1, batch, of_samples_.data(),
                             positives_.data(), sums));
    if (arrays.grad_inputs.empty()) return;
    KUMO_CUDA(engine_, WithNumber(engine_.precision(), [&](auto number) {
                using T = decltype(number);
                return Queue(launch, GradientKernel<T>, blocks, maps, spec_.weight,
                             engine_.loss_scale(), positives_.data(), targets, work);
              }));
  }

 private:
  MultiboxMaps MapsOf(int batch, const LossArrays& arrays) const {
    MultiboxMaps maps;
    maps.count = static_cast<int>(spec_.grids.size());
    maps.scores = spec_.scores();
    maps.batch = batch;
    for (int m = 0; m < maps.count; ++m) {
      const BoxGrid& grid = spec_.grids[m];
      maps.of[m] = {arrays.inputs[m],
                    arrays.inputs[maps.count + m],
                    arrays.grad_input(m),
                    arrays.grad_input(maps.count + m),
                    grid.rows * grid.columns,
                    grid.boxes_per_cell(),
                    maps.boxes};
      maps.boxes += grid.boxes();
    }
    return maps;
  }

  CudaEngine& engine_;
  const MultiboxSpec spec_;
  const std::vector<Box> of_default_;  // outlives the copy to the device
  DeviceArray<Box> defaults_;
  DeviceArray<float> overlaps_;
  DeviceArray<int32_t> best_;
  DeviceArray<int32_t> matches_;
  DeviceArray<float> log_sums_;
  DeviceArray<float> hardness_;
  DeviceArray<uint8_t> chosen_;
  DeviceArray<double> of_samples_;
  DeviceArray<double> positives_;
};

}  // namespace

std::unique_ptr<LossOp> MakeLoss(CudaEngine& engine, const MultiboxSpec& spec, int max_batch) {
  return std::make_unique<MultiboxOp>(engine, spec, max_batch);
}

}  // namespace kumo::cuda
