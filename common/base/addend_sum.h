// For kernel sources: sums of an array and addends, element by element, in their order, starting
// from +0. common/base/isa.h says what a kernel source may include.
#pragma once

#include <cstddef>

#include "common/base/addend.h"
#include "common/base/lanes.h"

namespace kumo::KUMO_ISA {

// array: null for zeros.
KUMO_ALWAYS_INLINE FloatPart SumAt(const float* array, const Addend* addends, size_t count,
                                   size_t i) {
  FloatPart sum = {};
  if (array != nullptr) sum = LoadPart(array + i);
  for (size_t k = 0; k < count; ++k) {
    FloatPart numbers;
    __builtin_memcpy(&numbers, addends[k].numbers + sizeof(float) * i, sizeof(numbers));
    sum += addends[k].factor * numbers;
  }
  return sum;
}

KUMO_ALWAYS_INLINE float SumOfOneAt(const float* array, const Addend* addends, size_t count,
                                    size_t i) {
  float sum = array != nullptr ? array[i] : 0.0f;
  for (size_t k = 0; k < count; ++k) {
    float number;
    __builtin_memcpy(&number, addends[k].numbers + sizeof(float) * i, sizeof(number));
    sum += addends[k].factor * number;
  }
  return sum;
}

}  // namespace kumo::KUMO_ISA
