// Addend: one array of a sum of arrays that a kernel forms in passing.
#pragma once

namespace kumo {

// factor * numbers[i], float32 of any alignment.
struct Addend {
  const unsigned char* numbers;
  float factor;
};

}  // namespace kumo
