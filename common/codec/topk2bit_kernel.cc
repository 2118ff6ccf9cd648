// Codes of topk2bit, and the sums of each code's values, from which the four levels follow.
//
//   code(v) = clamp(round((v - mean) / step + 2), 0, 3)
//   level of a code = the mean of the values with this code
//
// The values are the selected elements of a group or of a tensor (a 64th of all), gathered side by
// side. Topk2bitFormula has the formulas, which the GPU compiles, too. All arithmetic is in double,
// and a code's values are added one after the other: every level and the GPU give the same bits.
//
// CodeOf compares with .5, 1.5 and 2.5 instead of calling a rounding function, so the loop over the
// values has no call and no branch. An addition to a sum waits for the one before it, since their
// order is fixed; so AddByCode adds to all four sums for each value.
#include <cstddef>
#include <cstdint>

#include "common/base/vector_loop.h"
#include "common/codec/topk_kernel.h"

namespace kumo::KUMO_ISA {

KUMO_ALWAYS_INLINE double RootOf(double x) { return __builtin_sqrt(x); }

}  // namespace kumo::KUMO_ISA

#define KUMO_FORMULA KUMO_ALWAYS_INLINE
#include "common/codec/topk2bit_formula.h"

namespace kumo::KUMO_ISA {
namespace {

constexpr int kLevels = Topk2bitFormula::kLevels;

void CodeValues(const float* values, size_t count, double mean, double step, uint8_t* codes) {
  KUMO_VECTOR_LOOP
  for (size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<uint8_t>(Topk2bitFormula::CodeOf(values[i], mean, step));
  }
}

// Each value is added to the sum of its code, and 0 to the other sums: the sums stay in registers,
// without a store that the next addition waits for. No sum is -0, so adding 0 changes none.
void AddByCode(const float* values, const uint8_t* codes, size_t count, double* sums,
               int64_t* counts) {
  double of_code[kLevels] = {};
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    for (int c = 0; c < kLevels; ++c) of_code[c] += codes[i] == c ? value : 0.0;
  }
  int64_t numbers[kLevels] = {};
  for (size_t i = 0; i < count; ++i) {
    for (int c = 0; c < kLevels; ++c) numbers[c] += codes[i] == c ? 1 : 0;
  }
  for (int c = 0; c < kLevels; ++c) {
    sums[c] += of_code[c];
    counts[c] += numbers[c];
  }
}

}  // namespace

extern const Topk2bitKernel kTopk2bitKernel;
constinit const Topk2bitKernel kTopk2bitKernel = {CodeValues, AddByCode};

}  // namespace kumo::KUMO_ISA
