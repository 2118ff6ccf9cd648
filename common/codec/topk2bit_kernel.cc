// Codes of topk2bit, and the sums of each code's numbers, which make the levels.
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

// Each value is added to the sum of its code, and 0 to the others: four sums side by side, without
// a store that the next addition waits for. No sum is -0, so 0 changes none.
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
