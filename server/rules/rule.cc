#include "server/rules/rule.h"

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
