// Calls of ops that have one input and one output.
#pragma once

#include "models/backend/op.h"

namespace kumo {

inline void ForwardOf(Op* op, const Pass& pass, const void* input, void* output) {
  op->Forward(pass, {&input, 1}, {&output, 1});
}

inline void BackwardOf(Op* op, const Pass& pass, const void* input, const void* output,
                       const void* grad_output, void* grad_input) {
  op->Backward(pass, {{&input, 1}, {&output, 1}, {&grad_output, 1}, {&grad_input, 1}});
}

}  // namespace kumo
