#include "server/rules/rule.h"

#include <algorithm>
#include <cstring>

#include <glog/logging.h>

#include "server/rules/kernel_table.h"

namespace kumo {

KUMO_DECLARE_PER_ISA(const RuleKernels, kRuleKernels)

const RuleKernels& RuleKernelsAt(Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  return KUMO_AT_ISA(isa, kRuleKernels);
}

void FenceStreams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

RuleArrays PartOf(const RuleArrays& arrays, size_t first, size_t n) {
  const auto from = [first](auto* array) { return array == nullptr ? nullptr : array + first; };
  RuleArrays part = arrays;
  part.n = n;
  part.sum = from(arrays.sum);
  part.start = from(arrays.start);
  part.next_start = from(arrays.next_start);
  part.weights = from(arrays.weights);
  part.next_weights = from(arrays.next_weights);
  for (int i = 0; i < RuleArrays::kMaxSlots; ++i) part.slots[i] = from(arrays.slots[i]);
  return part;
}

void Rule::WeightsFromStart(const RuleArrays& arrays, float* weights) const {
  std::copy_n(arrays.start, arrays.n, weights);
}

void Rule::Apply(const RoundInfo& info, const RuleArrays& arrays) const {
  if (info.samples > 0) {
    Step(info, arrays);
    return;
  }
  std::memcpy(arrays.next_start, arrays.start, arrays.n * sizeof(float));
  if (keeps_weights_apart()) {
    std::memcpy(arrays.next_weights, arrays.weights, arrays.n * sizeof(float));
  }
}

}  // namespace kumo
