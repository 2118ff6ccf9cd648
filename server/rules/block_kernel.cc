// Block momentum and averaging over arrays: see rule.h for the formulas.
//
// Each formula is written once, for a number or a vector of them. The arrays that are written but
// not read (the next weights) may be streamed past the caches: an ordinary store fetches the line
// first, which costs a quarter of the whole pass.
#include "common/base/addend_sum.h"
#include "common/base/lanes.h"
#include "common/base/vector_loop.h"
#include "server/rules/kernel.h"

namespace kumo::KUMO_ISA {

KUMO_ALWAYS_INLINE bool Aligned(const void* array) {
  return array == nullptr || reinterpret_cast<uintptr_t>(array) % 64 == 0;
}

template <bool stream>
KUMO_ALWAYS_INLINE void Write(FloatPart part, float* to) {
  if constexpr (stream) {
    StreamPart(part, to);
  } else {
    StorePart(part, to);
  }
}

// Result of a formula for one number (or vector) of each array.
template <typename T>
struct Next {
  T start;
  T weights;
};

// With weights apart the formula is given the weights, else the start. velocities: null for a
// formula without one.
template <bool stream, typename Formula>
KUMO_ALWAYS_INLINE void UpdateTile(const RuleArrays& arrays, float* velocities, Formula formula) {
  const RuleArrays a = arrays;
  const float* from = a.next_weights == nullptr ? a.start : a.weights;
  size_t i = 0;
  for (; i + kPartLanes <= a.n; i += kPartLanes) {
    FloatPart velocity = {};
    if (velocities != nullptr) velocity = LoadPart(velocities + i);
    const Next<FloatPart> next =
        formula(SumAt(a.sum, a.addends, a.addend_count, i), LoadPart(from + i), velocity);
    if (velocities != nullptr) StorePart(velocity, velocities + i);
    Write<stream>(next.start, a.next_start + i);
    if (a.next_weights != nullptr) Write<stream>(next.weights, a.next_weights + i);
  }
  for (; i < a.n; ++i) {
    float velocity = velocities == nullptr ? 0.0f : velocities[i];
    const Next<float> next =
        formula(SumOfOneAt(a.sum, a.addends, a.addend_count, i), from[i], velocity);
    if (velocities != nullptr) velocities[i] = velocity;
    a.next_start[i] = next.start;
    if (a.next_weights != nullptr) a.next_weights[i] = next.weights;
  }
}

template <typename Formula>
KUMO_ALWAYS_INLINE void Update(const RuleArrays& arrays, float* velocities, Formula formula) {
  if (arrays.stream && Aligned(arrays.next_start) && Aligned(arrays.next_weights)) {
    UpdateTile<true>(arrays, velocities, formula);
  } else {
    UpdateTile<false>(arrays, velocities, formula);
  }
}

static void Average(const RuleArrays& arrays) {
  Update(arrays, nullptr, [scale = arrays.scale](auto sum, auto start, auto&) KUMO_INLINE_LAMBDA {
    const auto next = start - scale * sum;
    return Next<decltype(sum)>{next, next};
  });
}

static void Momentum(float eta, float gain, float step, const RuleArrays& arrays) {
  Update(arrays, arrays.slots[0],
         [eta, gain, step](auto sum, auto start, auto& velocity) KUMO_INLINE_LAMBDA {
           velocity = eta * velocity + gain * sum;
           const auto next = start - step * velocity;
           return Next<decltype(sum)>{next, next};
         });
}

static void Nesterov(float eta, float gain, const RuleArrays& arrays) {
  Update(arrays, arrays.slots[0],
         [eta, gain](auto sum, auto weights, auto& velocity) KUMO_INLINE_LAMBDA {
           velocity = eta * velocity + gain * sum;
           const auto next = weights - velocity;
           return Next<decltype(sum)>{next - eta * velocity, next};
         });
}

static void WithoutLookAhead(float eta, const RuleArrays& arrays, float* out) {
  const RuleArrays a = arrays;
  const float* const velocities = a.slots[0];
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < a.n; ++i) out[i] = a.start[i] + eta * velocities[i];
}

template <bool stream>
KUMO_ALWAYS_INLINE void BlendTile(float share, const float* x, const RuleArrays& arrays) {
  const RuleArrays a = arrays;
  const float rest = 1.0f - share;
  size_t i = 0;
  for (; i + kPartLanes <= a.n; i += kPartLanes) {
    Write<stream>(rest * LoadPart(a.weights + i) + share * LoadPart(x + i), a.next_weights + i);
  }
  for (; i < a.n; ++i) a.next_weights[i] = rest * a.weights[i] + share * x[i];
}

static void Blend(float share, const float* x, const RuleArrays& arrays) {
  if (arrays.stream && Aligned(arrays.next_weights)) {
    BlendTile<true>(share, x, arrays);
  } else {
    BlendTile<false>(share, x, arrays);
  }
}

static void Stream(const float* from, float* to, size_t n) {
  size_t i = 0;
  if (Aligned(to)) {
    for (; i + kPartLanes <= n; i += kPartLanes) StreamPart(LoadPart(from + i), to + i);
  }
  __builtin_memcpy(to + i, from + i, (n - i) * sizeof(float));
}

extern const RuleKernels kRuleKernels;
constinit const RuleKernels kRuleKernels = {Average,          Momentum, Nesterov,
                                            WithoutLookAhead, Blend,    Stream};

}  // namespace kumo::KUMO_ISA
