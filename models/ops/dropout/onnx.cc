// Dropout, which has no effect in use.

#include "models/onnx/forms.h"
#include "models/ops/dropout/spec.h"

namespace kumo {

OnnxValue OnnxForm(const DropoutSpec&, const OnnxNode& node) { return node.input(); }

}  // namespace kumo
