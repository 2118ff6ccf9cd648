// Optimiser steps over long arrays, one function for each optimiser of the list (all.h). The
// formulas are in the optimisers' headers (sgd.h, adam.h, muon.h), which devices compile, too.
//
// A step is one pass: it reads the gradient, the weight and the slots of an element once, and
// writes the next weight and the slots. Memory is the limit of long arrays, so nothing is read
// twice. Elements do not depend on each other, products and sums are not contracted, and square
// roots and divisions are correctly rounded. So every instruction-set level and the GPU give the
// same bits.
//
// The gradient may be a sum that does not exist yet: contributions of several partitions, each
// times its factor. They are added element by element in their order, 128 elements at a time, into
// a buffer that stays in the first cache, and the step reads the buffer. The whole sum is never
// written to memory.
//
// Factors of learning rate and decay are applied to the step's numbers once for each call, not to
// the elements. An optimiser that steps whole matrices (muon) has two more passes, before and after
// its orthogonalisation.
#include "common/base/addend_sum.h"
#include "common/base/vector_loop.h"
#include "common/optimiser/kernel.h"

namespace kumo::KUMO_ISA {

KUMO_ALWAYS_INLINE float SquareRoot(float x) { return __builtin_sqrtf(x); }

}  // namespace kumo::KUMO_ISA

#define KUMO_STEP KUMO_ALWAYS_INLINE
#include "common/optimiser/all.h"
#include "common/optimiser/scaled.h"

namespace kumo::KUMO_ISA {

template <typename Optimiser>
KUMO_ALWAYS_INLINE void StepRange(const StepNumbers& s, const float* gradient, const float* weights,
                                  float* next, float* first, float* second, size_t n) {
  constexpr int kSlots = Optimiser::kTraits.slots;
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) {
    float a = 0.0f;
    float b = 0.0f;
    if constexpr (kSlots > 0) a = first[i];
    if constexpr (kSlots > 1) b = second[i];
    next[i] = Optimiser::Next(s, gradient[i], weights[i], a, b);
    if constexpr (kSlots > 0) first[i] = a;
    if constexpr (kSlots > 1) second[i] = b;
  }
}

template <typename Optimiser>
static void Step(const StepNumbers& numbers, float rate_factor, float decay_factor,
                 const float* gradient, const Addend* addends, size_t addend_count,
                 const float* weights, float* next, float* const* slots, size_t n) {
  constexpr int kSlots = Optimiser::kTraits.slots;
  static_assert(kSlots <= 2);
  static_assert((kSlots > 0) == (Optimiser::kTraits.state[0] != '\0'));
  const StepNumbers s = Scaled(numbers, rate_factor, decay_factor);
  float* const first = kSlots > 0 ? slots[0] : nullptr;
  float* const second = kSlots > 1 ? slots[1] : nullptr;
  if (gradient != nullptr && addend_count == 0) {
    StepRange<Optimiser>(s, gradient, weights, next, first, second, n);
    return;
  }
  constexpr size_t kRange = 128;
  alignas(64) float sum[kRange];
  for (size_t begin = 0; begin < n; begin += kRange) {
    const size_t count = n - begin < kRange ? n - begin : kRange;
    size_t i = 0;
    for (; i + kPartLanes <= count; i += kPartLanes) {
      StorePart(SumAt(gradient, addends, addend_count, begin + i), sum + i);
    }
    for (; i < count; ++i) sum[i] = SumOfOneAt(gradient, addends, addend_count, begin + i);
    StepRange<Optimiser>(s, sum, weights + begin, next + begin,
                         kSlots > 0 ? first + begin : nullptr,
                         kSlots > 1 ? second + begin : nullptr, count);
  }
}

static void DirectionOfMatrix(const StepNumbers& numbers, const float* gradient, float* mean,
                              float* to, size_t n) {
  const StepNumbers s = numbers;  // a copy, which no store to the arrays can change
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) to[i] = MatrixDirection(s, gradient[i], mean[i]);
}

static void StepMatrix(const StepNumbers& numbers, float rate_factor, float decay_factor,
                       float stretch, const float* x, float* weights, size_t n) {
  const MatrixStepNumbers s = MatrixScaled(numbers, rate_factor, decay_factor, stretch);
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < n; ++i) weights[i] = MatrixNext(s, x[i], weights[i]);
}

template <typename>
struct Kernels;
template <typename... Optimiser>
struct Kernels<OptimiserList<Optimiser...>> {
  static constexpr OptimiserKernel kAll[] = {{Optimiser::kTraits, Step<Optimiser>}...};
  static constexpr OptimiserKernels kList = {
      kAll, sizeof...(Optimiser), {DirectionOfMatrix, StepMatrix}};
};

extern const OptimiserKernels kOptimisers;
constinit const OptimiserKernels kOptimisers = Kernels<AllOptimisers>::kList;

}  // namespace kumo::KUMO_ISA
