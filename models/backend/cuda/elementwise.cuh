// Passes over whole arrays that apply a formula to each element, or to each pair of elements. A NaN
// stays a NaN if the formula keeps it.
#pragma once

#include "models/backend/cuda/numbers.cuh"

namespace kumo::cuda {

// to[i] = f.Of(from[i]). Whole packs; the first threads do the elements that are left over. Arrays
// start aligned. `to` may be `from`.
template <typename F, typename T>
__global__ void Map(F f, const T* from, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    auto pack = Pack<T, kPack>::Load(from + p * kPack);
    for (int j = 0; j < kPack; ++j) Store(f.Of(ToFloat(pack.at[j])), &pack.at[j]);
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(f.Of(ToFloat(from[i])), to + i);
}

// to[i] = f.Of2(a[i], b[i]), in the same way. `to` may be a or b.
template <typename F, typename T>
__global__ void Map2(F f, const T* a, const T* b, int64_t n, T* to) {
  constexpr int kPack = kPackOf<T>;
  for (int64_t p = FirstOfThread(); p < n / kPack; p += ThreadsOfGrid()) {
    const auto values = Pack<T, kPack>::Load(a + p * kPack);
    auto pack = Pack<T, kPack>::Load(b + p * kPack);
    for (int j = 0; j < kPack; ++j) {
      Store(f.Of2(ToFloat(values.at[j]), ToFloat(pack.at[j])), &pack.at[j]);
    }
    pack.StoreTo(to + p * kPack);
  }
  const int64_t i = n / kPack * kPack + FirstOfThread();
  if (i < n) Store(f.Of2(ToFloat(a[i]), ToFloat(b[i])), to + i);
}

template <typename F>
cudaError_t LaunchMap(const Launch& launch, Precision precision, const F& f, const void* from,
                      int64_t n, void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map<F, T>, BlocksFor(launch, n / kPackOf<T> + 1), f,
                 static_cast<const T*>(from), n, static_cast<T*>(to));
  });
}

template <typename F>
cudaError_t LaunchMap2(const Launch& launch, Precision precision, const F& f, const void* a,
                       const void* b, int64_t n, void* to) {
  return WithNumber(precision, [&](auto number) {
    using T = decltype(number);
    return Queue(launch, Map2<F, T>, BlocksFor(launch, n / kPackOf<T> + 1), f,
                 static_cast<const T*>(a), static_cast<const T*>(b), n, static_cast<T*>(to));
  });
}

}  // namespace kumo::cuda
